/**
 * Writes the groups of a program (`graph/wasm/fuse.ts`) as loops of C over single numbers. Sums are taken in the order in
 * which the WebAssembly module takes them: where the lanes of vectors are parts of one sum, so are the elements of a small
 * array here.
 */
import { type DType, sizeOf, stridesOf } from "../graph/Tensor.ts"
import { nestOf } from "../graph/wasm/emit.ts"
import { expressionsOf } from "../graph/wasm/expression.ts"
import type { FusedGroup } from "../graph/wasm/fuse.ts"
import { bytesPer, type Node, type Ref, restride, wholeOf, type WorkOf } from "../graph/wasm/ir.ts"
import { type Access, isCarried, planned, vectorsTogether } from "../graph/wasm/nest.ts"
import { combined, stored, writeMaps } from "./expressions.ts"
import { typesInC } from "./literals.ts"
import { indexOf, type Loop, type Writer } from "./writer.ts"

/** Writes the code of one group. */
export const writeGroup = (w: Writer, group: FusedGroup): void => {
  const { core } = group
  const work = core?.work
  w.line(`/* ${commentOf(group)} */`)
  w.block("", () => {
    if (core === undefined || work?.kind === "reduce") writeNest(w, group)
    else if (work?.kind === "matmul") writeProduct(w, group, core, work)
    else if (work?.kind === "scan") writeScan(w, core, work)
    else if (work?.kind === "gather") writeGather(w, core, work)
    else if (work?.kind === "scatterAdd") writeScatterAdd(w, core, work)
    else if (work?.kind === "assemble") writeAssemble(w, core, work)
    else throw new Error(`c: unexpected group of one ${work?.kind}`)
  })
}

/** Says what a group computes, in words of this library alone. */
const commentOf = ({ core, dims, members }: FusedGroup): string => {
  const maps = [...members]
    .sort((a, b) => a.id - b.id)
    .flatMap(({ work }) => (work.kind === "map" ? [typeof work.fn === "object" ? "clip" : work.fn] : []))
  const shape = dims.length === 0 ? "1" : dims.join(" x ")
  const after = maps.length === 0 ? "" : `: ${maps.join(", ")}`
  if (core === undefined) return `${shape}${after}`
  const { kind } = core.work
  if (kind === "matmul") return `product ${[...core.inputs[0].shape, core.shape.at(-1)].join(" x ")}${after}`
  return kind === "reduce" ? `${core.work.fn} of ${shape}${after}` : `${kind} ${shape}`
}

const loopsOver = (dims: ReadonlyArray<number>): ReadonlyArray<Loop> =>
  dims.map((size, level) => ({ variable: `i${level}`, size }))

const needed = (loops: ReadonlyArray<Loop>): ReadonlyArray<Loop> => loops.filter(({ size }) => size > 1)

const elements = ({ dtype, strides }: Access): ReadonlyArray<number> =>
  strides.map((stride) => stride / bytesPer(dtype))

/** Writes a group of maps, or of maps and a reduction. */
const writeNest = (w: Writer, group: FusedGroup): void => {
  const { core } = group
  const { along, nest } = planned(nestOf(group))
  const expressions = expressionsOf(group)
  const written = [...group.stored].filter((node) => node !== core)
  const loops = loopsOver(nest.dims)
  const read = (operand: number): string =>
    w.element(expressions.operands[operand], loops, elements(nest.reads[operand]))
  /** Writes the maps, and what they store; returns the expression of the reduction's input. */
  const compute = (): string => {
    const value = writeMaps(w, expressions, read)
    written.forEach((node, i) => {
      const to = w.element(wholeOf(node), loops, elements(nest.writes[i]))
      w.line(`${to} = ${stored(node.dtype, value(node))};`)
    })
    return core === undefined ? "" : value(core)
  }
  const { carry } = nest
  if (core === undefined || carry === undefined) return w.loops(needed(loops), () => void compute())
  const carriesLanes = along >= 0 && isCarried(nest, along)
  const outer = loops.filter((_, d) => !isCarried(nest, d))
  const inner = loops.filter((_, d) => isCarried(nest, d) && !(carriesLanes && d === along))
  const to = (): string => w.element(wholeOf(core), loops, elements(carry.write))
  const { fn } = carry
  const start = w.number(core.dtype, startOf(fn, core.dtype))
  const type = typesInC[core.dtype]
  w.loops(needed(outer), () => {
    if (!carriesLanes) {
      w.line(`${type} total = ${start};`)
      w.loops(needed(inner), () => w.line(`total = ${combined(w, fn, core.dtype, "total", compute())};`))
      w.line(`${to()} = total;`)
      return
    }
    const lanes = loops[along]
    const vectors = Math.min(vectorsTogether(nest), Math.ceil(lanes.size / 4))
    const partial = `part[${lanes.size <= 4 * vectors ? lanes.variable : `${lanes.variable} % ${4 * vectors}`}]`
    w.line(`${type} part[${4 * vectors}];`)
    w.loops([{ variable: "lane", size: 4 * vectors }], () => w.line(`part[lane] = ${start};`))
    w.loops([...needed(inner), lanes], () => w.line(`${partial} = ${combined(w, fn, core.dtype, partial, compute())};`))
    w.line(`${to()} = ${joined(w, fn, core.dtype, vectors)};`)
  })
}

