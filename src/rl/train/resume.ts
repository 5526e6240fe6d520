/**
 * Defines which settings a resumed training may change, and restores the training from a checkpoint. `Train.ts` calls
 * it.
 */
import { Effect, Record } from "effect"
import { isPlain, type Plain, snakeCase } from "../../base/config/Config.ts"
import { messageOf } from "../../base/text/text.ts"
import { rowSpaceOf } from "../env/Env.ts"
import { shapeOf } from "../env/Space.ts"
import * as safetensors from "../../base/formats/safetensors.ts"
import { capabilitiesOf, type LearnerError } from "../learner/Learner.ts"
import { settled } from "../learner/drive.ts"
import { CheckpointError } from "../../run/Checkpoint.ts"
import { digestOfArrays } from "../../run/digest.ts"
import * as Layout from "../../run/Layout.ts"
import type { RunError, Saved } from "../../run/Run.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import { floats } from "./checkpointing.ts"
import type { Training } from "./setUp.ts"
import { restoreMoments } from "./start.ts"
import type { TrainingState } from "./TrainingState.ts"

/**
 * Returns the settings that are compared when a training is resumed. All others may change freely: when to validate,
 * render and save, the logs, and the total number of steps. An annealed learning rate depends on that total, so a
 * training that is resumed with a larger total learns differently.
 */
export const sharedSettings = ({ plan, learner }: Training): Effect.Effect<Plain> => {
  const { settings, effective, env } = plan
  const shared = {
    env: settings.env,
    maxSteps: env.maxSteps ?? null,
    observations: shapeOf(rowSpaceOf(env)),
    actions: env.actionSpace,
    numEnvs: settings.numEnvs,
    seed: settings.seed,
    normalize: settings.normalize,
    algorithm: byPolicy(effective.algorithm),
  }
  const { data } = learner
  return data === undefined
    ? Effect.succeed(shared)
    : Effect.map(digestOfArrays(data), (digest) => ({ ...shared, data: digest }))
}

/**
 * Returns the settings of an algorithm, with separate policies under their names, so that each policy is compared with
 * itself.
 */
const byPolicy = (algorithm: unknown): unknown => {
  if (!isPlain(algorithm) || !Array.isArray(algorithm.policies)) return algorithm
  const policies: ReadonlyArray<unknown> = algorithm.policies
  return {
    ...algorithm,
    policies: Object.fromEntries(policies.flatMap((one) => (isPlain(one) ? [[`${String(one.policy)}`, one]] : []))),
  }
}

/**
 * The settings of algorithms that only affect the next updates: neither the weights nor the saved arrays depend on
 * them.
 */
const ofUpdates = [
  ["learningRate", "criticLearningRate", "schedule", "adamEpsilon", "rmspropDecay", "rmspropEpsilon", "weightDecay"],
  ["epochs", "minibatches", "valueEpochs", "batchSize", "gradientSteps", "policyDelay", "maxGradNorm"],
  ["gamma", "lambda", "returns", "gammaIntrinsic", "clip", "clipValue", "normalizeAdvantages", "targetKl", "double"],
  ["entropyCoefficient", "valueCoefficient", "advantageCoefficient", "extrinsicCoefficient", "intrinsicCoefficient"],
  [
    "curiosityCoefficient",
    "curiosityLossCoefficient",
    "forwardShare",
    "predictionShare",
    "predictionLearningRateShare",
  ],
  ["pixelControlCoefficient", "pixelControlGamma", "rewardPredictionCoefficient", "valueReplayCoefficient"],
  ["tau", "updateTargetFreq", "targetNoise", "targetNoiseClip", "explorationNoise", "targetEntropy", "deviation"],
  [
    "epsilonStart",
    "epsilonEnd",
    "explorationFraction",
    "epsilon",
    "maxEpisodeSteps",
    "betaStart",
    "betaEnd",
    "betaFraction",
  ],
  ["discriminatorEpochs", "discriminatorMinibatches", "discriminatorLearningRateShare", "gradientPenalty"],
].flat()
const allowed: ReadonlySet<string> = new Set(["num_envs", ...ofUpdates.map((key) => `algorithm.${snakeCase(key)}`)])

