/** Computes PPO's objective element by element. `policyGradient.ts` and `tokenLosses.ts` use it. */
import { clip, minimum, mul } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"

/** Computes min(r A, clip(r, 1 − low, 1 + high) A). */
export const clippedObjective = (ratio: Tensor, advantage: Tensor, low: number, high: number): Tensor => {
  const clipped = clip(ratio, 1 - low, 1 + high)
  return minimum(mul(ratio, advantage), mul(clipped, advantage))
}
