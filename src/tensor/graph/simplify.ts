/** Rewrites programs to fewer ops before they are compiled, by the rules in `simplify/`. */
import { Record } from "effect"
import { exactText } from "../../base/text/text.ts"
import { evaluate } from "./evaluate.ts"
import { constant } from "./ops.ts"
import { make, sameShape } from "./ops/core.ts"
import type { ProgramSpec } from "./Program.ts"
import * as Arithmetic from "./simplify/arithmetic.ts"
import * as Movement from "./simplify/movement.ts"
import * as Reductions from "./simplify/reductions.ts"
import type { Rule, GraphInfo } from "./simplify/rule.ts"
import { arrayTypes, type Op, sizeOf, type Tensor, type TensorData, topologicalOrder, type UnaryFn } from "./Tensor.ts"
import { rootsOf } from "./validate.ts"

/**
 * Rewrites a program to fewer ops: constants are computed now, equal expressions are computed once, ops that change
 * nothing are removed, and ops that broadcast by themselves no longer read explicit broadcasts. The backends `wasm` and
 * ONNX Runtime call it before they compile. Names and shapes of inputs, states and outputs stay the same.
 *
 * Results stay the same except for rounding and the sign of zeros. The result depends on the graph alone and never has
 * more ops.
 *
 * @example
 * ```ts
 * const x = Graph.input("x", [2])
 * const lean = simplify({ name: "norm", inputs: { x }, state: {}, outputs: { y: Graph.mul(Graph.add(x, 0), 1) } })
 * lean.outputs.y // x itself
 * ```
 */
export const simplify = (spec: ProgramSpec): ProgramSpec => {
  const keyOf = keyMaker()
  let best = spec
  let fewest = countOps(spec)
  let current = spec
  for (let pass = 0; pass < maxPasses; pass++) {
    const next = rewriteOnce(current, keyOf)
    if (next === current) break
    current = next
    const count = countOps(current)
    if (count > fewest) continue
    best = current
    fewest = count
  }
  return best
}

/** Counts the ops of a program, without inputs, states and constants. */
export const countOps = (spec: ProgramSpec): number =>
  topologicalOrder(rootsOf(spec)).filter(({ inputs }) => inputs.length > 0).length

const maxPasses = 12
/** The largest number of rewrites of one tensor in one pass; the next pass continues with the result. */
const maxSteps = 8

/** Replaces `stopGradient(x)` by x. When a program is simplified, its graph already has the ops of all gradients. */
const gradientStops: Rule = ({ op, inputs }) => (op.kind === "stopGradient" ? inputs[0] : undefined)

/**
 * Tells whether an op gives the same bits in all JavaScript engines. Functions such as exp do not, so the backend must
 * compute them.
 */
const isExact = ({ op }: Tensor): boolean => {
  switch (op.kind) {
    case "unary":
      return !inexact.has(op.fn)
    case "binary":
      return op.fn !== "pow"
    case "softmax":
    case "logSoftmax":
      return false
    default:
      return true
  }
}

const inexact: ReadonlySet<UnaryFn> = new Set(["exp", "log", "sin", "cos", "tanh", "sigmoid", "softplus"])

/**
 * Replaces an op whose inputs are all constants by its result. It keeps ops whose bits differ between JavaScript
 * engines (see `isExact`), and ops whose result would make the graph larger: more than 16 elements, and more than all
 * inputs together.
 */
const folding: Rule = (tensor) => {
  const { inputs, shape, dtype } = tensor
  if (inputs.length === 0 || !inputs.every(({ op }) => op.kind === "constant") || !isExact(tensor)) return undefined
  const inputSize = inputs.reduce((total, input) => total + sizeOf(input.shape), 0)
  if (sizeOf(shape) > Math.max(16, inputSize)) return undefined
  const part = partOfConstant(tensor)
  if (part !== undefined) return constant(part, shape, dtype)
  const [values] = evaluate([tensor])
  return constant(arrayTypes[dtype].from(values), shape, dtype)
}

/** Returns the numbers of a reshaped constant, or of a slice of a vector, such as the weights of a layer; undefined for other ops. */
const partOfConstant = ({ op, inputs: [source], shape }: Tensor): TensorData | undefined => {
  if (source.op.kind !== "constant") return undefined
  const { data } = source.op
  if (op.kind === "reshape") return data
  if (op.kind !== "slice" || source.shape.length !== 1) return undefined
  return data.subarray(op.starts[0], op.starts[0] + sizeOf(shape))
}

const rules: ReadonlyArray<Rule> = [
  gradientStops,
  folding,
  Arithmetic.neutral,
  Arithmetic.signs,
  Arithmetic.scaleChains,
  Arithmetic.repeated,
  Arithmetic.truths,
  Movement.broadcasts,
  Movement.reshapes,
  Movement.stretches,
  Movement.transposes,
  Movement.slices,
  Movement.concats,
  Reductions.overNothing,
  Reductions.twice,
  Reductions.ofStretched,
]

