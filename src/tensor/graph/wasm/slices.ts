/**
 * Lets several threads compute a program. `emit.ts` divides large groups into slices, which write different elements,
 * and the bands of `emitBands.ts` are slices too; the functions of this file distribute them. Sums are never divided,
 * and bands add to them in order, so the results have the same bits whichever thread computes a slice, and however many
 * slices there are.
 *
 * One thread runs the program, and the others help. For each divided group, the first thread publishes a ticket with
 * the number of slices. Every thread takes slices by decreasing this number until none is left; then the first thread
 * waits for the slices that helpers have begun. So no helper is required: if none has started yet, or the system runs
 * other work on their cores, the first thread computes all slices. A thread that waits spins for some microseconds and
 * then sleeps.
 */
import { sizeOf } from "../Tensor.ts"
import type { ModuleBuilder } from "../../wasm/encode.ts"
import { atomic32, atomic64, discard, notify, wait32, wait64 } from "../../wasm/atomics.ts"
import {
  call,
  callFor,
  dispatch,
  i32,
  type I32,
  i64,
  type I64,
  local,
  type Local,
  loopWhile,
  type Statement,
  when,
} from "../../wasm/instructions.ts"
import { weightOf } from "./expression.ts"
import { type WorkDivision, FunctionBuilder, type Slice, type FunctionTarget } from "./function.ts"
import type { FusedGroup } from "./fuse.ts"

/** The size in bytes of the memory through which threads coordinate. Each number has a cache line of its own. */
export const controlBytes = 512

/** How often a thread looks for a change before it sleeps: about 20 microseconds. */
const spins = 15_000

/**
 * The names of exported functions: `help` computes slices until another thread calls `release`; `helped` returns how
 * many it computed.
 */
export const helpExport = "help"
export const releaseExport = "release"
export const helpedExport = "helped"

/**
 * The parts of a module that divide work among threads, for those who translate it. The numbers are those of functions: `slice`
 * computes a slice, and the modules of `tensor/native` bring their own functions instead of all others.
 */
export interface Division {
  /** The address of `controlBytes` bytes. */
  readonly control: number
  readonly slice: number
  readonly fork: number
  readonly awaitTurn: number
  readonly endTurn: number
  readonly others: ReadonlyArray<number>
}

/** Collects the slices of all groups of a module, and writes the functions that compute them. */
export class SliceFunctions implements WorkDivision {
  private readonly threads: number
  private readonly control: number
  private readonly worth: Worth
  private readonly cases: Array<Statement> = []
  private readonly fork: number
  private readonly awaitTurn: number
  private readonly endTurn: number
  readonly thread: I32 = local("i32", 1)

  /** `control` is the address of `controlBytes` bytes, which must be zeros at first. */
  constructor(module: ModuleBuilder, control: number, threads: number, worth: Worth) {
    this.threads = threads
    this.control = control
    this.worth = worth
    this.fork = module.declare({ params: ["i32"], results: [] })
    this.awaitTurn = module.declare({ params: ["i32", "i32"], results: [] })
    this.endTurn = module.declare({ params: ["i32", "i32"], results: [] })
  }

  of(
    { size, unit }: { readonly size: number; readonly unit: number },
    group: FusedGroup,
  ): ReadonlyArray<Slice> | undefined {
    const most = Math.min(this.threads, mostCount, Math.floor(microsecondsOf(group) / this.worth.slice))
    const units = Math.ceil(size / unit)
    const each = unit * Math.ceil(units / Math.max(1, most))
    const count = Math.ceil(size / each)
    if (count < 2) return undefined
    return Array.from({ length: count }, (_, i) => ({ from: i * each, size: Math.min(each, size - i * each) }))
  }

  run(slices: ReadonlyArray<Statement>): Statement {
    const starts = Array.from({ length: Math.ceil(slices.length / mostCount) }, (_, i) => i * mostCount)
    return starts.map((start) => {
      const own = slices.slice(start, start + mostCount)
      const first = this.cases.length
      // Slices are taken by decreasing a number, so the first slice gets the highest.
      this.cases.push(...own.toReversed())
      return call(this.fork, [i32.const((first << countBits) | own.length)])
    })
  }

