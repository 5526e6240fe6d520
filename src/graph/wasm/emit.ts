/**
 * Emits a group of nodes: functions in the module, and the calls that run them.
 */
import type { Shape } from "../Tensor.ts"
import { sizeOf, stridesOf } from "../Tensor.ts"
import { evaluate, type Expressions, expressionsOf, weightOf } from "./expression.ts"
import { addresses, FunctionBuilder, type Target } from "./function.ts"
import type { Group } from "./fuse.ts"
import { writeGather, writeScatterAdd } from "./indexed.ts"
import { call, i32, memoryFill, type Statement } from "../../formats/wasm/instructions.ts"
import { bytesPer, type Node, type Ref, restride } from "./ir.ts"
import { type Operand, writeProduct } from "./matmul.ts"
import type { Block } from "./math.ts"
import { f32x4 } from "../../formats/wasm/instructions.ts"
import type { MemoryPlan } from "./memory.ts"
import { type Access, writeNest } from "./nest.ts"

export const emitGroup = (target: Target, memory: MemoryPlan, group: Group): ReadonlyArray<Statement> => {
  const core = group.core
  switch (core?.work.kind) {
    case undefined:
    case "reduce":
      return [emitNest(target, memory, group)]
    case "matmul":
      return [emitProduct(target, memory, group, core)]
    case "scan":
      return [emitScan(target, memory, core)]
    case "gather":
      return [emitGather(target, memory, core)]
    case "scatterAdd":
      return [emitScatterAdd(target, memory, core)]
    case "assemble":
      return emitAssemble(target, memory, core)
    case "leaf":
    case "constant":
    case "map":
      throw new Error(`emit: unexpected group of one ${core?.work.kind}`)
  }
}

const inBytes = (strides: ReadonlyArray<number>, node: Node): ReadonlyArray<number> =>
  strides.map((stride) => stride * bytesPer(node.dtype))

const stridesOver = (ref: { readonly shape: Shape; readonly strides: ReadonlyArray<number> }, dims: Shape) => {
  const strides = restride(ref.shape, ref.strides, dims)
  if (strides === undefined) throw new Error("emit: an array does not fit the loop that reads it")
  return strides
}

const accessOf = (memory: MemoryPlan, ref: Ref, dims: Shape): Access => ({
  dtype: ref.node.dtype,
  base: memory.addressOf(ref.node) + ref.offset * bytesPer(ref.node.dtype),
  strides: inBytes(stridesOver(ref, dims), ref.node),
})

const wholeAccess = (memory: MemoryPlan, node: Node, dims: Shape): Access => ({
  dtype: node.dtype,
  base: memory.addressOf(node),
  strides: inBytes(stridesOver({ shape: node.shape, strides: stridesOf(node.shape) }, dims), node),
})

/** Returns the strides of a reduction's result over all dimensions of the loop; reduced dimensions have stride 0. */
const reducedAccess = (memory: MemoryPlan, node: Node, group: Group): Access => {
  const kept = group.dims.filter((_, d) => !group.reduced[d])
  const strides = [...inBytes(stridesOf(kept), node)]
  return {
    dtype: node.dtype,
    base: memory.addressOf(node),
    strides: group.dims.map((_, d) => (group.reduced[d] ? 0 : (strides.shift() ?? 0))),
  }
}

const storedMaps = (group: Group): ReadonlyArray<Node> => [...group.stored].filter((node) => node !== group.core)

const emitNest = (target: Target, memory: MemoryPlan, group: Group): Statement => {
  const f = new FunctionBuilder(target, { params: [], results: [] })
  const expressions = expressionsOf(group)
  const stored = storedMaps(group)
  const core = group.core
  writeNest(f, {
    dims: group.dims,
    carried: group.reduced,
    reads: expressions.operands.map((ref) => accessOf(memory, ref, group.dims)),
    writes: stored.map((node) => wholeAccess(memory, node, group.dims)),
    weight: weightOf(group),
    compute: (read, width) => {
      const value = evaluate(f, expressions, width, read)
      const written = stored.map(value)
      return core === undefined ? written : [...written, value(core)]
    },
    carry:
      core?.work.kind === "reduce"
        ? { kind: "reduce", fn: core.work.fn, write: reducedAccess(memory, core, group) }
        : undefined,
  })
  return call(f.finish())
}

const emitScan = (target: Target, memory: MemoryPlan, node: Node): Statement => {
  if (node.work.kind !== "scan") throw new Error("emit: expected a scan")
  const { axis, exclusive, reverse } = node.work
  const f = new FunctionBuilder(target, { params: [], results: [] })
  writeNest(f, {
    dims: node.shape,
    carried: node.shape.map((_, d) => d === axis),
    reads: [accessOf(memory, node.inputs[0], node.shape)],
    writes: [],
    weight: 0,
    compute: (read) => [read(0)],
    carry: { kind: "scan", exclusive, reverse, write: wholeAccess(memory, node, node.shape) },
  })
  return call(f.finish())
}

