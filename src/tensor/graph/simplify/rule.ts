/**
 * Defines the type of the rules by which `simplify.ts` makes a graph smaller before it is compiled, and functions that
 * several rules use. All are pure: they return new tensors and change none.
 */
import { constant } from "../ops.ts"
import { make, sameShape } from "../ops/core.ts"
import type { Tensor } from "../Tensor.ts"

/** Returns a cheaper tensor of the same value, shape and dtype, or undefined if the rule does not apply. */
export type Rule = (tensor: Tensor, graph: GraphInfo) => Tensor | undefined

/** The facts about the graph around a tensor that rules need. */
export interface GraphInfo {
  /** Tells whether only one operation uses a tensor. When that operation is replaced, the tensor is no longer computed. */
  readonly hasOneUser: (tensor: Tensor) => boolean
}

/** Makes a tensor with the op of `tensor` and other inputs. */
export const onInputs = (tensor: Tensor, inputs: ReadonlyArray<Tensor>, shape = tensor.shape): Tensor =>
  make(tensor.op, inputs, shape, tensor.dtype)

/** Returns the number that all elements equal, for a constant or a broadcast of one; otherwise undefined. */
export const uniformValue = ({ op, inputs }: Tensor): number | undefined => {
  if (op.kind === "broadcastTo") return uniformValue(inputs[0])
  if (op.kind !== "constant" || op.data.length === 0) return undefined
  for (const value of op.data) if (!Object.is(value, op.data[0])) return undefined
  return op.data[0]
}

export const likeShape = (x: Tensor, y: Tensor): boolean => sameShape(x.shape, y.shape)

/** Makes a scalar constant of a tensor's dtype. */
export const scalarLike = (tensor: Tensor, value: number): Tensor => constant(value, [], tensor.dtype)

/**
 * Counts the new operations of a replacement: those that `tensor` depends on and that were made since `mark`, an id from
 * `nextMark`. A rule compares this number with the number of operations that the replacement removes.
 */
export const countOpsSince = (mark: number, tensor: Tensor): number => {
  const seen = new Set<Tensor>()
  const visit = (one: Tensor): void => {
    if (one.id < mark || one.inputs.length === 0 || seen.has(one)) return
    seen.add(one)
    one.inputs.forEach(visit)
  }
  visit(tensor)
  return seen.size
}
