/** Makes learners of on-policy algorithms from an experience (how they act) and an update (losses and optimisers). */
import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { layout } from "../../../tensor/graph/Parameters.ts"
import type { Schedule } from "../../../tensor/graph/schedules.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { actSpec, policies } from "../acting.ts"
import {
  type Learner,
  type LearnerError,
  type LearnerState,
  type Position,
  type SetupError,
  steered,
} from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import type { Arrays, Columns } from "../Batch.ts"
import { build } from "../graphs.ts"
import { drive, type Steps } from "../drive.ts"
import { savedState, weightsIn } from "../learnerState.ts"
import type { Experience, FeatureHooks } from "./Experience.ts"
import { makeRollout } from "./Rollout.ts"
import type { BaseColumns, Rollout } from "./RolloutData.ts"
import type { AnyPhase } from "./Phase.ts"
import { compileUpdate, type CompiledUpdate, hasTotalLoss, withTotalLoss } from "./update.ts"

/** Describes how a learner learns from each rollout. */
export interface RolloutUpdate<C> {
  /** The learning rate as a function of the run's progress, from 0 to 1. */
  readonly learningRate: Schedule
  /** The parts of an update, in the order in which they run; most algorithms have one. */
  readonly phases: ReadonlyArray<AnyPhase<C>>
}

/**
 * Makes the learner of an on-policy algorithm. In each iteration it plays a rollout with the current policy, turns rewards
 * into advantages and value targets, learns from that rollout, and discards it.
 *
 * @example
 * ```ts
 * const returns = Learner.generalisedAdvantages({ gamma: 0.99, lambda: 1 })
 * const plain = Learner.experience({ name: "critic", task, actor: network, steps: 100, returns })
 * const loss = ({ batch, weights }: Learner.Minibatch<Learner.BaseColumns>): Learner.Loss => {
 *   const { value } = network.evaluate(weights, batch.observations)
 *   return { loss: Losses.valueLoss({ v_t: value, target_t: batch.targets }), metrics: {} }
 * }
 * const phase = { name: "update", epochs: 1, minibatches: 1, maxGradNorm: 0.5, optimiser: Optimisers.adam }
 * rolloutLearner(plain, { learningRate: Schedules.linear(7e-4), phases: [{ ...phase, loss }] })
 * ```
 */
export const rolloutLearner = Effect.fnUntraced(function* <C extends BaseColumns & Columns>(
  experience: Experience<C>,
  { learningRate, phases }: RolloutUpdate<C>,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
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
  const learning: Learning<C> = {
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
  const slices = Math.max(...phases.map((phase) => phase.slices?.count ?? 1))
  return {
    devices: Object.fromEntries(programs.map((program) => [program.name, program.device])),
    rollout: (envs, position) => drive(() => play(learning, envs, position)),
    rolloutSteps: experience.steps,
    update: (position) => learn(learning, position),
    hasTotalLoss: hasTotalLoss(phases),
    ...(slices > 1 ? { slices } : {}),
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
interface Learning<C extends Columns> {
  readonly experience: Experience<C>
  readonly learningRate: Schedule
  readonly rollout: Rollout<C>
  readonly columns: Arrays<BaseColumns>
  readonly features: ReadonlyArray<FeatureHooks>
  readonly act: Program
  /** All programs, each of which has its own copy of the weights. After an update, its last program has the newest. */
  readonly programs: ReadonlyArray<Program>
  readonly compiled: CompiledUpdate
  readonly averages: Averages
}

/** Writes weights to all programs, except one that has them already. */
const setWeights = Effect.fnUntraced(function* <C extends Columns>(
  { programs }: Learning<C>,
  theta: Float32Array,
  except?: Program,
) {
  for (const program of programs) if (program !== except) yield* program.write("theta", theta)
})

/** Begins with these weights. */
const begin = Effect.fnUntraced(function* <C extends Columns>(learning: Learning<C>, theta: Float32Array) {
  yield* setWeights(learning, theta)
  for (const { initialise } of learning.features) if (initialise !== undefined) yield* initialise(theta)
})

/** Plays a rollout. Returns the number of env steps. */
const play = function* <C extends Columns>(
  { experience, act, rollout, features }: Learning<C>,
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

/** Turns rewards into advantages and targets, and fills the inputs of the update's programs. */
const prepare = function* <C extends Columns>(
  { experience, rollout, features, compiled }: Learning<C>,
  iteration: number,
  at: { readonly rate: number; readonly progress: number },
): Steps<void> {
  const [{ feeds }] = compiled.programs
  for (const { beforeReturns } of features) if (beforeReturns !== undefined) yield* beforeReturns(iteration)
  experience.returns(rollout)
  for (const feature of features) feature.afterReturns?.()
  for (const feature of features) feature.beforeUpdate?.(iteration, feeds)
  compiled.prepare(iteration, at, Object.assign({}, rollout.columns, ...features.map(({ columns }) => columns)))
}

/** Learns from the last rollout. */
const learn = Effect.fnUntraced(function* <C extends Columns>(
  learning: Learning<C>,
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
const stateOf = <C extends Columns>({ compiled, features }: Learning<C>): Learner["state"] =>
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
    if (slices !== undefined && rows % 1 === 0 && rows % slices.count !== 0) {
      const what = sequence === 1 ? "rows" : `sequences of ${sequence} steps`
      return wrong("slices", `expected a divisor of a minibatch's ${rows} ${what}, found ${slices.count}`)
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
