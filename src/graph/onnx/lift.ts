import { broadcastTo, constant, reshape } from "../ops.ts"
import { make } from "../ops/core.ts"
import type { Op, Shape, Tensor } from "../Tensor.ts"

/**
 * The same op for all iterations at once: what has one value an iteration becomes one tensor with the iterations as
 * its first axis. So what a loop's body need not do is done before or after it, in one node instead of one an iteration.
 */

/** Can the op be done for many iterations at once, and is it worth it? Products and convolutions stay where they are. */
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
 * The op over all `count` iterations. `lifted` has what its inputs are with that first axis, for those that differ
 * between iterations; at least one does.
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
      throw new Error(`${op.kind} is not lifted`)
  }
}

/** Its values one after the other, of a tensor that is the same for all. */
export const repeated = (tensor: Tensor, count: number): Tensor => broadcastTo(tensor, [count, ...tensor.shape])

/** start, start + step, … over `count` iterations. */
export const counted = (step: number, count: number, shape: Shape): Tensor =>
  constant(
    Float32Array.from({ length: count }, (_, iteration) => iteration * step),
    [count, ...shape.map(() => 1)],
  )

/** So that axes line up at the right behind the first: [count, 4] among [count, 3, 4] is [count, 1, 4]. */
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
