import { emptyLike, type Numbers } from "./inputs.ts"

export interface RewardToGoInputs<A extends Numbers> {
  readonly rewards: A
  /** 1 where an episode ended, for whatever reason. */
  readonly dones: Uint8Array
  readonly numEnvs: number
  readonly gamma: number
}

/** Σ γ^k r_{t+k} to the end of the episode or of the rollout, with nothing bootstrapped. */
export function rewardToGo(inputs: RewardToGoInputs<Float32Array>): Float32Array
export function rewardToGo(inputs: RewardToGoInputs<Float64Array>): Float64Array
export function rewardToGo({ rewards, dones, numEnvs, gamma }: RewardToGoInputs<Numbers>): Numbers {
  if (rewards.length % numEnvs !== 0) throw new RangeError(`rewards: ${rewards.length} rows are no multiple of ${numEnvs} envs`)
  if (dones.length !== rewards.length) throw new RangeError(`dones: expected ${rewards.length} rows, found ${dones.length}`)
  const out = emptyLike(rewards)
  for (let row = rewards.length - 1; row >= 0; row--) {
    const after = row + numEnvs < rewards.length && dones[row] === 0 ? out[row + numEnvs] : 0
    out[row] = rewards[row] + gamma * after
  }
  return out
}
