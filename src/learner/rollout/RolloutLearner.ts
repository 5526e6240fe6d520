import { Effect, type Scope } from "effect"
import { Backend, type Program } from "../../backend/Backend.ts"
import { ConfigError } from "../../config/Config.ts"
import { add, constant, mul, sub, where } from "../../graph/ops.ts"
import type { Optimiser } from "../../graph/optimisers.ts"
import { type Layout, layout } from "../../graph/Parameters.ts"
import { indicesFeed, type ProgramSpec } from "../../graph/Program.ts"
import type { Schedule } from "../../graph/schedules.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import type { Recall } from "../../model/memory.ts"
import type { Weights } from "../../model/trunk.ts"
import { stream } from "../../rng/Rng.ts"
import type { Learner, LearnerError, LearnerState, NamedArrays, Position, SetupError } from "../Algorithm.ts"
import { Averages } from "../Averages.ts"
import type { Batch, Columns } from "../Batch.ts"
import { build } from "../build.ts"
import { descend, type Net, netOf } from "../descent.ts"
import { drive, type Steps } from "../drive.ts"
import type { Loss } from "../Loss.ts"
import { learnerPolicy, onnxPolicy, restoreState, statesOf } from "../learnerState.ts"
import { actSpec, batchSpec, policySpec } from "../programs.ts"
import { explainedVariance } from "./explainedVariance.ts"
import type { Experience, FeatureHooks } from "./Experience.ts"
import { type BaseColumns, makeRollout } from "./Rollout.ts"

/** A minibatch as a loss reads it. */
export interface Minibatch<C> {
  /** The columns of the minibatch's rows. */
  readonly batch: Batch<C>
  /** The weights that are learned. */
  readonly weights: Weights
  /** The weights that were drawn once and are never learned. */
  readonly fixed: Weights
  /** The memory before each sequence, if the actor has a memory. */
  readonly recall: Recall | undefined
}

/** One way of passing over a rollout. PPO has one, with several epochs; DAAC has two, each with its own loss. */
export interface Phase<C> {
  /** The name of its program and, if there are several phases, of its optimiser's state in checkpoints. */
  readonly name: string
  readonly epochs: number
  /** The number of minibatches that a rollout is shuffled into, each epoch. */
  readonly minibatches: number
  /** The global norm that gradients are scaled down to; 0 does not limit them. */
  readonly maxGradNorm: number
  readonly loss: (minibatch: Minibatch<C>) => Loss
  readonly optimiser: (options: { readonly size: number; readonly learningRate: Tensor }) => Optimiser
}

export interface RolloutUpdate<C> {
  /** The learning rate as a function of the run's progress, from 0 to 1. */
  readonly learningRate: Schedule
  readonly phases: ReadonlyArray<Phase<C>>
}

