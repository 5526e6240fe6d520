/**
 * Emits the stages of a program (see `stage.ts`) for `compile.ts`. A function computes a band; it is called for one
 * band after another. If threads share the work, each of them computes other bands, and has its own memory for their
 * rows. Sums over all rows are added in the order of the bands: a band waits until the one before it has added its
 * part.
 */
import { call, i32, type I32, loopWhile, memoryFill, type Statement } from "../../wasm/instructions.ts"
import { emitGroups, type PlacedBand } from "./emit.ts"
import { type WorkDivision, FunctionBuilder, type FunctionTarget } from "./function.ts"
import type { FusedGroup } from "./fuse.ts"
import type { Node } from "./ir.ts"
import { bytesOf, type MemoryPlan, waitingBytesOf } from "./memory.ts"
import type { Stage } from "./stage.ts"

/** The bytes of the number of the band that may add next; it has a cache line of its own. */
export const turnBytes = 64

/** Writes code that gathers the rows of an input for a band. */
export type GatherBand = (input: Node, band: PlacedBand) => Statement

/** Emits a stage. `gather` is called for the inputs of which only the rows of a band are in memory. */
export const emitStage = (
  target: FunctionTarget,
  memory: MemoryPlan,
  { bands, groups }: Stage,
  gather: GatherBand,
): ReadonlyArray<Statement> => {
  if (bands === undefined) return emitGroups(target, { memory }, groups)
  const { local, rows, size, sums } = bands
  const { slices } = target
  const undivided = { ...target, slices: undefined }
  const inputs = [...local].filter(({ work }) => work.kind === "leaf")
  const adding = groups.filter(({ core }) => core !== undefined && sums.has(core))

  /**
   * Adds the function that computes a band of `count` rows. Its parameters are the first row, and the number of the
   * thread.
   */
  const bandOf = (count: number): number => {
    const f = new FunctionBuilder(target, { params: ["i32", "i32"], results: [] }, `band of ${count} rows`)
    const [row, thread] = [f.param("i32", 0), f.param("i32", 1)]
    const own = f.let(i32.mul(thread, i32.const(memory.localBytes)))
    const band = { size: count, row, own, scratch: f.let(i32.mul(thread, i32.const(target.scratch.bytes))) }
    const inOrder = (group: FusedGroup, statements: ReadonlyArray<Statement>): ReadonlyArray<Statement> => {
      const turn = adding.indexOf(group)
      if (slices === undefined || turn < 0) return statements
      return slices.inTurn(target.turns + turnBytes * turn, row, i32.add(row, i32.const(count)), statements)
    }
    f.emit(inputs.map((input) => gather(input, band)))
    for (const group of groups) f.emit(inOrder(group, emitGroups(undivided, { memory, band }, [group])))
    return f.finish()
  }

  const most = bandOf(size)
  const rest = rows % size
  const last = rest === 0 ? undefined : bandOf(rest)
  /** Returns a call that computes the band beginning at the row `first`, on the thread with this number. */
  const compute = (first: I32, thread: I32): Statement => call(most, [first, thread])
  const computeRest = (thread: I32): ReadonlyArray<Statement> =>
    last === undefined ? [] : [call(last, [i32.const(rows - rest), thread])]
  const onOneThread = (): Statement => {
    const f = new FunctionBuilder(target, { params: [], results: [] }, "bands")
    const row = f.let(i32.const(0))
    const next = row.tee(i32.add(row, i32.const(size)))
    f.emit(loopWhile([compute(row, i32.const(0))], i32.ltU(next, i32.const(rows - rest))))
    f.emit(computeRest(i32.const(0)))
    return call(f.finish())
  }
  const onThreads = (shared: WorkDivision): Statement => {
    const { thread } = shared
    const firsts = Array.from({ length: (rows - rest) / size }, (_, i) => i32.const(i * size))
    return shared.run([...firsts.map((first) => compute(first, thread)), ...computeRest(thread)])
  }
  const clearTurns = memoryFill(i32.const(target.turns), i32.const(0), i32.const(turnBytes * adding.length))
  return [
    [...sums].map((node) => emptySums(memory, node)),
    slices === undefined ? onOneThread() : [clearTurns, onThreads(slices)],
    // After all bands, the sums of products become results.
    emitGroups(
      undivided,
      { memory },
      adding.filter(({ core }) => core?.work.kind === "matmul"),
    ),
  ]
}

/** Emits code that sets a sum over rows to 0, either where it waits between bands or in the array of the result. */
const emptySums = (memory: MemoryPlan, node: Node): Statement => {
  const waiting = memory.sumsAt(node)
  const bytes = waiting === undefined ? bytesOf(node) : waitingBytesOf(node)
  return memoryFill(i32.const(waiting ?? memory.addressOf(node)), i32.const(0), i32.const(bytes))
}
