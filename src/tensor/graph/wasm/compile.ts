/**
 * Compiles programs to one WebAssembly module: `compileAll` returns the bytes of the module and the addresses of its
 * arrays, and touches nothing else. `tensor/backend/wasm.ts` calls it.
 *
 * The module exports its memory, and for each program the functions `prepare:NAME` and `run:NAME`. `prepare` computes the
 * values that depend only on states without a next value in this program; call it after such a state has changed. `run`
 * returns the number of minibatches that it computed. States of the same name are one array. The arithmetic is strict
 * single precision, in an order that depends on shapes alone, so the results are the same bits on every machine.
 */
import { Record } from "effect"
import { programError } from "../GraphError.ts"
import { indicesFeed, type ProgramSpec } from "../Program.ts"
import { type DType, sizeOf } from "../Tensor.ts"
import { feedShapes, type Outline, resultShapes } from "../validate.ts"
import { type BandSizes, stagesOf, usualBandSizes } from "./bands.ts"
import type { Stage } from "./stage.ts"
import { gatherCall } from "./emit.ts"
import { emitStage, type GatherBand, turnBytes } from "./emitBands.ts"
import { ModuleBuilder, type Segment } from "../../wasm/encode.ts"
import { ConstantPool, FunctionBuilder, type FunctionTarget, type Lanes } from "./function.ts"
import { fuse, type FusedGroup } from "./fuse.ts"
import { i32, type I32, loopWhile, memoryCopy, type Statement } from "../../wasm/instructions.ts"
import type { Node, NodePhase } from "./ir.ts"
import { lower, type Lowered } from "./lower.ts"
import { scratchFor } from "./products/tileSizes.ts"
import { controlBytes, type Division, microsecondsOfAll, SliceFunctions, usualWorth, type Worth } from "./slices.ts"
import { SharedValues } from "./shared.ts"
import { aligned, bytesOf, type MemoryPlan, planMemory } from "./memory.ts"
import { highest } from "../../../base/statistics/extremes.ts"

/** Tells where an array is in the module's memory. The address is in bytes. */
export interface ArrayAddress {
  readonly dtype: DType
  readonly address: number
  /** The number of elements of the array. */
  readonly length: number
}

interface CompiledProgram {
  readonly feeds: Readonly<Record<string, ArrayAddress>>
  readonly results: Readonly<Record<string, ArrayAddress>>
  /** Whether `prepare` computes anything. If not, callers need not call it. */
  readonly prepares: boolean
  /** Whether threads share the work of the program's runs. */
  readonly divided: boolean
}

export interface CompiledModule<Name extends string = string> {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The states of all programs. */
  readonly state: Readonly<Record<string, ArrayAddress>>
  readonly programs: Readonly<Record<Name, CompiledProgram>>
  /**
   * The memory that threads share, if they divide the work. Then the module imports it, and the caller writes
   * `segments` to it.
   */
  readonly shared:
    | { readonly pages: number; readonly segments: ReadonlyArray<Segment>; readonly division: Division }
    | undefined
  /** The table of constants. It is the only part of the memory that differs between modules for registers of other sizes. */
  readonly constants: Segment
}

/** Returns the name of an exported function of a program. */
export const exportOf = (fn: "prepare" | "run", program: string): string => `${fn}:${program}`

// The address of the table of constants that vector code loads; it precedes all arrays.
const poolAddress = 64
const poolBytes = 8192
const pageBytes = 65536
const maxPages = 32768 // 2 GiB

export interface CompileOptions {
  /** The names of feeds that are one array for all programs which have them; a program with fewer rows reads the first. */
  readonly sharedFeeds?: ReadonlyArray<string>
  /** The numbers that states hold when the module is instantiated. States that are left out begin with zeros. */
  readonly initialStates?: Readonly<Record<string, Float32Array>>
  /** How many numbers a register of the machine holds. It changes the speed, not the results; 4 by default. */
  readonly lanes?: Lanes
  /** How many threads compute a run of a large program. It changes the speed, not the results; 1 by default. */
  readonly threads?: number
  /** Which groups threads divide; the default comes from measurements. */
  readonly worth?: Worth | undefined
  /**
   * Which programs compute a large batch in bands of rows; the default comes from measurements. It changes no result.
   */
  readonly bandSizes?: BandSizes | undefined
}