  inTurn(address: number, turn: I32, next: I32, statements: ReadonlyArray<Statement>): ReadonlyArray<Statement> {
    const at = i32.const(address)
    return [call(this.awaitTurn, [at, turn]), ...statements, call(this.endTurn, [at, next])]
  }

  /** Adds the functions that distribute the slices, after all groups have been emitted. */
  finish(target: FunctionTarget): Division {
    const word = (line: number): I32 => i32.const(this.control + 64 * line)
    const [ticket, finished, waiting, sleepers, ended, helped, joined, queued] = [0, 1, 2, 3, 4, 5, 6, 7].map(word)
    const remaining = (value: I64): I32 => i32.and(i32.wrap(value), i32.const((1 << countBits) - 1))

    const slice = new FunctionBuilder(target, { params: ["i32", "i32"], results: [] }, "slice")
    slice.emit(dispatch(slice.param("i32", 0), this.cases))
    const sliceIndex = slice.finish()

    // A ticket holds the number of the group in this process, its first slice, and how many slices are not yet taken.
    const take = new FunctionBuilder(target, { params: ["i32"], results: ["i32"] }, "take slices")
    const thread = take.param("i32", 0)
    const seen = take.local("i64")
    const own = take.local("i32")
    const left = remaining(seen)
    const index = i32.sub(i32.add(i32.shrU(i32.wrap(seen), i32.const(countBits)), left), i32.const(1))
    const taken = i64.eq(atomic64.compareExchange(ticket, seen, i64.sub(seen, i64.const(1n))), seen)
    const compute = [
      call(sliceIndex, [index, thread]),
      own.set(i32.add(own, i32.const(1))),
      discard(atomic32.add(finished, i32.const(1))),
      when(atomic32.load(waiting), [notify(finished)]),
    ]
    take.emit(loopWhile([seen.set(atomic64.load(ticket)), when(left, [when(taken, compute)])], left))
    const takeIndex = take.finish(own)

    const f = new FunctionBuilder(target, { params: ["i32"], results: [] }, "fork")
    const group = f.param("i32", 0)
    const count = i32.and(group, i32.const((1 << countBits) - 1))
    const next = i64.add(i64.shrU(atomic64.load(ticket), i64.const(32n)), i64.const(1n))
    f.emit(atomic32.store(finished, i32.const(0)))
    f.emit(atomic64.store(ticket, i64.add(i64.shl(next, i64.const(32n)), i64.extendU(group))))
    f.emit(when(atomic32.load(sleepers), [notify(ticket)]))
    f.emit(discard(callFor("i32", takeIndex, [i32.const(0)])))
    const tries = f.let(i32.const(spins))
    const isPending = i32.ne(atomic32.load(finished), count)
    f.emit(loopWhile([], i32.and(isPending, isPositive(tries))))
    const done = f.local("i32")
    const sleep = [done.set(atomic32.load(finished)), when(i32.ne(done, count), [wait32(finished, done)])]
    const asleep = [
      atomic32.store(waiting, i32.const(1)),
      loopWhile(sleep, isPending),
      atomic32.store(waiting, i32.const(0)),
    ]
    f.emit(when(isPending, asleep))
    f.finishAs(this.fork)

    const h = new FunctionBuilder(target, { params: [], results: [] }, helpExport)
    const number = h.let(i32.add(atomic32.add(joined, i32.const(1)), i32.const(1)))
    const latest = h.local("i64")
    const spinsLeft = h.local("i32")
    const isIdle = i32.eqz(remaining(latest))
    const look = [latest.set(atomic64.load(ticket)), spinsLeft.set(i32.sub(spinsLeft, i32.const(1)))]
    const rest = [
      discard(atomic32.add(sleepers, i32.const(1))),
      // A new ticket differs from the latest one, so no ticket is missed.
      when(i32.eqz(atomic32.load(ended)), [wait64(ticket, latest)]),
      discard(atomic32.add(sleepers, i32.const(-1))),
    ]
    const body = [
      discard(atomic32.add(helped, callFor("i32", takeIndex, [number]))),
      spinsLeft.set(i32.const(spins)),
      loopWhile(look, i32.and(isIdle, i32.ne(spinsLeft, i32.const(0)))),
      when(isIdle, rest),
    ]
    h.emit(loopWhile(body, i32.eqz(atomic32.load(ended))))
    const helpIndex = h.finish()
    target.module.export(helpExport, helpIndex)

    this.finishTurns(target, queued)

    const { awaitTurn, control, endTurn, fork: forkIndex } = this
    const others = [takeIndex, helpIndex, ...this.finishHelp(target, { ticket, ended, helped })]
    return { control, slice: sliceIndex, fork: forkIndex, awaitTurn, endTurn, others }
  }