const emitAssemble = (target: Target, memory: MemoryPlan, node: Node): ReadonlyArray<Statement> => {
  if (node.work.kind !== "assemble") throw new Error("emit: expected an assemble")
  const { pieces, fill, accumulate } = node.work
  const base = memory.addressOf(node)
  const bytes = bytesPer(node.dtype)
  const statements: Array<Statement> = []
  if (fill !== undefined) {
    const f = new FunctionBuilder(target, { params: [], results: [] })
    if (fill === 0) f.emit(memoryFill(i32.const(base), i32.const(0), i32.const(bytes * sizeOf(node.shape))))
    else {
      writeNest(f, {
        dims: [sizeOf(node.shape)],
        carried: [false],
        reads: [],
        writes: [{ dtype: node.dtype, base, strides: [bytes] }],
        weight: 0,
        compute: (_, width) => {
          const word = node.dtype === "f32" ? f.constant(fill) : f.word(node.dtype === "bool" ? -1 : fill)
          return [new Array(width).fill(f.let(word))]
        },
        carry: undefined,
      })
    }
    statements.push(call(f.finish()))
  }
  node.inputs.forEach((ref, i) => {
    if (memory.inPlace.has(ref.node) && memory.addressOf(ref.node) === base + pieces[i].offset * bytes) return
    const to: Access = {
      dtype: node.dtype,
      base: base + pieces[i].offset * bytes,
      strides: inBytes(pieces[i].strides, node),
    }
    const f = new FunctionBuilder(target, { params: [], results: [] })
    writeNest(f, {
      dims: ref.shape,
      carried: ref.shape.map(() => false),
      reads: accumulate ? [accessOf(memory, ref, ref.shape), to] : [accessOf(memory, ref, ref.shape)],
      writes: [to],
      weight: 0,
      compute: (read): ReadonlyArray<Block> => {
        if (!accumulate) return [read(0)]
        const [x, y] = [read(1), read(0)]
        return [x.map((v, j) => f.let(f32x4.add(v, y[j])))]
      },
      carry: undefined,
    })
    statements.push(call(f.finish()))
  })
  return statements
}

const emitProduct = (target: Target, memory: MemoryPlan, group: Group, core: Node): Statement => {
  if (core.work.kind !== "matmul") throw new Error("emit: expected a matmul")
  const [a, b] = core.inputs
  const expressions: Expressions = expressionsOf(group)
  const written = [...group.stored]
  const operand = (access: Access): Operand => ({ dtype: access.dtype, strides: access.strides })
  const reads = expressions.operands.map((ref) => accessOf(memory, ref, core.shape))
  const writes = written.map((node) => wholeAccess(memory, node, core.shape))
  const f = new FunctionBuilder(target, { params: addresses(2 + reads.length + writes.length), results: [] })
  writeProduct(f, {
    along: core.work.along,
    batch: core.shape.slice(0, -2),
    m: core.shape[core.shape.length - 2],
    k: a.shape[a.shape.length - 1],
    n: core.shape[core.shape.length - 1],
    a: inBytes(a.strides, a.node),
    b: inBytes(b.strides, b.node),
    reads: reads.map(operand),
    writes: writes.map(operand),
    finish: (product, read) => {
      const value = evaluate(f, expressions, product.length, read, new Map([[core, product]]))
      return written.map(value)
    },
  })
  const bases = [a, b].map((ref) => memory.addressOf(ref.node) + ref.offset * bytesPer(ref.node.dtype))
  return call(
    f.finish(),
    [...bases, ...reads.map(({ base }) => base), ...writes.map(({ base }) => base)].map(i32.const),
  )
}

const emitGather = (target: Target, memory: MemoryPlan, node: Node): Statement => {
  if (node.work.kind !== "gather") throw new Error("emit: expected a gather")
  const [data, indices] = node.inputs
  const index = gatherFunction(target, data.shape[0], node.work.width * bytesPer(node.dtype), sizeOf(indices.shape))
  const base = (ref: Ref): number => memory.addressOf(ref.node) + ref.offset * bytesPer(ref.node.dtype)
  return call(index, [base(data), base(indices), memory.addressOf(node)].map(i32.const))
}

/** Makes a function that gathers; its parameters are the addresses of data, indices and output. */
export const gatherFunction = (target: Target, rows: number, bytes: number, count: number): number => {
  const f = new FunctionBuilder(target, { params: addresses(3), results: [] })
  writeGather(f, rows, bytes, count)
  return f.finish()
}

const emitScatterAdd = (target: Target, memory: MemoryPlan, node: Node): Statement => {
  if (node.work.kind !== "scatterAdd") throw new Error("emit: expected a scatterAdd")
  const [indices, updates] = node.inputs
  const f = new FunctionBuilder(target, { params: addresses(3), results: [] })
  writeScatterAdd(f, node.shape[0], node.work.width, sizeOf(indices.shape))
  const base = (ref: Ref): number => memory.addressOf(ref.node) + ref.offset * bytesPer(ref.node.dtype)
  return call(f.finish(), [base(indices), base(updates), memory.addressOf(node)].map(i32.const))
}
