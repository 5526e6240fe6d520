/** Emits groups (nodes of one loop) for `compile.ts`: adds functions to the module, and returns the calls of these. */
import { call, f32x4, i32, type I32, memoryFill, type Statement } from "../../wasm/instructions.ts"
import { type Shape, sizeOf, stridesOf } from "../Tensor.ts"
import { evaluate, expressionsOf, weightOf } from "./expression.ts"
import { addresses, FunctionBuilder, type FunctionTarget } from "./function.ts"
import type { FusedGroup } from "./fuse.ts"
import { writeGather, writeScatterAdd } from "./indexed.ts"
import { bytesPer, type Node, type Ref, restride, wholeOf, type WorkOf } from "./ir.ts"
import { apply2 } from "./math.ts"
import { writeProduct } from "./products/matmul.ts"
import type { MemoryPlan } from "./memory.ts"
import { writeNest } from "./loops.ts"
import { type Access, divisible, type Nest, type NestShape } from "./nest.ts"
import { transposedCopyOf, writeTransposedCopy } from "./transposed.ts"

/** The place where a group is computed: the addresses of arrays and, if it runs in bands, the rows. */
interface Room {
  readonly memory: MemoryPlan
  readonly band?: PlacedBand
}

/**
 * A band of `size` rows from the row `row` on. Each thread has its own copy of scratch memory, and of the arrays that
 * hold only one band: `own` and `scratch` are the offsets of this thread's copies, in bytes.
 */
export interface PlacedBand {
  readonly size: number
  readonly row: I32
  readonly own: I32
  readonly scratch: I32
}

/** Emits groups that run once, one after another. */
export const emitGroups = (
  target: FunctionTarget,
  room: Room,
  groups: ReadonlyArray<FusedGroup>,
): ReadonlyArray<Statement> => groups.flatMap((group) => emitGroup(target, room, group))

const emitGroup = (target: FunctionTarget, room: Room, group: FusedGroup): ReadonlyArray<Statement> => {
  const { core } = group
  const { memory } = room
  switch (core?.work.kind) {
    case undefined:
    case "reduce":
      return [emitNest(target, room, group)]
    case "matmul":
      return [emitProduct(target, room, group, core, core.work)]
    case "scan":
      return [emitScan(target, room, group, core, core.work)]
    case "gather":
      return [emitGather(target, memory, core, core.work)]
    case "scatterAdd":
      return [emitScatterAdd(target, memory, core, core.work)]
    case "assemble":
      return emitAssemble(target, room, group, core, core.work)
    case "leaf":
    case "constant":
    case "map":
      throw new Error(`emit: unexpected group of one ${core?.work.kind}`)
  }
}

/** Writes a function whose parameters are addresses, and returns a call of it. */
const emitCall = (
  target: FunctionTarget,
  name: string,
  args: ReadonlyArray<I32>,
  write: (f: FunctionBuilder) => void,
): Statement => {
  const f = new FunctionBuilder(target, { params: addresses(args.length), results: [] }, name)
  write(f)
  return call(f.finish(), args)
}

/** Names a group's function after its shapes and maps, such as `product 128x4x64: add tanh` for m, k and n. */
const nameOf = ({ core, dims, members }: FusedGroup, band?: PlacedBand): string => {
  const maps = [...members]
    .sort((a, b) => a.id - b.id)
    .flatMap(({ work }) => (work.kind === "map" ? [typeof work.fn === "object" ? "clip" : work.fn] : []))
  const shape = dims.join("x")
  const what =
    core?.work.kind === "matmul"
      ? `product ${[...core.inputs[0].shape, ...core.shape.slice(-1)].join("x")} by ${core.work.along}`
      : core?.work.kind === "reduce"
        ? `${core.work.fn} ${shape} to ${core.shape.join("x") || 1}`
        : `maps ${shape}`
  const whole = maps.length === 0 ? what : `${what}: ${maps.join(" ")}`
  return band === undefined ? whole : `${band.size} rows of ${whole}`
}

/** Divides a nest among the threads; undefined if one thread computes it. */
const slicesOf = ({ slices }: FunctionTarget, group: FusedGroup, nest: NestShape) => {
  const division = slices && divisible(nest)
  return division && slices?.of(division, group)
}