const startOf = (fn: "sum" | "max" | "min", dtype: DType): number => {
  if (fn === "sum") return 0
  if (dtype === "f32") return fn === "max" ? -Infinity : Infinity
  return fn === "max" ? -0x80000000 : 0x7fffffff
}

/** Combines the parts of a reduction in pairs, and returns the expression of the whole. */
const joined = (w: Writer, fn: "sum" | "max" | "min", dtype: DType, vectors: number): string => {
  for (let count = vectors; count > 1; count = Math.ceil(count / 2)) {
    const half = Math.ceil(count / 2)
    const upper = `part[lane + ${4 * half}]`
    const add = (): void => w.line(`part[lane] = ${combined(w, fn, dtype, "part[lane]", upper)};`)
    w.loops([{ variable: "lane", size: 4 * (count - half) }], add)
  }
  w.line(`const ${typesInC[dtype]} even = ${combined(w, fn, dtype, "part[0]", "part[2]")};`)
  w.line(`const ${typesInC[dtype]} odd = ${combined(w, fn, dtype, "part[1]", "part[3]")};`)
  return combined(w, fn, dtype, "even", "odd")
}

/** Writes a product, and the maps of its group. */
const writeProduct = (w: Writer, group: FusedGroup, core: Node, { along }: WorkOf<"matmul">): void => {
  const [a, b] = core.inputs
  const rank = core.shape.length
  const k = a.shape[rank - 1]
  const loops = loopsOver(core.shape)
  const inner: Loop = { variable: "k", size: k }
  const rows = loops.slice(0, -1)
  const columns = [...loops.slice(0, -2), loops[rank - 1]]
  const left = innerLast(w, a, rank - 1)
  const right = innerLast(w, { ...b, ...swapped(b) }, rank - 1)
  const product = `${left([...rows, inner])} * ${right([...columns, inner])}`
  const expressions = expressionsOf(group)
  const at = (ref: Ref): string => {
    const strides = restride(ref.shape, ref.strides, core.shape)
    if (strides === undefined) throw new Error("c: an array does not fit the product that reads it")
    return w.element(ref, loops, strides)
  }
  w.loops(needed(loops), () => {
    if (along === "inner") {
      w.line("float part[4] = {0.0f, 0.0f, 0.0f, 0.0f};")
      w.loops([inner], () => w.line(`part[k % 4] += ${product};`))
      w.line("const float total = (part[0] + part[2]) + (part[1] + part[3]);")
    } else {
      w.line("float total = 0.0f;")
      w.loops([inner], () => w.line(`total += ${product};`))
    }
    const value = writeMaps(w, expressions, (operand) => at(expressions.operands[operand]), new Map([[core, "total"]]))
    for (const node of group.stored) w.line(`${at(wholeOf(node))} = ${stored(node.dtype, value(node))};`)
  })
}

const swapped = ({ shape, strides }: Ref): Pick<Ref, "shape" | "strides"> => {
  const swap = (list: ReadonlyArray<number>): ReadonlyArray<number> => [
    ...list.slice(0, -2),
    ...list.slice(-2).toReversed(),
  ]
  return { shape: swap(shape), strides: swap(strides) }
}

/**
 * Returns a function that writes an element of an operand whose last axis is the inner dimension. A matrix of constants is
 * rearranged so that the numbers that are added up are neighbours.
 */
