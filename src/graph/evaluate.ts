import { fail } from "./ops/core.ts"
import { kernelOf } from "./kernels.ts"
import { sizeOf, type Tensor, topologicalOrder } from "./Tensor.ts"

/**
 * What tensors are, for given values of the leaves that they depend on: at once, in doubles, without a backend. For
 * constants at build time and for tests; to run a graph again and again, compile it.
 *
 * @example
 * ```ts
 * const x = input("x", [2])
 * const [y] = evaluate([mul(x, x)], new Map([[x, [1.5, 3]]])) // Float64Array [2.25, 9]
 * ```
 */
export const evaluate = (
  tensors: ReadonlyArray<Tensor>,
  leaves: ReadonlyMap<Tensor, ArrayLike<number>> = new Map(),
): ReadonlyArray<Float64Array> => {
  const values = new Map<Tensor, Float64Array>()
  const valueOf = (tensor: Tensor): Float64Array => values.get(tensor) ?? new Float64Array(0)
  for (const tensor of topologicalOrder(tensors)) {
    const out = new Float64Array(sizeOf(tensor.shape))
    values.set(tensor, out)
    if (tensor.op.kind === "input" || tensor.op.kind === "state") {
      const given = leaves.get(tensor)
      if (given === undefined) return fail("evaluate", `${tensor.op.kind} "${tensor.op.name}" has no value`, tensor)
      if (given.length !== out.length) return fail("evaluate", `${given.length} numbers do not fill it`, tensor)
      out.set(given)
    } else kernelOf(tensor, tensor.inputs.map(valueOf), out)()
  }
  return tensors.map(valueOf)
}