/**
 * Emits a nest (nested loops, see `nest.ts`), in slices if it is large and threads share the work. `compute` writes the
 * computation into a function.
 */
const emitLoops = (
  target: FunctionTarget,
  room: Room,
  name: string,
  group: FusedGroup,
  nest: NestShape,
  compute: (f: FunctionBuilder) => Nest["compute"],
): Statement => {
  const slices = slicesOf(target, group, nest)
  const write = (args: ReadonlyArray<I32>, part?: number): Statement =>
    emitCall(target, name, args, (f) => writeNest(f, { ...nest, compute: compute(f) }, part))
  if (room.band !== undefined) return write([room.band.row, room.band.own])
  if (slices === undefined || target.slices === undefined) return write([])
  return target.slices.run(slices.map(({ from, size }) => write([i32.const(from)], size)))
}

const inBytes = (strides: ReadonlyArray<number>, node: Node): ReadonlyArray<number> =>
  strides.map((stride) => stride * bytesPer(node.dtype))

const baseOf = (memory: MemoryPlan, { node, offset }: Ref): number =>
  memory.addressOf(node) + offset * bytesPer(node.dtype)

/** Describes how a loop over `dims` reads or writes an array. Without a room, the address is 0. */
const accessOf = (room: Room | undefined, ref: Ref, dims: Shape): Access => {
  const elements = restride(ref.shape, ref.strides, dims)
  if (elements === undefined) throw new Error("emit: an array does not fit the loop that reads it")
  const strides = inBytes(elements, ref.node)
  const { dtype } = ref.node
  if (room === undefined) return { dtype, base: 0, strides }
  return { dtype, base: baseOf(room.memory, ref), strides, inBand: room.memory.local.has(ref.node) }
}

/**
 * Describes the array of a reduction's result, with a stride for each dimension of the loop; the stride of a reduced
 * dimension is 0.
 */
const reducedAccess = (room: Room | undefined, node: Node, { dims, reduced }: FusedGroup): Access => {
  const kept = [...inBytes(stridesOf(dims.filter((_, d) => !reduced[d])), node)]
  const strides = reduced.map((isReduced) => (isReduced ? 0 : (kept.shift() ?? 0)))
  const { dtype } = node
  if (room === undefined) return { dtype, base: 0, strides }
  return { dtype, base: room.memory.addressOf(node), strides, inBand: room.memory.local.has(node) }
}

/**
 * Describes the loops of a group of maps, or of maps and a reduction. Without a room, the addresses of arrays are 0.
 */
export const nestOf = (group: FusedGroup, room?: Room): NestShape => {
  const { core, dims, reduced } = group
  const stored = [...group.stored].filter((node) => node !== core)
  const write = core && reducedAccess(room, core, group)
  const continues = room?.band !== undefined && reduced[0]
  const waiting = core && continues ? room.memory.sumsAt(core) : undefined
  return {
    dims,
    reads: expressionsOf(group).operands.map((ref) => accessOf(room, ref, dims)),
    writes: stored.map((node) => accessOf(room, wholeOf(node), dims)),
    weight: weightOf(group),
    carry:
      core?.work.kind === "reduce" && write !== undefined
        ? { fn: core.work.fn, over: reduced, write, continues, waiting }
        : undefined,
    band: room?.band?.size,
  }
}

/** Tells whether a group only copies an array. */
const isCopy = ({ core, members }: FusedGroup): boolean =>
  core === undefined &&
  members.size === 1 &&
  [...members].every(({ work }) => work.kind === "map" && work.fn === "copy")

const emitNest = (target: FunctionTarget, room: Room, group: FusedGroup): Statement => {
  const { core } = group
  const expressions = expressionsOf(group)
  const stored = [...group.stored].filter((node) => node !== core)
  const [nest, name] = [nestOf(group, room), nameOf(group, room.band)]
  const transposed = isCopy(group) && room.band === undefined ? transposedCopyOf(nest) : undefined
  if (transposed !== undefined && slicesOf(target, group, nest) === undefined)
    return emitCall(target, name, [], (f) => writeTransposedCopy(f, transposed))
  return emitLoops(target, room, name, group, nest, (f) => (read, width) => {
    const value = evaluate(f, expressions, width, read)
    const written = stored.map(value)
    return core === undefined ? written : [...written, value(core)]
  })
}