/** Makes one pass of rewrites, inputs first. Returns `spec` itself if no output, next value or condition changed. */
const rewriteOnce = (spec: ProgramSpec, keyOf: (tensor: Tensor) => string): ProgramSpec => {
  const roots = rootsOf(spec)
  const order = topologicalOrder(roots)
  const replacements = new Map<Tensor, Tensor>()
  const replacementOf = (tensor: Tensor): Tensor => replacements.get(tensor) ?? tensor

  // Count the users of each tensor; a replacement takes over the users of the tensor that it replaces.
  const users = new Map<Tensor, number>()
  const addUsers = (tensor: Tensor, count: number) => users.set(tensor, (users.get(tensor) ?? 0) + count)
  for (const root of roots) addUsers(root, 1)
  for (const tensor of order) for (const input of tensor.inputs) addUsers(input, 1)
  const info: GraphInfo = { hasOneUser: (tensor) => users.get(tensor) === 1 }

  const shared = new Map<string, Tensor>()
  for (const tensor of order) {
    const inputs = tensor.inputs.map(replacementOf)
    const inputsChanged = inputs.some((input, index) => input !== tensor.inputs[index])
    const simple = simplest(inputsChanged ? make(tensor.op, inputs, tensor.shape, tensor.dtype) : tensor, info)
    const key = keyOf(simple)
    const replacement = shared.get(key) ?? simple
    shared.set(key, replacement)
    replacements.set(tensor, replacement)
    if (replacement !== tensor) addUsers(replacement, users.get(tensor) ?? 0)
  }
  if (roots.every((root) => replacementOf(root) === root)) return spec

  const { minibatches } = spec
  return {
    ...spec,
    state: Record.map(spec.state, ({ next, ...rest }) =>
      next === undefined ? rest : { ...rest, next: replacementOf(next) },
    ),
    outputs: Record.map(spec.outputs, replacementOf),
    ...(minibatches?.continueWhile === undefined
      ? {}
      : { minibatches: { ...minibatches, continueWhile: replacementOf(minibatches.continueWhile) } }),
  }
}

const simplest = (tensor: Tensor, info: GraphInfo): Tensor => {
  let current = tensor
  for (let step = 0; step < maxSteps; step++) {
    const next = firstRewrite(current, info)
    if (next === undefined) return current
    if (!sameShape(next.shape, tensor.shape) || next.dtype !== tensor.dtype) {
      throw new Error(
        `simplify: a rule turned ${current.op.kind} of shape [${tensor.shape.join()}] into shape [${next.shape.join()}]`,
      )
    }
    current = next
  }
  return current
}

const firstRewrite = (tensor: Tensor, info: GraphInfo): Tensor | undefined => {
  for (const rule of rules) {
    const simpler = rule(tensor, info)
    if (simpler !== undefined) return simpler
  }
  return undefined
}

/** Makes keys that are equal for equal expressions: the same op with the same settings on the same inputs. */
const keyMaker = (): ((tensor: Tensor) => string) => {
  // Most tensors occur in several passes, so cache their keys.
  const keys = new Map<Tensor, string>()
  const arrays = new Map<object, number>()
  const nameOf = (data: object): number => {
    const index = arrays.get(data) ?? arrays.size
    arrays.set(data, index)
    return index
  }
  const keyOf = ({ id, op, inputs, shape, dtype }: Tensor): string => {
    if (op.kind === "input" || op.kind === "state") return `${op.kind} ${id}`
    const like = `${dtype} [${shape.join()}]`
    if (op.kind === "constant") {
      // Large arrays are only compared by identity, which is faster.
      const data = op.data.length <= 64 ? exactText([...op.data]) : `@${nameOf(op.data)}`
      return `constant ${like} ${data}`
    }
    const ids = inputs.map((input) => input.id)
    const [canonical, order] = ordered(op, ids)
    const settings = Object.entries(canonical).map(([name, value]) => `${name}:${exactText(value)}`)
    return `${settings.join(" ")} ${like} (${order.join()})`
  }
  return (tensor) => {
    const key = keys.get(tensor) ?? keyOf(tensor)
    keys.set(tensor, key)
    return key
  }
}

/** Sorts the inputs of an op if their order does not matter; a `greater` becomes a `less` with exchanged inputs. */
const ordered = (op: Op, ids: ReadonlyArray<number>): readonly [Op, ReadonlyArray<number>] => {
  if (op.kind === "compare" && op.fn === "greater") return [{ ...op, fn: "less" }, [...ids].reverse()]
  if (op.kind === "compare" && op.fn === "greaterEqual") return [{ ...op, fn: "lessEqual" }, [...ids].reverse()]
  const commutes =
    op.kind === "logical" ||
    (op.kind === "compare" && (op.fn === "equal" || op.fn === "notEqual")) ||
    (op.kind === "binary" && (op.fn === "add" || op.fn === "mul" || op.fn === "min" || op.fn === "max"))
  return [op, commutes ? [...ids].sort((a, b) => a - b) : ids]
}
