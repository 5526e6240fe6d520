/** Makes the envs of a training and of its validations (`setUp.ts`), and exports a policy with their normalisation. */
import { Effect, type Scope } from "effect"
import * as Batch from "../env/Batch.ts"
import type { AnyBatchEnv } from "../env/BatchEnv.ts"
import type { Env } from "../env/Env.ts"
import { EnvError, invalid } from "../../base/EnvError.ts"
import { EnvPool } from "../env/EnvPool.ts"
import * as EpisodeLog from "../env/EpisodeLog.ts"
import * as Normalise from "../env/Normalise.ts"
import type { Learner, LearnerError } from "../learner/Learner.ts"
import { aboutText } from "../policy/about.ts"
import { groupIn } from "../env/RunningMoments.ts"
import type { Plan } from "./plan.ts"
import type { Settings } from "./Settings.ts"
import { type EpisodeBatch, partsOf } from "./validation/PolicyValidator.ts"

/** The training's envs: they record episodes with the env's own rewards, and may normalise what the agent gets. */
export type TrainingEnvs = AnyBatchEnv &
  EpisodeLog.Recorded &
  Partial<Normalise.NormalisedObservations & Normalise.NormalisedRewards>

/**
 * Makes the training's envs. `gamma` has the discount factors by which rewards are normalised: one, or one for each
 * policy if the agents of a game have separate policies. Then `groups` has the number of each agent's policy, since
 * each policy has its own statistics.
 */
export const trainingEnvs = Effect.fnUntraced(function* (
  env: Env,
  { numEnvs, normalize, workers }: Settings,
  { gamma, groups }: { readonly gamma: ReadonlyArray<number>; readonly groups: ReadonlyArray<number> | undefined },
): Effect.fn.Return<TrainingEnvs, EnvError, Scope.Scope> {
  const logged = EpisodeLog.record(yield* batchOf(env, numEnvs, workers))
  const seen = normalize.observations ? Normalise.observations(logged, { groups }) : logged
  return normalize.rewards ? Normalise.rewards(seen, { gamma, groups }) : seen
})

/**
 * Makes a batch for each part of a validation: copies of the part's env, one for each episode. `first` is the number of the
 * batch's first episode. The batches normalise observations by the training's statistics, but do not update these.
 */
export const validationBatches = (
  envs: ReadonlyArray<Env>,
  { validation }: Settings,
  training: TrainingEnvs,
): Effect.Effect<ReadonlyArray<EpisodeBatch>, EnvError, Scope.Scope> =>
  Effect.forEach(partsOf(validation, envs), ({ env, from, to }) =>
    validationBatch(envs[env], { first: from, count: to - from, workers: validation.workers }, training),
  )

/** Makes a batch of `count` copies of a validation env. Its first episode has the number `first`. */
export const validationBatch = (
  env: Env,
  { first, count, workers }: { readonly first: number; readonly count: number; readonly workers: number },
  { observationMoments: moments }: TrainingEnvs,
): Effect.Effect<EpisodeBatch, EnvError, Scope.Scope> =>
  Effect.map(batchOf(env, count, workers, first), (batch) => ({
    envId: env.id,
    first,
    agents: env.agents,
    envs: moments === undefined ? batch : Normalise.observations(batch, { moments, frozen: true }),
  }))

/** Makes a batch of copies of an env, numbered from `firstIndex`, in this thread or in `workers` threads. */
const batchOf = (
  env: Env,
  numEnvs: number,
  workers: number,
  firstIndex = 0,
): Effect.Effect<AnyBatchEnv, EnvError, Scope.Scope> =>
  workers === 0
    ? Batch.open(env, numEnvs, { firstIndex }).pipe(
        Effect.catchDefect((error) => Effect.fail(new EnvError({ env: env.id, message: String(error) }))),
      )
    : env.open === undefined
      ? Effect.flatMap(EnvPool, (pool) => pool.make(env, numEnvs, { workers, firstIndex }))
      : Effect.fail(invalid(env.id, `workers: it steps elsewhere already; expected 0, found ${workers}`))

/**
 * Returns the policy as an ONNX file, which also normalises observations and describes the env for `Policy.load`.
 * Separate policies have a file each; `nameOf` names the files. A policy that cannot be exported has none.
 */
export const exportedPolicies = Effect.fnUntraced(function* (
  training: { readonly plan: Plan; readonly learner: Learner; readonly envs: TrainingEnvs },
  step: number,
  nameOf: (policy?: string) => string,
): Effect.fn.Return<Readonly<Record<string, Uint8Array>>, LearnerError> {
  const { plan, learner, envs } = training
  const { observationMoments, observationSpace: space } = envs
  const { observationSpace, actionSpace, actionMask, agents = [], id } = plan.env
  const spaces = { observationSpace, actionSpace, hasActionMask: actionMask !== undefined }
  const learners =
    learner.separate === undefined
      ? [{ file: nameOf(), algorithm: plan.algorithm.name, exportPolicy: learner.exportPolicy, group: 0 }]
      : learner.separate.map(({ name, algorithm, agents: [agent], learner: { exportPolicy } }) => ({
          file: nameOf(name),
          algorithm,
          exportPolicy,
          group: observationMoments?.groups[agents.indexOf(agent)] ?? 0,
        }))
  const files: Record<string, Uint8Array> = {}
  for (const { file, algorithm, exportPolicy, group } of learners) {
    if (exportPolicy === undefined) continue
    const about = aboutText({ env: id, algorithm, step, ...spaces })
    const preprocess =
      observationMoments === undefined ? undefined : Normalise.asGraph(groupIn(observationMoments, group), { space })
    files[file] = yield* Effect.catchTag(exportPolicy(preprocess, about), "GraphError", (error) => Effect.die(error))
  }
  return files
})
