/** Computes PPO's objective element by element. `policyGradient.ts` and `tokenLosses.ts` use it. */
import { add, clip, maximum, minimum, mul, neg, sub } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"

/** Computes min(r A, clip(r, 1 − low, 1 + high) A). */
export const clippedObjective = (
  ratio: Tensor,
  advantage: Tensor,
  low: number | Tensor,
  high: number | Tensor,
): Tensor => {
  const clipped =
    typeof low === "number" && typeof high === "number"
      ? clip(ratio, 1 - low, 1 + high)
      : minimum(maximum(ratio, sub(1, low)), add(1, high))
  return minimum(mul(ratio, advantage), mul(clipped, advantage))
}

/** Computes clip(x, −bound, bound); the bound can be a tensor. */
export const clipWithin = (x: Tensor, bound: number | Tensor): Tensor =>
  typeof bound === "number" ? clip(x, -bound, bound) : minimum(maximum(x, neg(bound)), bound)
