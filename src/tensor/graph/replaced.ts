/** Replaces tensors within a graph, e.g. the states of a program that is exported. */
import { make } from "./ops/core.ts"
import { type Tensor, topologicalOrder } from "./Tensor.ts"

/**
 * Builds a graph again with other tensors in place of some. `replacementFor` is asked for each tensor, inputs first, and
 * returns undefined for one that stays. Returns the function from a tensor of the old graph to that of the new one.
 */
export const replaced = (
  roots: Iterable<Tensor>,
  replacementFor: (tensor: Tensor) => Tensor | undefined,
): ((tensor: Tensor) => Tensor) => {
  const replacements = new Map<Tensor, Tensor>()
  const replacementOf = (tensor: Tensor): Tensor => replacements.get(tensor) ?? tensor
  for (const tensor of topologicalOrder(roots)) {
    const { op, inputs, shape, dtype } = tensor
    const other = replacementFor(tensor)
    if (other !== undefined) replacements.set(tensor, other)
    else if (inputs.some((input) => replacementOf(input) !== input))
      replacements.set(tensor, make(op, inputs.map(replacementOf), shape, dtype))
  }
  return replacementOf
}