const innerLast = (w: Writer, ref: Ref, last: number): ((loops: ReadonlyArray<Loop>) => string) => {
  const { node, offset, shape, strides } = ref
  const numbers = w.numbersOf(node)
  const isMatrix = strides.slice(0, -2).every((stride, axis) => stride === 0 || shape[axis] === 1)
  if (numbers === undefined || !isMatrix || strides[last] === 1) return (loops) => w.element(ref, loops, strides)
  const [rows, inner] = shape.slice(-2)
  const [down, across] = strides.slice(-2)
  const data = new Float32Array(rows * inner)
  for (let row = 0; row < rows; row++) {
    for (let at = 0; at < inner; at++) data[row * inner + at] = numbers[offset + row * down + at * across]
  }
  const name = w.constant("f32", data, [rows, inner])
  const packed = [...shape.slice(0, -2).map(() => 0), inner, 1]
  return (loops) => `${name}[${indexOf(0, loops, packed)}]`
}

/** Writes sums along an axis in which each element has the sum of those before it. */
const writeScan = (w: Writer, node: Node, { axis, exclusive, reverse }: WorkOf<"scan">): void => {
  const [input] = node.inputs
  const { dtype, shape } = node
  const size = shape[axis]
  const loops = loopsOver(shape)
  const places = loops.with(axis, { variable: "at", size })
  const from = w.element(input, places, input.strides)
  const to = w.element(wholeOf(node), places, stridesOf(shape))
  w.loops(needed(loops.filter((_, d) => d !== axis)), () => {
    w.line(`${typesInC[dtype]} total = ${w.number(dtype, 0)};`)
    w.loops([{ variable: "step", size }], () => {
      if (size > 1) w.line(`const int32_t at = ${reverse ? `${size - 1} - step` : "step"};`)
      if (exclusive) w.line(`${to} = total;`)
      w.line(`total = ${combined(w, "sum", dtype, "total", from)};`)
      if (!exclusive) w.line(`${to} = total;`)
    })
  })
}

/** Copies inputs to their pieces of an array, or adds them there. */
const writeAssemble = (w: Writer, node: Node, { accumulate, fill, pieces }: WorkOf<"assemble">): void => {
  const { dtype, shape } = node
  if (fill !== undefined) {
    const loops = loopsOver([sizeOf(shape)])
    const to = w.element(wholeOf(node), loops, [1])
    w.loops(needed(loops), () => w.line(`${to} = ${w.number(dtype, fill)};`))
  }
  node.inputs.forEach((ref, i) => {
    const loops = loopsOver(ref.shape)
    const to = w.element({ ...wholeOf(node), offset: pieces[i].offset }, loops, pieces[i].strides)
    const from = w.element(ref, loops, ref.strides)
    w.loops(needed(loops), () => w.line(`${to} = ${accumulate ? combined(w, "sum", dtype, to, from) : from};`))
  })
}

/** Returns the expression of a row's index; one that is out of range becomes the last row. */
const rowIn = (w: Writer, indices: Ref, loop: Loop, rows: number): string => {
  const index = w.element(indices, [loop], [1])
  return `(uint32_t)${index} < ${rows}u ? ${index} : ${rows - 1}`
}

const writeGather = (w: Writer, node: Node, { width }: WorkOf<"gather">): void => {
  const [data, indices] = node.inputs
  const loops: ReadonlyArray<Loop> = [
    { variable: "i0", size: sizeOf(indices.shape) },
    { variable: "i1", size: width },
  ]
  const [row, column] = [{ variable: "row", size: Infinity }, loops[1]]
  const to = w.element(wholeOf(node), loops, [width, 1])
  w.loops(needed(loops), () => {
    w.line(`const int32_t row = ${rowIn(w, indices, loops[0], data.shape[0])};`)
    w.line(`${to} = ${w.element(data, [row, column], [width, 1])};`)
  })
}

const writeScatterAdd = (w: Writer, node: Node, { width }: WorkOf<"scatterAdd">): void => {
  const [indices, updates] = node.inputs
  const loops: ReadonlyArray<Loop> = [
    { variable: "i0", size: sizeOf(indices.shape) },
    { variable: "i1", size: width },
  ]
  const all = loopsOver([sizeOf(node.shape)])
  const to = w.element(wholeOf(node), [{ variable: "row", size: Infinity }, loops[1]], [width, 1])
  w.loops(needed(all), () => w.line(`${w.element(wholeOf(node), all, [1])} = 0.0f;`))
  w.loops(needed(loops), () => {
    w.line(`const int32_t row = ${rowIn(w, indices, loops[0], node.shape[0])};`)
    w.line(`${to} = ${to} + ${w.element(updates, loops, [width, 1])};`)
  })
}
