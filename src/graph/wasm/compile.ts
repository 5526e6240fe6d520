/**
 * Compiles a program to one WebAssembly module: `compile` returns the bytes of the module and the addresses of its
 * arrays, and touches nothing else. `backend/wasm.ts` calls it.
 *
 * The module exports its memory, `prepare` and `run`. `prepare` computes the values that depend only on states without
 * a next value; call it after writing those states. `run` returns the number of minibatches that it computed. The
 * arithmetic is strict single precision, in an order that depends on shapes alone, so the results are the same bits on
 * every machine.
 */
import { Record } from "effect"
import { programError } from "../GraphError.ts"
import { indicesFeed, type ProgramSpec } from "../Program.ts"
import { type DType, sizeOf } from "../Tensor.ts"
import { feedShapes, type Outline, resultShapes } from "../validate.ts"
import { emitGroup, gatherCall } from "./emit.ts"
import { ModuleBuilder } from "../../formats/wasm/encode.ts"
import { ConstantPool, FunctionBuilder, type Target } from "./function.ts"
import { fuse, type Group } from "./fuse.ts"
import { i32, type I32, loopWhile, memoryCopy, type Statement } from "../../formats/wasm/instructions.ts"
import type { Node, Phase } from "./ir.ts"
import { lower, type Lowered } from "./lower.ts"
import { scratchFor } from "./matmul.ts"
import { bytesOf, type MemoryPlan, planMemory } from "./memory.ts"

/** Tells where an array is in the module's memory. The address is in bytes. */
export interface Place {
  readonly dtype: DType
  readonly address: number
  /** The number of elements of the array. */
  readonly length: number
}

export interface CompiledModule {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly feeds: Readonly<Record<string, Place>>
  readonly results: Readonly<Record<string, Place>>
  readonly state: Readonly<Record<string, Place>>
  /** Whether `prepare` computes anything; if not, it need not be called. */
  readonly prepares: boolean
}

// The table of constants that vector code loads is in the memory before all arrays.
const poolAddress = 64
const poolBytes = 8192
const pageBytes = 65536
const maxPages = 32768 // 2 GiB