/** Compiles one program, which is named `program` in the module. */
export const compile = (spec: ProgramSpec, options?: CompileOptions): CompiledModule<"program"> =>
  compileAll({ program: spec }, options)

/**
 * Compiles programs that share their states, the feeds named in `sharedFeeds`, and the memory for temporaries. The caller
 * has validated them, so states of the same name have the same shape, and shared feeds rows of the same shape.
 */
export const compileAll = <Name extends string>(
  specs: Readonly<Record<Name, ProgramSpec>>,
  options: CompileOptions = {},
): CompiledModule<Name> => {
  const { sharedFeeds = [], initialStates = {}, lanes = 4, threads = 1, worth = usualWorth } = options
  const { bandSizes = usualBandSizes } = options
  const all: ReadonlyArray<ProgramSpec> = Object.values(specs)
  all.forEach(checkTensors)

  let top = poolAddress + poolBytes
  const reserve = (bytes: number): number => {
    const address = top
    top += aligned(bytes)
    return address
  }
  const lowered = Record.map(specs, (spec) => loweredOf(spec, bandSizes, threads))
  const every: ReadonlyArray<Grouped> = Object.values(lowered)
  const state: Record<string, ArrayAddress> = {}
  for (const { nodes } of every)
    for (const [name, node] of nodes.states) state[name] ??= placeAt(reserve(bytesOf(node)), node)
  const feedsAt = new Map<string, number>()
  for (const shared of sharedFeeds) {
    const sizes = all.flatMap((spec) => Object.entries(feedShapes(spec)).filter(([name]) => name === shared))
    if (sizes.length > 0) feedsAt.set(shared, reserve(highest(sizes.map(([, feed]) => bytesOf(feed)))))
  }
  const values = new SharedValues()
  const places = new Map<string, number>()
  const prepared = Record.map(
    lowered,
    ({ groups, nodes }) =>
      new Map(
        values.keysOf(groups).flatMap(([key, node]) => {
          // A result already has memory: that of the program's output.
          if (nodes.results.has(node)) return []
          const address = places.get(key) ?? reserve(bytesOf(node))
          places.set(key, address)
          return [[node, address]]
        }),
      ),
  )
  const divides = ({ groups }: Grouped): boolean => threads > 1 && microsecondsOfAll(groups) >= worth.run
  const dividesAny = every.some(divides)
  const scratchBytes = aligned(Math.max(0, ...every.map(scratchOf)))
  const scratch = { address: reserve((dividesAny ? threads : 1) * scratchBytes), bytes: scratchBytes }
  const turns = dividesAny ? reserve(turnBytes * Math.max(0, ...every.map(sumsIn))) : 0
  const control = dividesAny ? reserve(controlBytes) : 0
  const plans = Record.map(lowered, (grouped, name) => planOf(grouped, state, feedsAt, prepared[name]))
  const sizes: ReadonlyArray<Readonly<Record<"own" | "temporary" | "local", number>>> = Object.values(plans)
  const memories = Record.map(plans, (plan) => ({ plan, own: reserve(plan.own) }))
  const temporary = reserve(Math.max(0, ...sizes.map((plan) => plan.temporary)))
  const local = reserve((dividesAny ? threads : 1) * Math.max(0, ...sizes.map((plan) => plan.local)))

  const pages = pagesFor(top, all)
  const target: FunctionTarget = {
    module: new ModuleBuilder(),
    pool: new ConstantPool(poolAddress, poolBytes),
    scratch,
    turns,
    lanes,
    slices: undefined,
    shared: new Map(),
  }
  const slices = dividesAny ? new SliceFunctions(target.module, control, threads, worth) : undefined
  const programs = Record.map(lowered, (grouped, name): CompiledProgram => {
    const { own, plan } = memories[name]
    return emitProgram(target, divides(grouped) ? slices : undefined, name, grouped, plan.at({ own, temporary, local }))
  })
  const division = slices?.finish(target)
  const constants = { address: poolAddress, bytes: target.pool.bytes() }
  target.module.data(constants.address, constants.bytes)
  for (const [name, data] of Object.entries(initialStates)) {
    const place = state[name]
    if (place?.length !== data.length)
      throw new Error(`compile: state "${name}" has ${place?.length ?? 0} numbers, its initial value ${data.length}`)
    target.module.data(place.address, new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
  }
  const { segments } = target.module
  const shared = division && { pages, segments, division }
  return { bytes: target.module.encode(pages, pages, dividesAny), state, programs, shared, constants }
}

/** Throws if a program has empty tensors. */
const checkTensors = ({ inputs, name, outputs }: ProgramSpec): void => {
  for (const { op, shape } of [...Object.values(inputs), ...Object.values(outputs)]) {
    if (sizeOf(shape) > 0) continue
    throw programError(name, "the wasm backend has no empty tensors", { op: op.kind, shapes: [shape] })
  }
}

/** Returns the pages of memory for arrays up to the address `top`. Throws if a module can't have as many. */
const pagesFor = (top: number, specs: ReadonlyArray<ProgramSpec>): number => {
  // A vector load can read a few bytes after the end of the last array, so reserve 64 more.
  const pages = Math.ceil((top + 64) / pageBytes)
  if (pages <= maxPages) return pages
  const names = specs.map(({ name }) => name).join(", ")
  const subject = specs.length === 1 ? "the program needs" : "these programs need"
  const gibibytes = (top / 2 ** 30).toFixed(1)
  const remedy = "use smaller batches or networks, or another backend"
  throw programError(names, `${subject} ${gibibytes} GiB of memory, more than the 2 GiB of a module; ${remedy}`)
}

/** A program as nodes, divided into groups, which are divided into stages in the order in which they run. */
interface Grouped {
  readonly spec: ProgramSpec
  readonly nodes: Lowered
  readonly groups: ReadonlyArray<FusedGroup>
  /** The stages of the phases 0, 1 and 2 (see `NodePhase`). */
  readonly stages: readonly [ReadonlyArray<Stage>, ReadonlyArray<Stage>, ReadonlyArray<Stage>]
}

const loweredOf = (spec: ProgramSpec, bandSizes: BandSizes, threads: number): Grouped => {
  const nodes = lower(spec)
  const groups = fuse(nodes)
  const of = (phase: NodePhase): ReadonlyArray<FusedGroup> => groups.filter((group) => group.phase === phase)
  const plain = (phase: NodePhase): ReadonlyArray<Stage> => [{ groups: of(phase), bands: undefined }]
  const gathered = new Set((spec.minibatches?.gathered ?? []).flatMap((name) => nodes.inputs.get(name) ?? []))
  return { spec, nodes, groups, stages: [plain(0), plain(1), stagesOf(nodes, of(2), gathered, bandSizes, threads)] }
}

/** Returns the bytes of scratch memory that the products of a program need, for registers of any size. */
const scratchOf = ({ nodes, stages }: Grouped): number => {
  const sizes = stages.flat().flatMap(({ bands }) => (bands === undefined ? [] : [bands.size, bands.rows % bands.size]))
  return Math.max(
    0,
    ...nodes.nodes.flatMap(({ inputs, shape, work }) => {
      if (work.kind !== "matmul") return []
      const [m, n] = shape.slice(-2)
      return [inputs[0].shape[inputs[0].shape.length - 1], ...sizes].map((k) => scratchFor(m, k, n, 16))
    }),
  )
}

/** Returns the largest number of sums over all rows in one stage. */
const sumsIn = ({ stages }: Grouped): number => Math.max(0, ...stages.flat().map(({ bands }) => bands?.sums.size ?? 0))

/** Plans the memory of a program whose states, prepared values and some of whose feeds have addresses already. */
const planOf = (
  { nodes, spec, stages }: Grouped,
  state: Readonly<Record<string, ArrayAddress>>,
  feedsAt: ReadonlyMap<string, number>,
  prepared: ReadonlyMap<Node, number>,
) => {
  const fixed = new Map([...nodes.states].map(([name, node]) => [node, state[name].address]))
  for (const [node, address] of prepared) fixed.set(node, address)
  const areas = new Map<string, number>()
  const wholeInputs = wholeInputsOf(spec)
  for (const [name, address] of feedsAt) {
    const node = nodes.inputs.get(name)
    if (wholeInputs.has(name)) areas.set(wholeInput(name), address)
    else if (node !== undefined) fixed.set(node, address)
  }
  return planMemory(nodes, stages.flat(), areaSizes(spec, areas), { nodes: fixed, areas })
}

/** Adds a program to the module: its functions, its constants and its exports. */
const emitProgram = (
  target: FunctionTarget,
  slices: SliceFunctions | undefined,
  name: string,
  { groups, nodes, spec, stages }: Grouped,
  memory: MemoryPlan,
): CompiledProgram => {
  const calls = (phase: NodePhase, gather: GatherBand = notGathered): ReadonlyArray<Statement> => {
    const divided = { ...target, slices: phase === 0 ? undefined : slices }
    return stages[phase].flatMap((stage) => emitStage(divided, memory, stage, gather))
  }
  // `prepare` does the work of phase 0. `run` does phase 1 once, and phase 2 for each minibatch.
  const preparation = calls(0)
  emitPrepare(target, name, preparation)
  emitRun(target, name, spec, nodes, memory, calls(1), (gather) => calls(2, gather))
  for (const node of constantsIn(groups)) {
    const { data } = node.work
    target.module.data(memory.addressOf(node), new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
  }
  return {
    feeds: Record.map(feedShapes(spec), (feed, key) =>
      placeAt(addressIn(memory, wholeInput(key), nodes.inputs.get(key)), feed),
    ),
    results: Record.map(resultShapes(spec), (result, key) =>
      placeAt(addressIn(memory, stackedOutput(key), nodes.outputs.get(key)), result),
    ),
    prepares: preparation.length > 0,
    divided: slices !== undefined,
  }
}

const notGathered: GatherBand = ({ id }) => {
  throw new Error(`compile: the rows of node ${id} are not gathered`)
}

type ConstantNode = Node & { readonly work: { readonly kind: "constant" } }

const constantsIn = (groups: ReadonlyArray<FusedGroup>): ReadonlySet<ConstantNode> => {
  const isConstant = (node: Node): node is ConstantNode => node.work.kind === "constant"
  const nodes = groups.flatMap((group) => [...group.members, ...(group.core === undefined ? [] : [group.core])])
  return new Set(nodes.flatMap((node) => node.inputs.map((ref) => ref.node)).filter(isConstant))
}

const placeAt = (address: number, { dtype, shape }: Outline): ArrayAddress => ({
  dtype,
  address,
  length: sizeOf(shape),
})

// The names of memory areas that belong to no node: the feed of a gathered input, and stacked outputs.
const wholeInput = (name: string): string => `input ${name}`
const stackedOutput = (name: string): string => `output ${name}`
const currentIndices = "address of the minibatch's indices"

/** Lists the feeds that have an array besides the input's node: the indices, and the inputs whose rows are gathered. */
const wholeInputsOf = ({ minibatches }: ProgramSpec): ReadonlySet<string> =>
  new Set(minibatches === undefined ? [] : [indicesFeed, ...minibatches.gathered])

/** Returns the sizes of the memory areas that belong to no node and have no address yet. */
const areaSizes = (spec: ProgramSpec, placed: ReadonlyMap<string, number>): ReadonlyMap<string, number> => {
  const sizes = new Map<string, number>()
  if (spec.minibatches === undefined) return sizes
  const feeds = feedShapes(spec)
  sizes.set(currentIndices, 4)
  for (const name of wholeInputsOf(spec))
    if (!placed.has(wholeInput(name))) sizes.set(wholeInput(name), bytesOf(feeds[name]))
  for (const [name, result] of Object.entries(resultShapes(spec))) sizes.set(stackedOutput(name), bytesOf(result))
  return sizes
}

/** Returns the address of the memory area with this name; if there is none, the address of the node. */
const addressIn = (memory: MemoryPlan, area: string, node?: Node): number => {
  const address = memory.areas.get(area) ?? (node && memory.addressOf(node))
  if (address === undefined) throw new Error(`compile: ${area} has no memory`)
  return address
}

const emitPrepare = (target: FunctionTarget, name: string, statements: ReadonlyArray<Statement>): void => {
  const f = new FunctionBuilder(target, { params: [], results: [] }, exportOf("prepare", name))
  f.emit(statements)
  target.module.export(exportOf("prepare", name), f.finish())
}

const copyState = (memory: MemoryPlan): ReadonlyArray<Statement> =>
  [...memory.copied].map(([state, next]) =>
    memoryCopy(i32.const(memory.addressOf(state)), i32.const(memory.addressOf(next)), i32.const(bytesOf(state))),
  )

const emitRun = (
  target: FunctionTarget,
  name: string,
  spec: ProgramSpec,
  lowered: Lowered,
  memory: MemoryPlan,
  once: ReadonlyArray<Statement>,
  each: (gather?: GatherBand) => ReadonlyArray<Statement>,
): void => {
  const f = new FunctionBuilder(target, { params: [], results: ["i32"] }, exportOf("run", name))
  const minibatches = spec.minibatches
  if (minibatches === undefined) {
    f.emit([once, each(), copyState(memory)])
    target.module.export(exportOf("run", name), f.finish(i32.const(1)))
    return
  }
  const { batch, count, gathered, rows } = minibatches
  const done = f.local("i32")
  const indices = i32.add(i32.const(addressIn(memory, wholeInput(indicesFeed))), i32.mul(done, i32.const(4 * batch)))
  const wholeOf = new Map(
    gathered.flatMap((key) => {
      const node = lowered.inputs.get(key)
      return node === undefined ? [] : [[node, addressIn(memory, wholeInput(key))] as const]
    }),
  )
  const gather = (node: Node, from: I32, to: I32, count: number): Statement =>
    gatherCall(target, [i32.const(wholeOf.get(node) ?? 0), from, to], rows, bytesOf(node) / batch, count)
  const gathers = [...wholeOf.keys()]
    .filter((node) => !memory.local.has(node))
    .map((node) => gather(node, indices, i32.const(memory.addressOf(node)), batch))
  // A band is a function of its own, so it reads from memory where the indices of the minibatch begin.
  const current = addressIn(memory, currentIndices)
  const gatherBand: GatherBand = (node, { own, row, size }) => {
    const from = i32.add(i32.load(i32.const(current)), i32.mul(row, i32.const(4)))
    return gather(node, from, i32.add(i32.const(memory.addressOf(node)), own), size)
  }
  const stackedAt = [
    ...[...lowered.outputs].map(([key, node]) => [addressIn(memory, stackedOutput(key)), node] as const),
    ...[...lowered.stacked].map(([key, node]) => [addressIn(memory, key, lowered.states.get(key)), node] as const),
  ]
  const stacks = stackedAt.map(([address, node]) => {
    const bytes = i32.const(bytesOf(node))
    const to = i32.add(i32.const(address), i32.mul(done, bytes))
    const from = i32.const(memory.addressOf(node))
    return bytesOf(node) === 4 ? i32.store(to, i32.load(from)) : memoryCopy(to, from, bytes)
  })
  const continues: I32 =
    lowered.continueWhile === undefined
      ? i32.const(1)
      : i32.ne(i32.load8(i32.const(memory.addressOf(lowered.continueWhile))), i32.const(0))
  const body = [
    i32.store(i32.const(current), indices),
    gathers,
    each(gatherBand),
    stacks,
    copyState(memory),
    done.set(i32.add(done, i32.const(1))),
  ]
  f.emit([once, loopWhile(body, i32.and(continues, i32.ltU(done, i32.const(count))))])
  target.module.export(exportOf("run", name), f.finish(done))
}
