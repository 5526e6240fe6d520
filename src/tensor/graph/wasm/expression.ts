/**
 * Translates the maps (elementwise nodes) of a group to vector code without branches. It finds where each input comes
 * from (memory, a constant or another node of the group), and emits the code of each op.
 */
import type { UnaryFn } from "../Tensor.ts"
import { sizeOf } from "../Tensor.ts"
import type { FunctionBuilder } from "./function.ts"
import { type FusedGroup, nodesOf } from "./fuse.ts"
import { f32x4, i32x4, v128, type V128 } from "../../wasm/instructions.ts"
import type { MapFn, Node, Ref } from "./ir.ts"
import { apply, apply2, type Block, constant, cos, exp, log, pow, sigmoid, sign, sin, softplus, tanh } from "./math.ts"

type OperandSource =
  | { readonly kind: "value"; readonly node: Node }
  | { readonly kind: "operand"; readonly index: number }
  | { readonly kind: "scalar"; readonly value: number }

type Expressions = ReturnType<typeof expressionsOf>

/**
 * Finds the sources of the members' inputs and of a reduction's input, and the operands: the arrays that the group reads
 * from memory, each once. The matmul kernel loads its own operands.
 */
export const expressionsOf = (group: FusedGroup) => {
  const operands: Array<Ref> = []
  const indices = new Map<string, number>()
  const sources = new Map<Node, ReadonlyArray<OperandSource>>()
  const inside = new Set(nodesOf(group))
  for (const node of inside) {
    if (node === group.core && node.work.kind !== "reduce") continue
    sources.set(
      node,
      node.inputs.map((ref): OperandSource => {
        const work = ref.node.work
        if (inside.has(ref.node)) return { kind: "value", node: ref.node }
        if (work.kind === "constant" && sizeOf(ref.node.shape) === 1) return { kind: "scalar", value: work.data[0] }
        const key = `${ref.node.id}@${ref.offset}:${ref.shape.join()}/${ref.strides.join()}`
        const index = indices.get(key) ?? operands.length
        if (index === operands.length) {
          operands.push(ref)
          indices.set(key, index)
        }
        return { kind: "operand", index }
      }),
    )
  }
  return { group, operands, sources }
}

/**
 * Emits the code of the group's maps for one block (a few vectors); `read` loads an operand, and `computed` has the
 * values of nodes that were computed before. Returns a function that returns the value of a node; for a reduction, it
 * returns the value of its input.
 */
export const evaluate = (
  f: FunctionBuilder,
  expressions: Expressions,
  width: number,
  read: (operand: number) => Block,
  computed: ReadonlyMap<Node, Block> = new Map(),
): ((node: Node) => Block) => {
  const values = new Map<Node, Block>(computed)
  const loaded = new Map<number, Block>()
  const scalars = new Map<string, Block>()
  const like: Block = new Array<V128>(width).fill(v128.zero)
  const resolve = (source: OperandSource, dtype: Node["dtype"]): Block => {
    if (source.kind === "value") {
      const value = values.get(source.node)
      if (value === undefined) throw new Error("expression: a value is used before it is computed")
      return value
    }
    if (source.kind === "operand") {
      const block = loaded.get(source.index) ?? read(source.index)
      loaded.set(source.index, block)
      return block
    }
    const key = `${dtype}${Object.is(source.value, -0) ? "-0" : source.value}`
    const existing = scalars.get(key)
    if (existing !== undefined) return existing
    const word = dtype === "f32" ? f.constant(source.value) : f.word(dtype === "bool" ? -source.value : source.value)
    const local = f.let(word)
    const block = like.map(() => local)
    scalars.set(key, block)
    return block
  }
  const inputsOf = (node: Node): ReadonlyArray<Block> =>
    (expressions.sources.get(node) ?? []).map((source, i) => resolve(source, node.inputs[i].node.dtype))
  for (const node of nodesOf(expressions.group)) {
    if (node.work.kind === "map" && !values.has(node)) values.set(node, compute(f, node, inputsOf(node)))
  }
  return (node) => values.get(node) ?? inputsOf(node)[0]
}

const unary: Readonly<Record<UnaryFn, (f: FunctionBuilder, x: Block) => Block>> = {
  neg: (f, x) => apply(f, f32x4.neg, x),
  abs: (f, x) => apply(f, f32x4.abs, x),
  sqrt: (f, x) => apply(f, f32x4.sqrt, x),
  floor: (f, x) => apply(f, f32x4.floor, x),
  reciprocal: (f, x) => apply2(f, f32x4.div, constant(f, 1, x), x),
  relu: (f, x) => apply2(f, f32x4.pmax, x, constant(f, 0, x)),
  sign,
  exp,
  log,
  sin,
  cos,
  tanh,
  sigmoid,
  softplus,
}

/** The instructions of comparisons, by the names that they have in `f32x4` and `i32x4`. */
const comparisons = {
  less: "lt",
  lessEqual: "le",
  greater: "gt",
  greaterEqual: "ge",
  equal: "eq",
  notEqual: "ne",
} as const

const has = <K extends string>(table: Readonly<Record<K, unknown>>, key: string): key is K => Object.hasOwn(table, key)

const compute = (f: FunctionBuilder, node: Node, inputs: ReadonlyArray<Block>): Block => {
  if (node.work.kind !== "map") throw new Error("expression: expected a map")
  const { fn } = node.work
  const [x, y] = inputs
  const from = node.inputs[0].node.dtype
  if (typeof fn === "object") {
    const low = constant(f, fn.clip[0], x)
    const high = constant(f, fn.clip[1], x)
    return x.map((v, i) => f.let(f32x4.pmin(f32x4.pmax(v, low[i]), high[i])))
  }
  if (has(unary, fn)) return unary[fn](f, x)
  switch (fn) {
    case "pow":
      return pow(f, x, y)
    case "copy":
      return x
    case "and":
      return apply2(f, v128.and, x, y)
    case "or":
      return apply2(f, v128.or, x, y)
    case "not":
      return apply(f, v128.not, x)
    case "where":
      return x.map((mask, i) => f.let(v128.bitselect(y[i], inputs[2][i], mask)))
    case "toInt":
      return from === "bool" ? apply(f, (mask) => i32x4.neg(mask), x) : apply(f, i32x4.truncSat, x)
    case "toFloat":
      return from === "bool" ? apply2(f, v128.and, x, constant(f, 1, x)) : apply(f, f32x4.convert, x)
    case "toBool": {
      const zero = constant(f, 0, x)
      return apply2(f, from === "f32" ? f32x4.ne : i32x4.ne, x, zero)
    }
  }
  if (fn === "div") return apply2(f, f32x4.div, x, y)
  const lanes = from === "f32" ? f32x4 : i32x4
  return apply2(f, lanes[has(comparisons, fn) ? comparisons[fn] : fn], x, y)
}

const heavy = new Set<MapFn>(["exp", "log", "tanh", "sigmoid", "softplus", "sin", "cos", "pow"])

/** Estimates the number of instructions for each vector, which decides how far to unroll loops. */
export const weightOf = ({ members }: FusedGroup): number =>
  [...members].reduce((sum, { work }) => (work.kind === "map" ? sum + (heavy.has(work.fn) ? 20 : 1) : sum), 0)