export const compile = (spec: ProgramSpec): CompiledModule => {
  for (const { op, shape } of [...Object.values(spec.inputs), ...Object.values(spec.outputs)])
    if (sizeOf(shape) === 0)
      throw programError(spec.name, "the wasm backend has no empty tensors", { op: op.kind, shapes: [shape] })
  const lowered = lower(spec)
  const groups = fuse(lowered).toSorted((a, b) => a.phase - b.phase)
  const memory = planMemory(lowered, groups, poolAddress + poolBytes, extrasOf(spec, lowered))
  // A vector load can read a few bytes after the end of the last array, so reserve 64 more.
  const pages = Math.ceil((memory.bytes + 64) / pageBytes)
  if (pages > maxPages) {
    const remedy = "use smaller batches or networks, or another backend"
    throw programError(spec.name, `the program needs more than 2 GiB of memory; ${remedy}`)
  }

  const target: Target = {
    module: new ModuleBuilder(),
    pool: new ConstantPool(poolAddress, poolBytes),
    scratch: addressIn(memory, scratch),
    shared: new Map(),
  }
  const calls = (phase: Phase): ReadonlyArray<Statement> =>
    groups.filter((group) => group.phase === phase).flatMap((group) => emitGroup(target, memory, group))
  // Phase 0 is the work of `prepare`; in `run`, phase 1 is done once and phase 2 for each minibatch.
  const preparation = calls(0)
  emitPrepare(target, preparation)
  emitRun(target, spec, lowered, memory, calls(1), calls(2))
  for (const node of constantsIn(groups)) {
    const { data } = node.work
    target.module.data(memory.addressOf(node), new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
  }
  target.module.data(poolAddress, target.pool.bytes())

  return {
    bytes: target.module.encode(pages),
    feeds: Record.map(feedShapes(spec), (feed, name) =>
      placeAt(addressIn(memory, wholeInput(name), lowered.inputs.get(name)), feed),
    ),
    results: Record.map(resultShapes(spec), (result, name) =>
      placeAt(addressIn(memory, stackedOutput(name), lowered.outputs.get(name)), result),
    ),
    state: Object.fromEntries([...lowered.states].map(([name, node]) => [name, placeAt(memory.addressOf(node), node)])),
    prepares: preparation.length > 0,
  }
}

type ConstantNode = Node & { readonly work: { readonly kind: "constant" } }

const constantsIn = (groups: ReadonlyArray<Group>): ReadonlySet<ConstantNode> => {
  const isConstant = (node: Node): node is ConstantNode => node.work.kind === "constant"
  const nodes = groups.flatMap((group) => [...group.members, ...(group.core === undefined ? [] : [group.core])])
  return new Set(nodes.flatMap((node) => node.inputs.map((ref) => ref.node)).filter(isConstant))
}

const placeAt = (address: number, { dtype, shape }: Outline): Place => ({ dtype, address, length: sizeOf(shape) })

// The names of memory areas that belong to no node: scratch memory, all rows of a feed, and stacked outputs.
const scratch = "scratch"
const wholeInput = (name: string): string => `input ${name}`
const stackedOutput = (name: string): string => `output ${name}`

/** Returns the sizes of the memory areas that belong to no node. */
const extrasOf = (spec: ProgramSpec, lowered: Lowered): ReadonlyMap<string, number> => {
  const inner = lowered.nodes.flatMap((node) => (node.work.kind === "matmul" ? node.inputs[0].shape.slice(-1) : []))
  const extras = new Map<string, number>([[scratch, scratchFor(Math.max(0, ...inner))]])
  if (spec.minibatches === undefined) return extras
  const feeds = feedShapes(spec)
  for (const name of [indicesFeed, ...spec.minibatches.gathered]) extras.set(wholeInput(name), bytesOf(feeds[name]))
  for (const [name, result] of Object.entries(resultShapes(spec))) extras.set(stackedOutput(name), bytesOf(result))
  return extras
}

/** Returns the address of a memory area if there is one of this name, otherwise of the node. */
const addressIn = (memory: MemoryPlan, area: string, node?: Node): number => {
  const address = memory.extra.get(area) ?? (node && memory.addressOf(node))
  if (address === undefined) throw new Error(`compile: ${area} has no memory`)
  return address
}

const emitPrepare = (target: Target, statements: ReadonlyArray<Statement>): void => {
  const f = new FunctionBuilder(target, { params: [], results: [] })
  f.emit(statements)
  target.module.export("prepare", f.finish())
}

const copyState = (memory: MemoryPlan): ReadonlyArray<Statement> =>
  [...memory.copied].map(([state, next]) =>
    memoryCopy(i32.const(memory.addressOf(state)), i32.const(memory.addressOf(next)), i32.const(bytesOf(state))),
  )

const emitRun = (
  target: Target,
  spec: ProgramSpec,
  lowered: Lowered,
  memory: MemoryPlan,
  once: ReadonlyArray<Statement>,
  each: ReadonlyArray<Statement>,
): void => {
  const f = new FunctionBuilder(target, { params: [], results: ["i32"] })
  const minibatches = spec.minibatches
  if (minibatches === undefined) {
    f.emit([once, each, copyState(memory)])
    target.module.export("run", f.finish(i32.const(1)))
    return
  }
  const { batch, count, gathered, rows } = minibatches
  const done = f.local("i32")
  const indices = i32.add(i32.const(addressIn(memory, wholeInput(indicesFeed))), i32.mul(done, i32.const(4 * batch)))
  const gathers = gathered.flatMap((name) => {
    const node = lowered.inputs.get(name)
    if (node === undefined) return []
    const args = [i32.const(addressIn(memory, wholeInput(name))), indices, i32.const(memory.addressOf(node))]
    return [gatherCall(target, args, rows, bytesOf(node) / batch, batch)]
  })
  const stacks = [...lowered.outputs].map(([name, node]) => {
    const bytes = i32.const(bytesOf(node))
    const to = i32.add(i32.const(addressIn(memory, stackedOutput(name))), i32.mul(done, bytes))
    const from = i32.const(memory.addressOf(node))
    return bytesOf(node) === 4 ? i32.store(to, i32.load(from)) : memoryCopy(to, from, bytes)
  })
  const continues: I32 =
    lowered.continueWhile === undefined
      ? i32.const(1)
      : i32.ne(i32.load8(i32.const(memory.addressOf(lowered.continueWhile))), i32.const(0))
  const body = [gathers, each, stacks, copyState(memory), done.set(i32.add(done, i32.const(1)))]
  f.emit([once, loopWhile(body, i32.and(continues, i32.ltU(done, i32.const(count))))])
  target.module.export("run", f.finish(done))
}
