import { broadcastTo, constant, reshape } from "../ops.ts"
import { make } from "../ops/core.ts"
import type { Op, Shape, Tensor } from "../Tensor.ts"

/**
 * Lifting does an op for all iterations of a loop at once: a tensor that differs between iterations becomes one tensor whose
 * first axis is the iteration. One node before or after the loop then replaces a node in its body.
 */

/** Whether the op can be lifted and lifting it saves time. Products and convolutions stay in the loop. */
export const isLiftable = ({ op, shape, inputs }: Tensor): boolean =>
  liftableKinds.has(op.kind) && shape.length < 6 && inputs.every((input) => input.shape.length < 6)

const liftableKinds: ReadonlySet<Op["kind"]> = new Set([
  "unary",
  "binary",
  "compare",
  "logical",
  "not",
  "where",
  "clip",
  "cast",
  "stopGradient",
  "reduce",
  "argMax",
  "softmax",
  "logSoftmax",
  "cumSum",
  "reshape",
  "transpose",
  "broadcastTo",
  "slice",
  "concat",
  "pad",
  "oneHot",
])

/**
 * Applies the op for all `count` iterations at once. `lifted` returns the lifted form of an input that differs between
 * iterations; at least one input does.
 */
export const lift = (tensor: Tensor, count: number, lifted: (input: Tensor) => Tensor | undefined): Tensor => {
  const { op, shape, dtype } = tensor
  const made = (to: Op, inputs: ReadonlyArray<Tensor>): Tensor => make(to, inputs, [count, ...shape], dtype)
  const rank = shape.length
  switch (op.kind) {
    case "unary":
    case "binary":
    case "compare":
    case "logical":
    case "not":
    case "where":
    case "clip":
    case "cast":
    case "stopGradient":
    case "broadcastTo":
      return made(
        op,
        tensor.inputs.map((input) => {
          const many = lifted(input)
          return many === undefined ? input : stretched(many, rank)
        }),
      )
    case "reduce":
      return made({ ...op, axes: op.axes.map((axis) => axis + 1) }, allLifted(tensor, count, lifted))
    case "argMax":
    case "cumSum":
    case "concat":
      return made({ ...op, axis: op.axis + 1 }, allLifted(tensor, count, lifted))
    case "transpose":
      return made(
        { ...op, permutation: [0, ...op.permutation.map((axis) => axis + 1)] },
        allLifted(tensor, count, lifted),
      )
    case "slice":
      return made({ ...op, starts: [0, ...op.starts] }, allLifted(tensor, count, lifted))
    case "pad":
      return made({ ...op, before: [0, ...op.before], after: [0, ...op.after] }, allLifted(tensor, count, lifted))
    case "softmax":
    case "logSoftmax":
    case "reshape":
    case "oneHot":
      return made(op, allLifted(tensor, count, lifted))
    default:
      throw new Error(`lift: unexpected ${op.kind}`)
  }
}

/** Lifts a tensor that is the same in all iterations. */
export const repeated = (tensor: Tensor, count: number): Tensor => broadcastTo(tensor, [count, ...tensor.shape])

/** Makes a tensor [count, 1, …] of the numbers 0, step, 2 step, …; it has one axis more than `shape`. */
export const counted = (step: number, count: number, shape: Shape): Tensor =>
  constant(
    Float32Array.from({ length: count }, (_, iteration) => iteration * step),
    [count, ...shape.map(() => 1)],
  )

/** Adds axes of size 1 after the first, so that tensors broadcast: [count, 4] with rank 3 becomes [count, 1, 4]. */
const stretched = (many: Tensor, rank: number): Tensor => {
  const [count, ...own] = many.shape
  const missing = rank - own.length
  return missing === 0 ? many : reshape(many, [count, ...new Array<number>(missing).fill(1), ...own])
}

const allLifted = (
  tensor: Tensor,
  count: number,
  lifted: (input: Tensor) => Tensor | undefined,
): ReadonlyArray<Tensor> => tensor.inputs.map((input) => lifted(input) ?? repeated(input, count))