/** The rule by which settings of a resumed training may change. */
export const changes = {
  allowed,
  /**
   * Compares only the name of the setting itself: a key may also name a part of it, such as a schedule's option, or a
   * setting of a separate policy.
   */
  isAllowed: (key: string): boolean => {
    const path = key.replace(/^algorithm\.policies\.[^.]+\./, "algorithm.")
    return allowed.has(path.split(".").slice(0, 2).join("."))
  },
  instead: (checkpoint: string): string => `begin a new run from its weights: start.from=${checkpoint}`,
}

/**
 * Returns the rule for a training. The data may change if the learner only plays, since it does not learn from them.
 */
export const changesOf = ({ learner }: Training) =>
  capabilitiesOf(learner).onlyPlays
    ? { ...changes, isAllowed: (key: string): boolean => key === "data" || changes.isAllowed(key) }
    : changes

/** Restores the learner and the envs from the files of a checkpoint. Fails if a file is damaged or does not fit. */
export const restore = Effect.fnUntraced(function* (
  training: Training,
  run: RunFiles,
  { name, files, state, changes: changed, folder }: Saved<TrainingState>,
): Effect.fn.Return<void, RunError | LearnerError> {
  const { learner, envs, plan } = training
  const path = Layout.checkpoint(name)
  const arrays: Record<string, safetensors.TensorEntries> = {}
  for (const [file, bytes] of Object.entries(files)) {
    const stem = Layout.arraysOf(file)
    if (stem === undefined) continue
    arrays[stem] = yield* Effect.try({
      try: () => safetensors.decode(bytes),
      catch: (error) => damaged(run, `${path}/${file}`, messageOf(error)),
    })
  }
  const { weights = {}, envs: savedEnvs = {}, ...learnerState } = arrays
  const numEnvs = changed.find(({ key }) => key === "num_envs")
  const misfit = (message: string): CheckpointError => {
    if (numEnvs === undefined) return damaged(run, path, message)
    const kept =
      learnerState.replay === undefined
        ? "has a state for each env, such as a memory"
        : "has a replay buffer with a part for each env"
    const problem = `num_envs was ${String(numEnvs.then)}, and only that can go on: ${plan.algorithm.name} ${kept}`
    return damaged(
      run,
      path,
      `${problem}; set it to ${String(numEnvs.then)}, or ${changes.instead(`${folder}/${name}`)}`,
    )
  }
  // A replay buffer of other envs orders its steps differently, even if its arrays are equally long.
  if (numEnvs !== undefined && learnerState.replay !== undefined) return yield* misfit("")
  yield* Effect.catchTag(learner.restore(floats(weights), learnerState), "LearningError", ({ message }) =>
    Effect.fail(misfit(message)),
  )
  if (numEnvs === undefined) {
    yield* settled(() => envs.restore(Record.map(savedEnvs, ({ data }) => data)))
    return
  }
  restoreMoments(savedEnvs, "observationMoments", envs.observationMoments)
  restoreMoments(savedEnvs, "returnMoments", envs.returnMoments)
  yield* resetAt(training, state)
  // Schedules count iterations, and an iteration now has a different number of steps.
  const before = typeof numEnvs.then === "number" ? numEnvs.then : plan.settings.numEnvs
  if (capabilitiesOf(learner).plays === "steps")
    state.iteration = Math.max(1, Math.round((state.iteration * before) / plan.settings.numEnvs))
})

/**
 * Begins new episodes in all envs of a resumed training, and sets the step counter of their log to the step of the run.
 */
const resetAt = Effect.fnUntraced(function* ({ envs, plan: { settings } }: Training, { step }: TrainingState) {
  yield* settled(() => envs.reset(settings.seed, "env", "resumed", step))
  const wrappers = [settings.normalize.observations, settings.normalize.rewards].filter((isOn) => isOn).length
  const counter = `${"inner.".repeat(wrappers)}steps`
  const steps = Float64Array.of(Math.ceil(step / settings.numEnvs))
  yield* settled(() => envs.restore({ ...envs.snapshot(), [counter]: steps }))
})

const damaged = (run: RunFiles, path: string, message: string): CheckpointError =>
  new CheckpointError({ path, message: `${run.pathOf(path)}: ${message}` })
