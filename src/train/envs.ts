import * as Batch from "../env/Batch.ts"
import type { BatchEnv } from "../env/BatchEnv.ts"
import type { Env } from "../env/Env.ts"
import * as EpisodeLog from "../env/EpisodeLog.ts"
import * as Normalise from "../env/Normalise.ts"
import type { Settings } from "./Settings.ts"

/** The envs that are learnt from: a log of episodes in the env's own rewards, and what the agent is to see of them. */
export type TrainingEnvs = BatchEnv & EpisodeLog.Recorded & Partial<Normalise.NormalisedObservations>

export const trainingEnvs = (env: Env, { numEnvs, normalize }: Settings, gamma: number): TrainingEnvs => {
  const logged = EpisodeLog.record(Batch.make(env, numEnvs))
  const seen = normalize.observations ? Normalise.observations(logged) : logged
  return normalize.rewards ? Normalise.rewards(seen, { gamma }) : seen
}

/** One env an episode; they see with the training's statistics and change nothing about them. */
export const validationEnvs = (env: Env, { validation }: Settings, training: TrainingEnvs): BatchEnv => {
  const batch = Batch.make(env, validation.episodes)
  const moments = training.observationMoments
  return moments === undefined ? batch : Normalise.observations(batch, { moments, frozen: true })
}