/**
 * Makes the learner of an algorithm that is on-policy: it plays a rollout by the current policy, turns rewards into
 * advantages and value targets, learns from exactly that rollout, and forgets it.
 *
 * @example
 * ```ts
 * rolloutLearner(experience({ … }), {
 *   learningRate: Schedules.linear(7e-4),
 *   phases: [{ name: "update", epochs: 1, minibatches: 1, maxGradNorm: 0.5, loss, optimiser: Optimisers.adam }],
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
  const { name, task, actor, steps, exploration } = experience
  const { numEnvs, seed } = task
  const sequence = Math.max(1, experience.sequence)
  const rows = steps * numEnvs
  const backend = yield* Backend

  // Programs: one that acts, one for each phase of the update.
  const parameters = yield* build(() => layout(experience.parameters))
  const fixed = yield* build(() => layout(experience.fixed))
  const acting = { name, task, actor, layout: parameters, hasTarget: experience.hasTarget }
  const act = yield* backend.compile(yield* build(() => actSpec({ ...acting, explores: exploration !== undefined })))
  const updates = yield* Effect.forEach(
    phases,
    Effect.fnUntraced(function* (phase) {
      const spec = yield* build(() => updateSpec(experience, { parameters, fixed }, phase))
      const program = yield* backend.compile(spec)
      const prefix = phases.length === 1 ? "" : `${phase.name}.`
      const optimiser = statesOf(program, spec, ["theta", "target", "fixed"], prefix)
      return { phase, program, optimiser, gathered: spec.minibatches?.gathered ?? [] }
    }),
  )
  const [first] = updates
  const last = updates[updates.length - 1].program

  // The rollout, and the features that take part in it.
  const features: Array<FeatureHooks> = []
  const { columns, noiseRepeat } = experience
  // The feeds of sequences have another order of rows.
  const feeds = sequence === 1 ? first.program.feeds : {}
  const { keeps, noiseSize } = actor
  const rollout = makeRollout({ task, steps, columns, keeps, noiseSize, noiseRepeat, act, feeds, hooks: features })
  for (const start of experience.features) {
    const programs = { act, updates: updates.map(({ program }) => program) }
    features.push(yield* start({ name, task, columns, parameters, fixed, rollout, ...programs }))
  }
  const programs = [act, ...updates.map(({ program }) => program), ...features.flatMap(({ program = [] }) => program)]

  // The first weights.
  const setWeights = (theta: Float32Array, except?: Program) =>
    Effect.forEach(programs, (program) => (program === except ? Effect.void : program.write("theta", theta)))
  const firstWeights = parameters.initialise(stream(seed, "weights"))
  yield* setWeights(firstWeights)
  for (const { initialise } of features) if (initialise !== undefined) yield* initialise(firstWeights)

  const averages = new Averages()
  const iterations = Math.ceil(task.totalSteps / rows)
  const order = new Int32Array(rows / sequence)

  const prepareUpdate = function* (iteration: number, rate: number): Steps<void> {
    for (const { beforeReturns } of features) if (beforeReturns !== undefined) yield* beforeReturns(iteration)
    experience.returns(rollout)
    for (const feature of features) feature.afterReturns?.()
    for (const feature of features) feature.beforeUpdate?.(iteration, first.program.feeds)
    const columns = Object.assign({}, rollout.columns, ...features.map((feature) => feature.columns))
    const shuffle = stream(seed, "minibatches", iteration)
    for (const { program, phase, gathered } of updates) {
      fill(program, gathered, columns, { numEnvs, steps, sequence })
      const indices = program.feeds[indicesFeed]
      for (let epoch = 0; epoch < phase.epochs; epoch++) {
        shuffle.permutation(order)
        indices.set(order, epoch * order.length)
      }
      program.feeds.learningRate[0] = rate
    }
  }

  const update = Effect.fnUntraced(function* ({ iteration }: Position): Effect.fn.Return<void, LearnerError> {
    const rate = learningRate(iteration / iterations)
    yield* drive(() => prepareUpdate(iteration, rate))
    averages.add("charts/learning_rate", rate)
    for (const [index, { program }] of updates.entries()) {
      yield* program.run
      averages.addResults(program)
      const following = updates[index + 1]?.program
      if (following !== undefined) yield* following.write("theta", yield* program.read("theta"))
    }
    yield* averages.checkFinite(`update ${iteration + 1}`)
    yield* setWeights(yield* last.read("theta"), last)
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
      : { target: { everySteps: target.everySteps, update: Effect.flatMap(last.read("theta"), target.update) } }),
    policy: (count, options) => {
      const final = exploration?.(1)
      const spec = () => policySpec({ ...acting, exploration: final }, count, options)
      return learnerPolicy(backend, spec, last.read("theta"))
    },
    exportPolicy: (see = (observations) => observations) =>
      onnxPolicy(() => policySpec(acting, 1, { see, memoryOutside: true }), last.read("theta")),
    ...(actor.dense === undefined ? {} : { dense: actor.dense }),
    weights: Effect.map(last.read("theta"), parameters.toNamed),
    state: Effect.gen(function* () {
      let optimizer: NamedArrays = {}
      for (const { optimiser } of updates) optimizer = { ...optimizer, ...(yield* optimiser.read) }
      let files: LearnerState = { optimizer }
      for (const { state } of features) {
        for (const [file, arrays] of Object.entries(state === undefined ? {} : yield* state)) {
          files = { ...files, [file]: { ...files[file], ...arrays } }
        }
      }
      return files
    }),
    restore: (weights, saved) =>
      restoreState(function* (files) {
        yield* setWeights(yield* files.weights(parameters, weights))
        for (const { optimiser } of updates) yield* optimiser.restore(files, "optimizer")
        for (const { restore } of features) if (restore !== undefined) yield* restore(files)
      }, saved),
  }
})

/** The whole update as one graph: forward, loss, backward, clipping and optimiser, once for each minibatch. */
const updateSpec = <C extends Columns>(
  { name, task, actor, steps, columns, ...experience }: Experience<C>,
  layouts: { readonly parameters: Layout; readonly fixed: Layout },
  phase: Phase<C>,
): ProgramSpec => {
  const sequence = Math.max(1, experience.sequence)
  const sequences = (steps * task.numEnvs) / sequence
  const net = netOf(layouts.parameters, "theta")
  const fixed = netOf(layouts.fixed, "fixed")
  return batchSpec({
    name: `${name}.${phase.name}`,
    columns,
    sequences: sequences / phase.minibatches,
    steps: sequence,
    memorySize: actor.memorySize,
    minibatches: { rows: sequences, count: phase.epochs * phase.minibatches },
    build: ({ batch, scalar, recall }) => {
      const learningRate = scalar("learningRate")
      const { loss, metrics, continueWhile } = phase.loss({ batch, weights: net.weights, fixed: fixed.weights, recall })
      const optimiser = phase.optimiser({ size: net.layout.size, learningRate })
      const { next, moments } = descend(net, loss, optimiser, phase.maxGradNorm)
      const theta = { tensor: net.theta, next: slowed(net, experience.learningRateShares, next) }
      const states = Object.entries({ theta, ...moments }).map(([key, { tensor, next }]) => {
        return [key, { tensor, next: continueWhile === undefined ? next : where(continueWhile, next, tensor) }] as const
      })
      return {
        states: {
          ...Object.fromEntries(states),
          ...(fixed.layout.size === 0 ? {} : { fixed: { tensor: fixed.theta } }),
        },
        outputs: metrics,
        continueWhile,
      }
    },
  })
}

