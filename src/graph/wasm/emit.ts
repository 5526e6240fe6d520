/** Emits groups (nodes of one loop) for `compile.ts`: adds functions to the module, and returns the calls of these. */
import { call, f32x4, i32, type I32, memoryFill, type Statement } from "../../formats/wasm/instructions.ts"
import { type Shape, sizeOf, stridesOf } from "../Tensor.ts"
import { evaluate, expressionsOf, weightOf } from "./expression.ts"
import { addresses, FunctionBuilder, type Target } from "./function.ts"
import type { Group } from "./fuse.ts"
import { writeGather, writeScatterAdd } from "./indexed.ts"
import { bytesPer, type Node, type Ref, restride, wholeOf, type WorkOf } from "./ir.ts"
import { apply2 } from "./math.ts"
import { writeProduct } from "./matmul.ts"
import type { MemoryPlan } from "./memory.ts"
import { type Access, divisible, type Nest, type NestShape, writeNest } from "./nest.ts"

export const emitGroup = (target: Target, memory: MemoryPlan, group: Group): ReadonlyArray<Statement> => {
  const { core } = group
  switch (core?.work.kind) {
    case undefined:
    case "reduce":
      return [emitNest(target, memory, group)]
    case "matmul":
      return [emitProduct(target, memory, group, core, core.work)]
    case "scan":
      return [emitScan(target, memory, group, core, core.work)]
    case "gather":
      return [emitGather(target, memory, core, core.work)]
    case "scatterAdd":
      return [emitScatterAdd(target, memory, core, core.work)]
    case "assemble":
      return emitAssemble(target, memory, group, core, core.work)
    case "leaf":
    case "constant":
    case "map":
      throw new Error(`emit: unexpected group of one ${core?.work.kind}`)
  }
}

/** Writes a function whose parameters are addresses, and returns a call of it. */
const emitCall = (
  target: Target,
  name: string,
  args: ReadonlyArray<I32>,
  write: (f: FunctionBuilder) => void,
): Statement => {
  const f = new FunctionBuilder(target, { params: addresses(args.length), results: [] }, name)
  write(f)
  return call(f.finish(), args)
}

/** Names a group's function after its shapes and maps, such as `product 128x4x64: add tanh` for m, k and n. */
const nameOf = ({ core, dims, members }: Group): string => {
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
  return maps.length === 0 ? what : `${what}: ${maps.join(" ")}`
}

/**
 * Emits a nest, in slices if it is large and threads share the work. `compute` writes its computation, in the function that
 * it is given.
 */
const emitLoops = (
  target: Target,
  name: string,
  group: Group,
  nest: NestShape,
  compute: (f: FunctionBuilder) => Nest["compute"],
): Statement => {
  const division = target.slices && divisible(nest)
  const slices = division && target.slices?.of(division, group)
  const write = (args: ReadonlyArray<I32>, part?: number): Statement =>
    emitCall(target, name, args, (f) => writeNest(f, { ...nest, compute: compute(f) }, part))
  if (slices === undefined || target.slices === undefined) return write([])
  return target.slices.run(slices.map(({ from, size }) => write([i32.const(from)], size)))
}

const inBytes = (strides: ReadonlyArray<number>, node: Node): ReadonlyArray<number> =>
  strides.map((stride) => stride * bytesPer(node.dtype))

const baseOf = (memory: MemoryPlan, { node, offset }: Ref): number =>
  memory.addressOf(node) + offset * bytesPer(node.dtype)

const accessOf = (memory: MemoryPlan, ref: Ref, dims: Shape): Access => {
  const strides = restride(ref.shape, ref.strides, dims)
  if (strides === undefined) throw new Error("emit: an array does not fit the loop that reads it")
  return { dtype: ref.node.dtype, base: baseOf(memory, ref), strides: inBytes(strides, ref.node) }
}

/** Returns the array of a reduction's result, with a stride for each dimension of the loop: 0 for a reduced one. */
const reducedAccess = (memory: MemoryPlan, node: Node, { dims, reduced }: Group): Access => {
  const strides = [...inBytes(stridesOf(dims.filter((_, d) => !reduced[d])), node)]
  return {
    dtype: node.dtype,
    base: memory.addressOf(node),
    strides: reduced.map((isReduced) => (isReduced ? 0 : (strides.shift() ?? 0))),
  }
}

const emitNest = (target: Target, memory: MemoryPlan, group: Group): Statement => {
  const { core, dims } = group
  const expressions = expressionsOf(group)
  const stored = [...group.stored].filter((node) => node !== core)
  const nest: NestShape = {
    dims,
    reads: expressions.operands.map((ref) => accessOf(memory, ref, dims)),
    writes: stored.map((node) => accessOf(memory, wholeOf(node), dims)),
    weight: weightOf(group),
    carry:
      core?.work.kind === "reduce"
        ? { fn: core.work.fn, over: group.reduced, write: reducedAccess(memory, core, group) }
        : undefined,
  }
  return emitLoops(target, nameOf(group), group, nest, (f) => (read, width) => {
    const value = evaluate(f, expressions, width, read)
    const written = stored.map(value)
    return core === undefined ? written : [...written, value(core)]
  })
}

