/** Replaces tensors within a graph, e.g. the states of a program that is exported. */
import { make } from "./ops/core.ts"
import { type Tensor, topologicalOrder } from "./Tensor.ts"

/**
 * Rebuilds a graph with some tensors replaced. `replacementFor` is called for each tensor, inputs first; it returns the
 * replacement, or undefined to keep the tensor. Returns a function that maps a tensor of the old graph to its
 * counterpart in the new one.
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