/** Lets parameters that have a learning rate of their own go only that share of their step. */
const slowed = ({ layout, theta }: Net, shares: Readonly<Record<string, number>>, next: Tensor): Tensor =>
  Object.keys(shares).length === 0
    ? next
    : add(theta, mul(constant(layout.spread((name) => shares[name] ?? 1)), sub(next, theta)))

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

interface RolloutShape {
  readonly numEnvs: number
  readonly steps: number
  readonly sequence: number
}

/** Copies a rollout's columns into a program's feeds, unless they are the same arrays. */
const fill = (
  program: Program,
  names: ReadonlyArray<string>,
  columns: Readonly<Record<string, Float32Array | Int32Array>>,
  { numEnvs, steps, sequence }: RolloutShape,
): void => {
  for (const name of names) {
    const column = columns[name]
    const feed = program.feeds[name]
    if (feed === column) continue
    if (sequence === 1) feed.set(column)
    else envMajor(column, feed, numEnvs, name === "memory" ? steps / sequence : steps)
  }
}

/** From [steps, envs, size] to [envs, steps, size], so that the steps of a sequence follow each other. */
const envMajor = (
  column: Float32Array | Int32Array,
  feed: Program["feeds"][string],
  envs: number,
  steps: number,
): void => {
  const size = column.length / (envs * steps)
  for (let step = 0; step < steps; step++) {
    for (let env = 0; env < envs; env++) {
      const from = (step * envs + env) * size
      const to = (env * steps + step) * size
      for (let at = 0; at < size; at++) feed[to + at] = column[from + at]
    }
  }
}
