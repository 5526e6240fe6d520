import { gae, type GaeInputs } from "./gae.ts"
import type { Numbers } from "./inputs.ts"
import { lambdaReturn } from "./lambdaReturn.ts"
import { nStep } from "./nStep.ts"

/**
 * Returns and advantages: pure functions over typed arrays.
 *
 * `GAE`, `LAMBDA` and `NSTEP` are the members of the config's choice, by those names: each gives value *targets* (for
 * `GAE` that is advantage + value), so they can stand in for one another. `gae` itself gives advantages.
 */
export { gae, type GaeInputs } from "./gae.ts"
export type { Numbers, ReturnInputs } from "./inputs.ts"
export { lambdaReturn, type LambdaInputs } from "./lambdaReturn.ts"
export { nStep, type NStepInputs } from "./nStep.ts"
export { rewardToGo, type RewardToGoInputs } from "./rewardToGo.ts"
export { vtrace, type Vtrace, type VtraceInputs } from "./vtrace.ts"

export function GAE(inputs: GaeInputs<Float32Array>): Float32Array
export function GAE(inputs: GaeInputs<Float64Array>): Float64Array
export function GAE(inputs: GaeInputs<Float32Array> | GaeInputs<Float64Array>): Numbers {
  const advantages = isFloat32(inputs) ? gae(inputs) : gae(inputs)
  for (let row = 0; row < advantages.length; row++) advantages[row] += inputs.values[row]
  return advantages
}

const isFloat32 = (inputs: GaeInputs<Float32Array> | GaeInputs<Float64Array>): inputs is GaeInputs<Float32Array> =>
  inputs.rewards instanceof Float32Array

export const LAMBDA = lambdaReturn
export const NSTEP = nStep
