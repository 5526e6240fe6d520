/** Computes advantages as tensors, for updates that read a rollout on the device. `rl/returns/gae.ts` has the formula. */
import { add, concat, constant, mul, slice, sub } from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"

/** A rollout of T steps of N envs. All tensors have the shape [T, N]. */
interface GraphSteps {
  readonly rewards: Tensor
  readonly values: Tensor
  /** The value of the observation after each step, before any reset; 0 if the episode terminated. */
  readonly nextValues: Tensor
  /** 1 where an episode terminated or was truncated, else 0. */
  readonly ended: Tensor
}

/**
 * Computes advantages by generalised advantage estimation (Schulman et al. 2015, arXiv:1506.02438):
 *
 * δ_t = r_t + γ v'_t − V_t A_t = δ_t + γ λ (1 − done_t) A_{t+1} A_T = 0
 *
 * Instead of going step by step, each operation doubles the number of steps that every sum covers, so about log₂ T
 * operations on whole rollouts suffice. The rounding differs from that of `Returns.gae`, which adds in another order.
 */
export const advantagesOf = (
  { rewards, values, nextValues, ended }: GraphSteps,
  { gamma, lambda }: { readonly gamma: number; readonly lambda: number },
): Tensor => {
  const [steps] = rewards.shape
  let sums = sub(add(rewards, mul(nextValues, gamma)), values)
  // Each sum covers some steps. This is the factor of the sum that starts after them, 0 if an episode ends between the
  // two.
  let weights = mul(sub(1, ended), gamma * lambda)
  for (let covered = 1; covered < steps; covered *= 2) {
    sums = add(sums, mul(weights, later(sums, covered)))
    weights = mul(weights, later(weights, covered))
  }
  return sums
}

/** Returns, for each step, the row that is `distance` steps later; zeros if there is none. */
const later = (rows: Tensor, distance: number): Tensor => {
  const [steps, envs] = rows.shape
  const rest = slice(rows, [distance, 0], [steps - distance, envs])
  return concat([rest, constant(0, [distance, envs])], 0)
}
