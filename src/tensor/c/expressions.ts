/** Writes the maps (elementwise nodes) of a group as expressions of C, one element at a time. */
import type { DType } from "../graph/Tensor.ts"
import type { expressionsOf } from "../graph/wasm/expression.ts"
import { nodesOf } from "../graph/wasm/fuse.ts"
import type { MapFn, Node } from "../graph/wasm/ir.ts"
import { floatInC } from "./literals.ts"
import type { Writer } from "./writer.ts"

const comparisons: Partial<Record<string, string>> = {
  less: "<",
  lessEqual: "<=",
  greater: ">",
  greaterEqual: ">=",
  equal: "==",
  notEqual: "!=",
}
const arithmetic: Partial<Record<string, string>> = { add: "+", sub: "-", mul: "*", div: "/" }

/** Writes the maps of a group, and returns a function that gives the expression of a node's value. */
export const writeMaps = (
  w: Writer,
  expressions: ReturnType<typeof expressionsOf>,
  read: (operand: number) => string,
  computed: ReadonlyMap<Node, string> = new Map(),
): ((node: Node) => string) => {
  const values = new Map(computed)
  const inputsOf = (node: Node): ReadonlyArray<string> =>
    (expressions.sources.get(node) ?? []).map((source, i) => {
      if (source.kind === "operand") return read(source.index)
      if (source.kind === "scalar") return w.number(node.inputs[i].node.dtype, source.value)
      const value = values.get(source.node)
      if (value === undefined) throw new Error("c: a value is used before it is computed")
      return value
    })
  for (const node of nodesOf(expressions.group)) {
    if (node.work.kind !== "map" || values.has(node)) continue
    const name = `x${values.size}`
    const value = expressionOf(w, node.work.fn, inputsOf(node), node.inputs[0].node.dtype)
    w.line(`const ${valueTypes[node.dtype]} ${name} = ${value};`)
    values.set(node, name)
  }
  return (node) => values.get(node) ?? inputsOf(node)[0]
}

/** The types of values in expressions; in arrays, a bool is a byte. */
const valueTypes: Readonly<Record<DType, string>> = {
  f32: "float",
  i32: "int32_t",
  i8: "int",
  bool: "int",
}

/** Returns the expression that stores a value in an array. */
export const stored = (dtype: DType, value: string): string => {
  if (dtype === "bool") return `(unsigned char)${value}`
  return dtype === "i8" ? `(signed char)${value}` : value
}

const expressionOf = (w: Writer, fn: MapFn, [x, y, z]: ReadonlyArray<string>, from: DType): string => {
  if (typeof fn === "object") return clipped(w, fn.clip, x)
  const comparison = comparisons[fn]
  if (comparison !== undefined) return `${x} ${comparison} ${y}`
  const operator = arithmetic[fn]
  if (operator !== undefined)
    return from === "i32" ? `(int32_t)((uint32_t)${x} ${operator} (uint32_t)${y})` : `${x} ${operator} ${y}`
  return otherExpression(w, fn, [x, y, z], from)
}

const clipped = (w: Writer, [low, high]: readonly [number, number], x: string): string => {
  const [from, to] = [low, high].map((bound) => w.number("f32", bound))
  const raised = low === -Infinity ? x : `(${x} < ${from} ? ${from} : ${x})`
  return high === Infinity ? raised : `${to} < ${raised} ? ${to} : ${raised}`
}

const otherExpression = (
  w: Writer,
  fn: Exclude<MapFn, object>,
  [x, y, z]: ReadonlyArray<string>,
  from: DType,
): string => {
  switch (fn) {
    case "min":
    case "max":
      return combined(w, fn, from, x, y)
    case "pow":
      return `${w.fn("pow")}(${x}, ${y})`
    case "neg":
      return `-${x.startsWith("-") ? `(${x})` : x}`
    case "reciprocal":
      return `${floatInC(1)} / ${x}`
    case "abs":
    case "sign":
    case "exp":
    case "log":
    case "sqrt":
    case "sin":
    case "cos":
    case "tanh":
    case "sigmoid":
    case "relu":
    case "softplus":
    case "floor":
      return `${w.fn(fn)}(${x})`
    case "and":
      return `${x} & ${y}`
    case "or":
      return `${x} | ${y}`
    case "not":
      return `!${x}`
    case "where":
      return `${x} ? ${y} : ${z}`
    case "copy":
      return x
    case "toInt":
      return from === "bool" ? x : `${w.fn("to_int")}(${x})`
    case "toFloat":
      return `(float)${x}`
    case "toBool":
      return `${x} != 0`
    default:
      throw new Error(`c: unknown function ${fn}`)
  }
}

/** Returns the sum, the maximum or the minimum of two values. */
export const combined = (w: Writer, fn: "sum" | "max" | "min", dtype: DType, a: string, b: string): string => {
  if (fn === "sum") return dtype === "i32" ? `(int32_t)((uint32_t)${a} + (uint32_t)${b})` : `${a} + ${b}`
  if (dtype === "f32") return `${w.fn(fn === "max" ? "maximum" : "minimum")}(${a}, ${b})`
  return `${a} ${fn === "max" ? ">" : "<"} ${b} ? ${a} : ${b}`
}
