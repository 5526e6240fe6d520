/** Makes learners of on-policy algorithms from an experience (how they act) and an update (losses and optimisers). */
import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { layout } from "../../../tensor/graph/Parameters.ts"
import type { Schedule } from "../../../tensor/graph/schedules.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { gae } from "../../returns/gae.ts"
import { actSpec, policies } from "../acting.ts"
import {
  type Capabilities,
  type Learner,
  type LearnerError,
  type LearnerState,
  type Position,
  type SetupError,
  steered,
} from "../Learner.ts"
import { Averages } from "../Averages.ts"
import type { Arrays, Columns } from "../Batch.ts"
import { build } from "../graphs.ts"
import { drive, type Steps } from "../drive.ts"
import { savedState, weightsIn } from "../learnerState.ts"
import type { Experience, FeatureHooks, GeneralisedAdvantages } from "./Experience.ts"
import { withMemory } from "./features.ts"
import type { RolloutUpdate } from "./DescribedLearner.ts"
import { makeRollout } from "./Rollout.ts"
import type { BaseColumns, Rollout } from "./RolloutData.ts"
import type { AnyPhase } from "./Phase.ts"
import { compileUpdate, type CompiledUpdate, hasTotalLoss, withTotalLoss } from "./update.ts"

/** Makes the learner that `rolloutLearner` described, whose envs are stepped in JavaScript. */
export const makeRolloutLearner = Effect.fnUntraced(function* <C extends BaseColumns & Columns>(
  described: Experience<C>,
  { learningRate, phases }: RolloutUpdate<C>,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const experience = withMemory(described)
  yield* checkDivisors(experience, phases)
  const { name, task, actor, exploration, hasTarget } = experience
  const backend = yield* Backend

  // The programs: one that acts, and one for each phase of the update.
  const parameters = yield* build(() => layout(experience.parameters))
  const fixed = yield* build(() => layout(experience.fixed))
  const acting = { name, task, actor, layout: parameters, hasTarget, exploration }
  const act = yield* backend.compile(yield* build(() => actSpec(acting)))
  const recorded = task.logLoss ? phases.map((phase) => ("loss" in phase ? withTotalLoss(phase) : phase)) : phases
  const compiled = yield* compileUpdate(experience, parameters, fixed, recorded)
  const [{ feeds }] = compiled.programs

  // The rollout, and the features whose hooks it calls.
  const features: Array<FeatureHooks> = []
  const rollout = makeRollout(experience, act, feeds, features)
  for (const start of experience.features) {
    features.push(yield* start({ ...experience, parameters, fixed, rollout, act, updates: compiled.readers }))
  }
  const programs = [act, ...compiled.programs, ...features.flatMap(({ program = [] }) => program)]
  const learning: RolloutLearning<C> = {
    experience,
    learningRate,
    rollout,
    columns: rollout.columns,
    features,
    act,
    programs,
    compiled,
    averages: new Averages(),
  }
  yield* begin(learning, parameters.initialise(stream(task.seed, "weights")))

  const weights = compiled.last.read("theta")
  const [target] = features.flatMap((feature) => feature.target ?? [])
  const slices = Math.max(...phases.map((phase) => phase.slices ?? 1))
  return {
    devices: Object.fromEntries(programs.map((program) => [program.name, program.device])),
    rollout: (envs, position) => drive(() => play(learning, envs, position)),
    update: (position) => learn(learning, position),
    ...declaredBy(experience, { rolloutSteps: experience.steps, totalLoss: hasTotalLoss(phases), slices }),
    metrics: () => learning.averages.take(),
    ...(target === undefined
      ? {}
      : { target: { everySteps: target.everySteps, update: Effect.flatMap(weights, target.update) } }),
    ...policies(backend, acting, weights),
    weights: Effect.map(weights, parameters.toNamed),
    state: stateOf(learning),
    start: (named) => Effect.flatMap(weightsIn(parameters, named), (theta) => begin(learning, theta)),
    restore: Effect.fnUntraced(function* (named, saved) {
      const checkpoint = savedState(saved)
      yield* setWeights(learning, yield* checkpoint.weights(parameters, named))
      yield* compiled.optimiser.restore(checkpoint)
      for (const { restore } of features) if (restore !== undefined) yield* restore(checkpoint)
    }),
  }
})

