import { fail } from "./ops/core.ts"
import { kernelOf } from "./kernels.ts"
import { sizeOf, type Tensor, topologicalOrder } from "./Tensor.ts"

/**
 * Computes tensors in double precision, without a backend. `leaves` has the numbers of each input and state that the
 * tensors depend on. Use it for constants while a graph is built, and in tests; to compute a graph many times, compile
 * it.
 *
 * @example
 * ```ts
 * const x = Graph.input("x", [2])
 * const [y] = evaluate([Graph.mul(x, x)], new Map([[x, [1.5, 3]]])) // Float64Array [2.25, 9]
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
      const numbers = leaves.get(tensor)
      if (numbers === undefined)
        return fail("evaluate", `the value of ${tensor.op.kind} "${tensor.op.name}" is missing`, tensor)
      if (numbers.length !== out.length)
        return fail("evaluate", `expected ${out.length} numbers, found ${numbers.length}`, tensor)
      out.set(numbers)
    } else kernelOf(tensor, tensor.inputs.map(valueOf), out)()
  }
  return tensors.map(valueOf)
}
