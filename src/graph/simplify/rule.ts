import { constant } from "../ops.ts"
import { make, sameShape } from "../ops/core.ts"
import type { Tensor } from "../Tensor.ts"

/** What every simplification is made of. */

/** A cheaper tensor of the same value, shape and kind, if there is one. */
export type Rule = (tensor: Tensor, graph: Surroundings) => Tensor | undefined

export interface Surroundings {
  /** Whether one op alone looks at a tensor: when that op stops to, the tensor is gone. */
  readonly once: (tensor: Tensor) => boolean
}

/** The same op on other inputs. */
export const onInputs = (tensor: Tensor, inputs: ReadonlyArray<Tensor>, shape = tensor.shape): Tensor =>
  make(tensor.op, inputs, shape, tensor.dtype)

/** The number that all elements of a constant are, however it is stretched. */
export const uniformValue = ({ op, inputs }: Tensor): number | undefined => {
  if (op.kind === "broadcastTo") return uniformValue(inputs[0])
  if (op.kind !== "constant" || op.data.length === 0) return undefined
  for (const value of op.data) if (!Object.is(value, op.data[0])) return undefined
  return op.data[0]
}

export const likeShape = (x: Tensor, y: Tensor): boolean => sameShape(x.shape, y.shape)

/** A constant of one number, for all of a tensor's kind. */
export const scalarLike = (tensor: Tensor, value: number): Tensor => constant(value, [], tensor.dtype)

/** How many ops were made since `mark` for a tensor. */
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