/** The programs of a learner, its rollout, and its features. */
interface RolloutLearning<C extends Columns> {
  readonly experience: Experience<C>
  readonly learningRate: Schedule
  readonly rollout: Rollout<C>
  readonly columns: Arrays<BaseColumns>
  readonly features: ReadonlyArray<FeatureHooks>
  readonly act: Program
  /**
   * All programs, each with its own copy of the weights. After an update, only its last program has the newest weights.
   */
  readonly programs: ReadonlyArray<Program>
  readonly compiled: CompiledUpdate
  readonly averages: Averages
}

/** Writes weights to all programs, except one that has them already. */
const setWeights = Effect.fnUntraced(function* <C extends Columns>(
  { programs }: RolloutLearning<C>,
  theta: Float32Array,
  except?: Program,
) {
  for (const program of programs) if (program !== except) yield* program.write("theta", theta)
})

/** Sets the initial weights, and starts the features. */
const begin = Effect.fnUntraced(function* <C extends Columns>(learning: RolloutLearning<C>, theta: Float32Array) {
  yield* setWeights(learning, theta)
  for (const { initialise } of learning.features) if (initialise !== undefined) yield* initialise(theta)
})

/** Plays a rollout. Returns the number of env steps. */
const play = function* <C extends Columns>(
  { experience, act, rollout, features }: RolloutLearning<C>,
  envs: AnyBatchEnv,
  { iteration, step }: Position,
): Steps<number> {
  const { task, exploration } = experience
  if (iteration === 0) {
    for (const { beforeFirstRollout } of features) if (beforeFirstRollout !== undefined) yield* beforeFirstRollout(envs)
  }
  if (exploration !== undefined) act.feeds.exploration[0] = exploration(step / task.totalSteps)
  yield* rollout.collect(envs, iteration)
  for (const feature of features) feature.afterRollout?.()
  return rollout.steps * task.numEnvs
}

/** Returns the parts of a learner that its experience declares: data and capabilities. */
export const declaredBy = <C extends Columns>(
  { data, imitates }: Experience<C>,
  capabilities: Partial<Capabilities>,
): Pick<Learner, "data" | "capabilities"> => ({
  ...(Object.keys(data).length > 0 ? { data } : {}),
  capabilities: { ...capabilities, imitates },
})

/**
 * Fills a rollout's advantages by generalised advantage estimation, and its targets as advantage + value. The critic's value
 * estimates the return after the rollout's last step, and after an episode that was truncated. After an episode that terminated,
 * the return is 0.
 */
const estimateReturns = ({ gamma, lambda }: GeneralisedAdvantages, rollout: Rollout<BaseColumns>): void => {
  const { rewards, terminated, last } = rollout
  const columns: Arrays<BaseColumns> = rollout.columns
  const hasTruncations = rollout.truncations() > 0
  gae({
    rewards,
    values: columns.values,
    lastValues: last.values,
    terminated,
    truncated: hasTruncations ? rollout.truncated : undefined,
    truncatedValues: hasTruncations ? rollout.atTruncation.values : undefined,
    gamma,
    lambda,
    out: columns.advantages,
    targets: columns.targets,
  })
}

/** Turns rewards into advantages and targets, and fills the inputs of the update's programs. */
const prepare = function* <C extends BaseColumns & Columns>(
  { experience, rollout, features, compiled }: RolloutLearning<C>,
  iteration: number,
  at: { readonly rate: number; readonly progress: number },
): Steps<void> {
  const [{ feeds }] = compiled.programs
  for (const { beforeReturns } of features) if (beforeReturns !== undefined) yield* beforeReturns(iteration)
  const { returns } = experience
  if (typeof returns === "function") returns(rollout)
  else estimateReturns(returns, rollout)
  for (const feature of features) feature.afterReturns?.()
  for (const feature of features) feature.beforeUpdate?.(iteration, feeds)
  compiled.prepare(iteration, at, Object.assign({}, rollout.columns, ...features.map(({ columns }) => columns)))
}

