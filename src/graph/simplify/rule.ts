/** Defines a simplification rule, and functions that several rules use. */
import { constant } from "../ops.ts"
import { make, sameShape } from "../ops/core.ts"
import type { Tensor } from "../Tensor.ts"

/** Returns a cheaper tensor of the same value, shape and dtype, or undefined if the rule does not apply. */
export type Rule = (tensor: Tensor, graph: Surroundings) => Tensor | undefined

export interface Surroundings {
  /** Whether a tensor has only one user, so that it is no longer computed when that user is replaced. */
  readonly once: (tensor: Tensor) => boolean
}

/** Applies the same op to other inputs. */
export const onInputs = (tensor: Tensor, inputs: ReadonlyArray<Tensor>, shape = tensor.shape): Tensor =>
  make(tensor.op, inputs, shape, tensor.dtype)

/** Returns the number that all elements equal, if the tensor is a constant or a broadcast of one. */
export const uniformValue = ({ op, inputs }: Tensor): number | undefined => {
  if (op.kind === "broadcastTo") return uniformValue(inputs[0])
  if (op.kind !== "constant" || op.data.length === 0) return undefined
  for (const value of op.data) if (!Object.is(value, op.data[0])) return undefined
  return op.data[0]
}

export const likeShape = (x: Tensor, y: Tensor): boolean => sameShape(x.shape, y.shape)

/** Makes a scalar constant of a tensor's dtype. */
export const scalarLike = (tensor: Tensor, value: number): Tensor => constant(value, [], tensor.dtype)

/** Counts the ops that a tensor depends on and that were made since `mark`, an id from `nextMark`. */
export const madeSince = (mark: number, tensor: Tensor): number => {
  const seen = new Set<Tensor>()
  const visit = (one: Tensor): void => {
    if (one.id < mark || one.inputs.length === 0 || seen.has(one)) return
    seen.add(one)
    one.inputs.forEach(visit)
  }
  visit(tensor)
  return seen.size
}
