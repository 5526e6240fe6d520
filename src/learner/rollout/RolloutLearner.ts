import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../backend/Backend.ts"
import { ConfigError } from "../../config/Config.ts"
import { layout } from "../../graph/Parameters.ts"
import type { Schedule } from "../../graph/schedules.ts"
import { stream } from "../../rng/Rng.ts"
import type { Learner, LearnerError, LearnerState, Position, SetupError } from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import type { Columns } from "../Batch.ts"
import { build } from "../build.ts"
import { drive, type Steps } from "../drive.ts"
import { learnerPolicy, onnxPolicy, restoreState } from "../learnerState.ts"
import { actSpec, policySpec } from "../programs.ts"
import { explainedVariance } from "./explainedVariance.ts"
import type { Experience, FeatureHooks } from "./Experience.ts"
import { type BaseColumns, makeRollout } from "./Rollout.ts"
import { compileUpdate, type Phase } from "./update.ts"

export interface RolloutUpdate<C> {
  /** The learning rate as a function of the run's progress, from 0 to 1. */
  readonly learningRate: Schedule
  readonly phases: ReadonlyArray<Phase<C>>
}

/**
 * Makes the learner of an on-policy algorithm. In each iteration it plays a rollout with the current policy, turns rewards
 * into advantages and value targets, learns from that rollout, and discards it.
 *
 * @example
 * ```ts
 * const returns = Learner.generalisedAdvantages({ gamma: 0.99, lambda: 1 })
 * const plain = Learner.experience({ name: "reinforce", task, actor: network, steps: 100, returns })
 * rolloutLearner(plain, {
 *   learningRate: Schedules.linear(7e-4),
 *   phases: [
 *     {
 *       name: "update",
 *       epochs: 1,
 *       minibatches: 1,
 *       maxGradNorm: 0.5,
 *       optimiser: Optimisers.adam,
 *       loss: ({ batch, weights }) => {
 *         const { distribution } = network.evaluate(weights, batch.observations)
 *         const logProbability_t = distribution.logProbability(batch.actions)
 *         return { loss: Losses.policyGradient({ logProbability_t, advantage_t: batch.advantages }), metrics: {} }
 *       },
 *     },
 *   ],
 * })
 * ```
 */
export function rolloutLearner<C extends BaseColumns & Columns>(
  experience: Experience<C>,
  update: RolloutUpdate<C>,
): Effect.Effect<Learner, SetupError, Backend | Scope.Scope>
export function rolloutLearner(experience: Experience<BaseColumns>, update: RolloutUpdate<BaseColumns>) {
  return makeLearner(experience, update)
}