const emitScan = (
  target: FunctionTarget,
  room: Room,
  group: FusedGroup,
  node: Node,
  work: WorkOf<"scan">,
): Statement => {
  const { axis, exclusive, reverse } = work
  const { shape } = node
  const over = shape.map((_, d) => d === axis)
  const nest: NestShape = {
    dims: shape,
    reads: [accessOf(room, node.inputs[0], shape)],
    writes: [],
    carry: { fn: "sum", over, write: accessOf(room, wholeOf(node), shape), scan: { exclusive, reverse } },
  }
  return emitLoops(target, room, `running sums ${shape.join("x")}`, group, nest, () => (read) => [read(0)])
}

const emitAssemble = (
  target: FunctionTarget,
  room: Room,
  group: FusedGroup,
  node: Node,
  { pieces, fill, accumulate }: WorkOf<"assemble">,
): ReadonlyArray<Statement> => {
  const { memory } = room
  const { dtype, shape } = node
  const base = memory.addressOf(node)
  const bytes = bytesPer(dtype)
  const whole = { dtype, base, strides: [bytes] }
  const writeFill = (f: FunctionBuilder, value: number): void => {
    if (value === 0) return f.emit(memoryFill(i32.const(base), i32.const(0), i32.const(bytes * sizeOf(shape))))
    const compute = (_: unknown, width: number) => {
      const word = dtype === "f32" ? f.constant(value) : f.word(dtype === "bool" ? -1 : value)
      return [new Array(width).fill(f.let(word))]
    }
    writeNest(f, { dims: [sizeOf(shape)], reads: [], writes: [whole], compute })
  }
  const filled = fill === undefined ? [] : [emitCall(target, `fill ${shape.join("x")}`, [], (f) => writeFill(f, fill))]
  const added = node.inputs.flatMap((ref, i) => {
    const to: Access = { dtype, base: base + pieces[i].offset * bytes, strides: inBytes(pieces[i].strides, node) }
    if (memory.inPlace.has(ref.node) && memory.addressOf(ref.node) === to.base) return []
    const from = accessOf(room, ref, ref.shape)
    const nest = { dims: ref.shape, reads: accumulate ? [from, to] : [from], writes: [to] }
    const name = `${accumulate ? "add" : "copy"} piece ${ref.shape.join("x")}`
    return emitLoops(target, room, name, group, nest, (f) => (read) => [
      accumulate ? apply2(f, f32x4.add, read(1), read(0)) : read(0),
    ])
  })
  return [...filled, ...added]
}

/** Chooses the axis of a product's result that threads divide: one of the batch, else the rows or the columns. */
const productDivision = (
  shape: Shape,
  along: "columns" | "rows" | "inner",
): { readonly axis: number; readonly size: number; readonly unit: number } => {
  const rows = shape.length - 2
  const unitOf = (axis: number): number => {
    if (axis < rows) return 1
    return along === "inner" || (axis === rows) === (along === "columns") ? 4 : 16
  }
  const axes = shape.map((size, axis) => ({ axis, size, unit: unitOf(axis) }))
  return axes.reduce((best, next) => (next.size / next.unit > best.size / best.unit ? next : best))
}

/**
 * Emits a product. In a band, it computes some rows of the result. A product that sums over all rows is different: a
 * band adds its part to sums that wait in memory, and a last call without a band turns these sums into the result.
 */
