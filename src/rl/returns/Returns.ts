/**
 * Computes returns and advantages from the rewards and values of a rollout. The inputs are flat typed arrays of float32
 * or float64; the element of time step t and env n has the index t · N + n, where N is the number of envs (time-major).
 *
 * `gae` (generalised advantage estimation) returns advantages; `lambdaReturn` and `nStep` return value targets, towards
 * which a critic is trained; `vtrace` returns both; `discountedRewardToGo` sums up rewards alone, and `groupAdvantages`
 * compares the rewards of completions of one prompt. `GAE`, `LAMBDA` and `NSTEP` have the names that the config's
 * setting `returns` uses. They take the same inputs and return value targets, so that each can replace another. The
 * learners call only `gae`, and the trainer of language models `groupAdvantages`; the others are for users of the library.
 *
 * @example
 * ```ts
 * import { Returns } from "effect-rl"
 *
 * const inputs = {
 *   rewards: Float32Array.of(1, 1, 1),
 *   values: Float32Array.of(0.5, 0.5, 0.5),
 *   lastValues: Float32Array.of(5),
 *   terminated: Uint8Array.of(0, 1, 0),
 *   gamma: 0.99,
 *   lambda: 0.95,
 * }
 * Returns.gae(inputs) // advantages
 * Returns.members.LAMBDA(inputs) // targets, chosen by name
 * ```
 */
import { gae } from "./gae.ts"
import type { Numbers } from "./inputs.ts"
import { lambdaReturn, type LambdaInputs } from "./lambdaReturn.ts"
import { nStep } from "./nStep.ts"

export { discountedRewardToGo, type RewardToGoInputs } from "./discountedRewardToGo.ts"
export { gae, type GaeInputs } from "./gae.ts"
export { groupAdvantages, type GroupAdvantageInputs, type GroupAdvantages } from "./groupAdvantages.ts"
export type { Numbers, ReturnInputs } from "./inputs.ts"
export { lambdaReturn, type LambdaInputs } from "./lambdaReturn.ts"
export { nStep, type NStepInputs } from "./nStep.ts"
export { vtrace, type Vtrace, type VtraceInputs } from "./vtrace.ts"

/**
 * The inputs of `GAE`, `LAMBDA` and `NSTEP`. `NSTEP` ignores `lambda`; only `NSTEP` reads `horizon`; `GAE` ignores
 * `tail`.
 */
export interface MemberInputs<A extends Numbers> extends LambdaInputs<A> {
  readonly horizon?: number
}

/** Computes value targets by GAE: the advantages that `gae` returns plus the values, like `GAE` in the library rlib. */
export const GAE = <A extends Numbers>(inputs: MemberInputs<A>): A => {
  const targets = gae(inputs)
  for (let row = 0; row < targets.length; row++) targets[row] += inputs.values[row]
  return targets
}

/** Computes value targets by `lambdaReturn`. */
export const LAMBDA = <A extends Numbers>(inputs: MemberInputs<A>): A => lambdaReturn(inputs)

/** Computes value targets by `nStep`. */
export const NSTEP = <A extends Numbers>(inputs: MemberInputs<A>): A => nStep(inputs)

/** The three functions for value targets, by the names that configs use. */
export const members = { GAE, LAMBDA, NSTEP } as const