/** Learns from the last rollout. */
const learn = Effect.fnUntraced(function* <C extends BaseColumns & Columns>(
  learning: RolloutLearning<C>,
  position: Position,
): Effect.fn.Return<void, LearnerError> {
  const { experience, learningRate, columns, features, compiled, averages } = learning
  const { task, steps } = experience
  const { iteration } = position
  const progress = iteration / Math.ceil(task.totalSteps / (steps * task.numEnvs))
  const rate = steered(position, learningRate(progress))
  yield* drive(() => prepare(learning, iteration, { rate, progress }))
  averages.add("charts/learning_rate", rate)
  yield* compiled.run(averages)
  yield* averages.checkFinite(`update ${iteration + 1}`)
  yield* setWeights(learning, yield* compiled.updated, compiled.last)
  averages.add("losses/explained_variance", explainedVariance(columns.values, columns.targets))
  for (const { metrics } of features) averages.addAll(metrics?.())
})

/** Reads the states of the optimisers and of the features. */
const stateOf = <C extends Columns>({ compiled, features }: RolloutLearning<C>): Learner["state"] =>
  Effect.gen(function* () {
    let files: LearnerState = { optimizer: yield* compiled.optimiser.read }
    for (const { state } of features) {
      for (const [file, arrays] of Object.entries(state === undefined ? {} : yield* state)) {
        files = { ...files, [file]: { ...files[file], ...arrays } }
      }
    }
    return files
  })

/** Fails unless `sequence` divides the rollout's steps, and `minibatches` divides the number of sequences. */
export const checkDivisors = <C extends Columns>(
  { name, task, actor, steps, ...experience }: Experience<C>,
  phases: ReadonlyArray<AnyPhase<C>>,
): Effect.Effect<void, ConfigError> => {
  const sequence = Math.max(1, experience.sequence)
  const wrong = (key: string, problem: string) =>
    Effect.fail(ConfigError.at({ source: name, prefix: ["algorithm"] }, key, problem))
  if (experience.sequence > 0 && actor.memorySize === 0) {
    return wrong("sequence", `${sequence} steps of a memory, but algorithm.lstm is 0`)
  }
  if (steps % sequence !== 0) {
    return wrong("sequence", `expected a divisor of the rollout's ${steps} steps, found ${sequence}`)
  }
  const sequences = (steps * task.numEnvs) / sequence
  for (const { minibatches, minibatchesKey = "minibatches", slices } of phases) {
    const rows = sequences / minibatches
    if (slices !== undefined && rows % 1 === 0 && rows % slices !== 0) {
      const what = sequence === 1 ? "rows" : `sequences of ${sequence} steps`
      return wrong("slices", `expected a divisor of a minibatch's ${rows} ${what}, found ${slices}`)
    }
    if (sequences % minibatches === 0) continue
    const what =
      sequence === 1
        ? `${task.numEnvs} envs × ${steps} steps = ${sequences} rows`
        : `${task.numEnvs} envs × ${steps / sequence} sequences of ${sequence} steps = ${sequences} sequences`
    return wrong(minibatchesKey, `expected a divisor of a rollout's ${what}, found ${minibatches}`)
  }
  return Effect.void
}

/** Returns 1 − Var(targets − values) / Var(targets): 1 for a perfect critic, 0 for constant values or targets. */
export const explainedVariance = (values: Float32Array, targets: Float32Array): number => {
  const n = values.length
  let sum = 0
  let sumOfSquares = 0
  let errorSum = 0
  let errorSquares = 0
  for (let index = 0; index < n; index++) {
    const target = targets[index]
    const error = target - values[index]
    sum += target
    sumOfSquares += target * target
    errorSum += error
    errorSquares += error * error
  }
  const variance = sumOfSquares / n - (sum / n) ** 2
  return variance > 0 ? 1 - (errorSquares / n - (errorSum / n) ** 2) / variance : 0
}