const emitProduct = (
  target: FunctionTarget,
  room: Room,
  group: FusedGroup,
  core: Node,
  { along }: WorkOf<"matmul">,
): Statement => {
  const { band, memory } = room
  const [a, b] = core.inputs
  const sums = memory.sumsAt(core)
  const adds = sums !== undefined && band !== undefined
  const expressions = expressionsOf(group)
  const written = [...group.stored]
  const reads = adds ? [] : expressions.operands.map((ref) => accessOf(room, ref, core.shape))
  const writes = adds ? [] : written.map((node) => accessOf(room, wholeOf(node), core.shape))
  const [left, right] = [inBytes(a.strides, a.node), inBytes(b.strides, b.node)]
  const inner = a.shape[a.shape.length - 1]
  const k = sums === undefined ? inner : (band?.size ?? 0)
  const whole = band === undefined || adds ? core.shape : core.shape.with(0, band.size)
  /**
   * Writes the product of this shape. The address of scratch memory is fixed, or a parameter after those for `bases`.
   */
  const write = (shape: Shape, args: ReadonlyArray<I32>): Statement =>
    emitCall(target, nameOf(group, band), args, (f) =>
      writeProduct(f, {
        along,
        batch: shape.slice(0, -2),
        m: shape[shape.length - 2],
        k,
        n: shape[shape.length - 1],
        a: left,
        b: right,
        typeOfB: b.node.dtype,
        reads,
        writes,
        scratch: args.length > bases.length ? f.param("i32", bases.length) : i32.const(target.scratch.address),
        sums: sums === undefined ? undefined : { address: i32.const(sums), adds },
        finish: (product, read) => {
          const value = evaluate(f, expressions, product.length, read, new Map([[core, product]]))
          return written.map(value)
        },
      }),
    )
  const bases = [baseOf(memory, a), baseOf(memory, b), ...[...reads, ...writes].map(({ base }) => base)]
  if (band !== undefined) {
    const sides = [
      bandAt(band, baseOf(memory, a), left[adds ? 1 : 0], memory.local.has(a.node)),
      bandAt(band, baseOf(memory, b), adds ? right[0] : 0, memory.local.has(b.node)),
    ]
    const others = [...reads, ...writes].map(({ base, inBand, strides }) => bandAt(band, base, strides[0], inBand))
    return write(whole, [...sides, ...others, i32.add(i32.const(target.scratch.address), band.scratch)])
  }
  const division = productDivision(core.shape, along)
  const slices = sums === undefined ? target.slices?.of(division, group) : undefined
  if (slices === undefined || target.slices === undefined) return write(core.shape, bases.map(i32.const))
  const { axis } = division
  const rows = core.shape.length - 2
  /** For each of `bases`: the number of bytes from one element to the next along the axis. */
  const strides = [
    axis === rows + 1 ? 0 : left[axis],
    axis === rows ? 0 : right[axis],
    ...[...reads, ...writes].map((access) => access.strides[axis]),
  ]
  const calls = slices.map(({ from, size }, i) => {
    const scratch = target.scratch.address + i * target.scratch.bytes
    const moved = bases.map((base, at) => base + from * strides[at])
    return write(core.shape.with(axis, size), [...moved, scratch].map(i32.const))
  })
  return target.slices.run(calls)
}

/**
 * Returns the address of a band in an array. With `inBand`, the array has only the band's rows; otherwise it has all
 * rows.
 */
const bandAt = ({ own, row }: PlacedBand, base: number, stride: number, inBand = false): I32 => {
  if (inBand) return i32.add(i32.const(base), own)
  return stride === 0 ? i32.const(base) : i32.add(i32.const(base), i32.mul(row, i32.const(stride)))
}

const emitGather = (target: FunctionTarget, memory: MemoryPlan, node: Node, { width }: WorkOf<"gather">): Statement => {
  const [data, indices] = node.inputs
  const args = [baseOf(memory, data), baseOf(memory, indices), memory.addressOf(node)].map(i32.const)
  return gatherCall(target, args, data.shape[0], width * bytesPer(node.dtype), sizeOf(indices.shape))
}

/** Emits a gather of `count` rows of `bytes` bytes; `args` are the addresses of data, indices and output. */
export const gatherCall = (
  target: FunctionTarget,
  args: ReadonlyArray<I32>,
  rows: number,
  bytes: number,
  count: number,
): Statement => emitCall(target, `gather ${count}x${bytes} bytes`, args, (f) => writeGather(f, rows, bytes, count))

const emitScatterAdd = (
  target: FunctionTarget,
  memory: MemoryPlan,
  node: Node,
  { width }: WorkOf<"scatterAdd">,
): Statement => {
  const [indices, updates] = node.inputs
  const args = [baseOf(memory, indices), baseOf(memory, updates), memory.addressOf(node)].map(i32.const)
  const count = sizeOf(indices.shape)
  return emitCall(target, `scatter ${count}x${width}`, args, (f) => writeScatterAdd(f, node.shape[0], width, count))
}