const emitScan = (target: Target, memory: MemoryPlan, group: Group, node: Node, work: WorkOf<"scan">): Statement => {
  const { axis, exclusive, reverse } = work
  const { shape } = node
  const over = shape.map((_, d) => d === axis)
  const nest: NestShape = {
    dims: shape,
    reads: [accessOf(memory, node.inputs[0], shape)],
    writes: [],
    carry: { fn: "sum", over, write: accessOf(memory, wholeOf(node), shape), scan: { exclusive, reverse } },
  }
  return emitLoops(target, `running sums ${shape.join("x")}`, group, nest, () => (read) => [read(0)])
}

const emitAssemble = (
  target: Target,
  memory: MemoryPlan,
  group: Group,
  node: Node,
  { pieces, fill, accumulate }: WorkOf<"assemble">,
): ReadonlyArray<Statement> => {
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
    const from = accessOf(memory, ref, ref.shape)
    const nest = { dims: ref.shape, reads: accumulate ? [from, to] : [from], writes: [to] }
    const name = `${accumulate ? "add" : "copy"} piece ${ref.shape.join("x")}`
    return emitLoops(target, name, group, nest, (f) => (read) => [
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
  const axes = shape.map((size, axis) => {
    const unit = axis < rows ? 1 : along === "inner" ? 4 : (axis === rows) === (along === "columns") ? 4 : 16
    return { axis, size, unit }
  })
  return axes.reduce((best, next) => (next.size / next.unit > best.size / best.unit ? next : best))
}

const emitProduct = (
  target: Target,
  memory: MemoryPlan,
  group: Group,
  core: Node,
  { along }: WorkOf<"matmul">,
): Statement => {
  const [a, b] = core.inputs
  const expressions = expressionsOf(group)
  const written = [...group.stored]
  const reads = expressions.operands.map((ref) => accessOf(memory, ref, core.shape))
  const writes = written.map((node) => accessOf(memory, wholeOf(node), core.shape))
  const bases = [baseOf(memory, a), baseOf(memory, b), ...[...reads, ...writes].map(({ base }) => base)]
  const [left, right] = [inBytes(a.strides, a.node), inBytes(b.strides, b.node)]
  /** Writes the product of the given shape. Its scratch memory is at an address that is fixed or, in a slice, a parameter. */
  const write = (shape: Shape, args: ReadonlyArray<I32>): Statement =>
    emitCall(target, nameOf(group), args, (f) =>
      writeProduct(f, {
        along,
        batch: shape.slice(0, -2),
        m: shape[shape.length - 2],
        k: a.shape[a.shape.length - 1],
        n: shape[shape.length - 1],
        a: left,
        b: right,
        reads,
        writes,
        scratch: args.length > bases.length ? f.param("i32", bases.length) : i32.const(target.scratch.address),
        finish: (product, read) => {
          const value = evaluate(f, expressions, product.length, read, new Map([[core, product]]))
          return written.map(value)
        },
      }),
    )
  const division = productDivision(core.shape, along)
  const slices = target.slices?.of(division, group)
  if (slices === undefined || target.slices === undefined) return write(core.shape, bases.map(i32.const))
  const { axis } = division
  const rows = core.shape.length - 2
  /** The bytes from one element to the next along the axis, for each of `bases`. */
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

const emitGather = (target: Target, memory: MemoryPlan, node: Node, { width }: WorkOf<"gather">): Statement => {
  const [data, indices] = node.inputs
  const args = [baseOf(memory, data), baseOf(memory, indices), memory.addressOf(node)].map(i32.const)
  return gatherCall(target, args, data.shape[0], width * bytesPer(node.dtype), sizeOf(indices.shape))
}

/** Emits a gather of `count` rows of `bytes` bytes; `args` are the addresses of data, indices and output. */
export const gatherCall = (
  target: Target,
  args: ReadonlyArray<I32>,
  rows: number,
  bytes: number,
  count: number,
): Statement => emitCall(target, `gather ${count}x${bytes} bytes`, args, (f) => writeGather(f, rows, bytes, count))

const emitScatterAdd = (target: Target, memory: MemoryPlan, node: Node, { width }: WorkOf<"scatterAdd">): Statement => {
  const [indices, updates] = node.inputs
  const args = [baseOf(memory, indices), baseOf(memory, updates), memory.addressOf(node)].map(i32.const)
  const count = sizeOf(indices.shape)
  return emitCall(target, `scatter ${count}x${width}`, args, (f) => writeScatterAdd(f, node.shape[0], width, count))
}