  /** Adds the function that ends the helpers, and the one that tells how many slices they have computed. */
  private finishHelp(
    target: FunctionTarget,
    { ended, helped, ticket }: Readonly<Record<"ended" | "helped" | "ticket", I32>>,
  ): ReadonlyArray<number> {
    const r = new FunctionBuilder(target, { params: [], results: [] }, releaseExport)
    const another = i64.add(i64.shrU(atomic64.load(ticket), i64.const(32n)), i64.const(1n))
    r.emit(atomic32.store(ended, i32.const(1)))
    r.emit(atomic64.store(ticket, i64.shl(another, i64.const(32n))))
    r.emit(notify(ticket))
    const releaseIndex = r.finish()
    target.module.export(releaseExport, releaseIndex)

    const counter = new FunctionBuilder(target, { params: [], results: ["i32"] }, helpedExport)
    const helpedIndex = counter.finish(atomic32.load(helped))
    target.module.export(helpedExport, helpedIndex)
    return [releaseIndex, helpedIndex]
  }

  /**
   * Adds the functions that `inTurn` calls. A waiting thread spins and then sleeps; `queued` counts the sleeping
   * threads.
   */
  private finishTurns(target: FunctionTarget, queued: I32): void {
    const f = new FunctionBuilder(target, { params: ["i32", "i32"], results: [] }, "await turn")
    const [at, turn] = [f.param("i32", 0), f.param("i32", 1)]
    const seen = f.local("i32")
    const tries = f.let(i32.const(spins))
    const isEarly = i32.ne(seen.tee(atomic32.load(at)), turn)
    f.emit(loopWhile([], i32.and(isEarly, isPositive(tries))))
    const queue = [
      discard(atomic32.add(queued, i32.const(1))),
      loopWhile([when(isEarly, [wait32(at, seen)])], isEarly),
      discard(atomic32.add(queued, i32.const(-1))),
    ]
    f.emit(when(isEarly, queue))
    f.finishAs(this.awaitTurn)

    const end = new FunctionBuilder(target, { params: ["i32", "i32"], results: [] }, "end turn")
    const [ended, next] = [end.param("i32", 0), end.param("i32", 1)]
    end.emit(atomic32.store(ended, next))
    end.emit(when(atomic32.load(queued), [notify(ended)]))
    end.finishAs(this.endTurn)
  }
}

/** Decreases a counter, and tells whether it is still above 0. */
const isPositive = (counter: Local<"i32">): I32 => i32.ne(counter.tee(i32.sub(counter, i32.const(1))), i32.const(0))

/** The number of bits of a ticket that hold the number of slices, and the largest number that fits. */
export const countBits = 10
const mostCount = (1 << countBits) - 1

/** The smallest work that is worth dividing, in microseconds: the shortest slice, and the shortest run. */
export interface Worth {
  readonly slice: number
  /** The shortest run (or minibatch) whose groups are divided. */
  readonly run: number
}

export const usualWorth: Worth = { slice: 10, run: 300 }

/** Estimates how long one thread needs for all these groups: for a run, or for one minibatch. */
export const microsecondsOfAll = (groups: ReadonlyArray<FusedGroup>): number =>
  groups.reduce((sum, group) => (group.phase === 0 ? sum : sum + microsecondsOf(group)), 0)

/** Estimates how long one thread computes a group: 40,000 multiply-adds, or 14,000 elements of a simple map, take 1 µs. */
const microsecondsOf = (group: FusedGroup): number => {
  const { core, dims } = group
  const maps = (sizeOf(dims) * (1 + weightOf(group))) / 14_000
  if (core?.work.kind !== "matmul") return maps
  const inner = core.inputs[0].shape[core.inputs[0].shape.length - 1]
  return maps + (sizeOf(core.shape) * inner) / 40_000
}
