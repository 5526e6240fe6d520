import * as Batch from "../env/Batch.ts"
import type { BatchEnv } from "../env/BatchEnv.ts"
import type { Env } from "../env/Env.ts"
import * as EpisodeLog from "../env/EpisodeLog.ts"
import * as Normalise from "../env/Normalise.ts"
import type { Settings } from "./Settings.ts"
import { shares } from "./validation/Validator.ts"

/** The envs that are learnt from: a log of episodes in the env's own rewards, and what the agent is to see of them. */
export type TrainingEnvs = BatchEnv & EpisodeLog.Recorded & Partial<Normalise.NormalisedObservations>

export const trainingEnvs = (env: Env, { numEnvs, normalize }: Settings, gamma: number): TrainingEnvs => {
  const logged = EpisodeLog.record(Batch.make(env, numEnvs))
  const seen = normalize.observations ? Normalise.observations(logged) : logged
  return normalize.rewards ? Normalise.rewards(seen, { gamma }) : seen
}

/** A lane an episode; they see with the training's statistics and change nothing about them. */
export const validationBatches = (
  envs: ReadonlyArray<Env>,
  { validation }: Settings,
  training: TrainingEnvs,
): ReadonlyArray<{ readonly envs: BatchEnv; readonly first: number }> =>
  shares(validation.episodes, envs.length).map(({ first, count }, index) => {
    const batch = Batch.make(envs[index], count, { firstIndex: first })
    const moments = training.observationMoments
    return { first, envs: moments === undefined ? batch : Normalise.observations(batch, { moments, frozen: true }) }
  })