const makeLearner = Effect.fnUntraced(function* (
  experience: Experience<BaseColumns>,
  { learningRate, phases }: RolloutUpdate<BaseColumns>,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  yield* checkDivisors(experience, phases)
  const { name, task, actor, steps, columns, exploration } = experience
  const rows = steps * task.numEnvs
  const backend = yield* Backend

  // These are the programs: one that acts, and one for each phase of the update.
  const parameters = yield* build(() => layout(experience.parameters))
  const fixed = yield* build(() => layout(experience.fixed))
  const acting = { name, task, actor, layout: parameters, hasTarget: experience.hasTarget }
  const act = yield* backend.compile(yield* build(() => actSpec({ ...acting, explores: exploration !== undefined })))
  const learning = yield* compileUpdate(experience, { parameters, fixed }, phases)
  const [{ feeds }] = learning.programs

  // This is the rollout with the features that take part in it.
  const features: Array<FeatureHooks> = []
  const rollout = makeRollout({
    task,
    steps,
    columns,
    keeps: actor.keeps,
    noiseSize: actor.noiseSize,
    noiseRepeat: experience.noiseRepeat,
    act,
    // The feeds of sequences have another order of rows, so the rollout cannot write to them.
    feeds: experience.sequence > 1 ? {} : feeds,
    hooks: features,
  })
  for (const start of experience.features) {
    features.push(yield* start({ name, task, columns, parameters, fixed, rollout, act, updates: learning.programs }))
  }

  // All programs share these weights.
  const programs = [act, ...learning.programs, ...features.flatMap(({ program = [] }) => program)]
  const weights = learning.last.read("theta")
  const setWeights = (theta: Float32Array, except?: Program) =>
    Effect.forEach(programs, (program) => (program === except ? Effect.void : program.write("theta", theta)))
  const firstWeights = parameters.initialise(stream(task.seed, "weights"))
  yield* setWeights(firstWeights)
  for (const { initialise } of features) if (initialise !== undefined) yield* initialise(firstWeights)

  const averages = new Averages()
  const iterations = Math.ceil(task.totalSteps / rows)

  /** Turns rewards into advantages and targets, and fills the update's programs. */
  const prepare = function* (iteration: number, rate: number): Steps<void> {
    for (const { beforeReturns } of features) if (beforeReturns !== undefined) yield* beforeReturns(iteration)
    experience.returns(rollout)
    for (const feature of features) feature.afterReturns?.()
    for (const feature of features) feature.beforeUpdate?.(iteration, feeds)
    learning.prepare(iteration, rate, Object.assign({}, rollout.columns, ...features.map(({ columns }) => columns)))
  }

  const update = Effect.fnUntraced(function* ({ iteration }: Position): Effect.fn.Return<void, LearnerError> {
    const rate = learningRate(iteration / iterations)
    yield* drive(() => prepare(iteration, rate))
    averages.add("charts/learning_rate", rate)
    yield* learning.run(averages)
    yield* averages.checkFinite(`update ${iteration + 1}`)
    yield* setWeights(yield* weights, learning.last)
    averages.add("losses/explained_variance", explainedVariance(rollout.columns.values, rollout.columns.targets))
    for (const { metrics } of features) averages.addAll(metrics?.())
  })

  const [target] = features.flatMap((feature) => feature.target ?? [])
  return {
    devices: Object.fromEntries(programs.map((program) => [program.name, program.device])),
    rollout: (envs, { iteration, step }) =>
      drive(function* () {
        if (iteration === 0) for (const feature of features) feature.beforeFirstRollout?.(envs)
        if (exploration !== undefined) act.feeds.exploration[0] = exploration(step / task.totalSteps)
        yield* rollout.collect(envs, iteration)
        for (const feature of features) feature.afterRollout?.()
        return rows
      }),
    update,
    metrics: () => averages.take(),
    ...(target === undefined
      ? {}
      : { target: { everySteps: target.everySteps, update: Effect.flatMap(weights, target.update) } }),
    policy: (numEnvs, options) => {
      const final = { ...acting, exploration: exploration?.(1) }
      return learnerPolicy(backend, () => policySpec(final, numEnvs, options), weights)
    },
    exportPolicy: (preprocess = (observations) => observations) =>
      onnxPolicy(() => policySpec(acting, 1, { preprocess, externalMemory: true }), weights),
    ...(actor.dense === undefined ? {} : { dense: actor.dense }),
    weights: Effect.map(weights, parameters.toNamed),
    state: Effect.gen(function* () {
      let files: LearnerState = { optimizer: yield* learning.optimiser.read }
      for (const { state } of features) {
        for (const [file, arrays] of Object.entries(state === undefined ? {} : yield* state)) {
          files = { ...files, [file]: { ...files[file], ...arrays } }
        }
      }
      return files
    }),
    restore: (named, saved) =>
      restoreState(function* (files) {
        yield* setWeights(yield* files.weights(parameters, named))
        yield* learning.optimiser.restore(files)
        for (const { restore } of features) if (restore !== undefined) yield* restore(files)
      }, saved),
  }
})

/** Fails unless sequences divide the rollout and minibatches divide its sequences. */
const checkDivisors = (
  { name, task, actor, steps, ...experience }: Experience<BaseColumns>,
  phases: ReadonlyArray<Phase<BaseColumns>>,
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
  for (const { minibatches } of phases) {
    if (sequences % minibatches === 0) continue
    const what =
      sequence === 1
        ? `${task.numEnvs} envs × ${steps} steps = ${sequences} rows`
        : `${task.numEnvs} envs × ${steps / sequence} sequences of ${sequence} steps = ${sequences} sequences`
    return wrong("minibatches", `expected a divisor of a rollout's ${what}, found ${minibatches}`)
  }
  return Effect.void
}
