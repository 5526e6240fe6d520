import { Effect, Schema, type Scope } from "effect"
import { Backend } from "../../backend/Backend.ts"
import { nonNegative, positive, positiveInt, withDefault } from "../../config/fields.ts"
import { sizeOf } from "../../env/Space.ts"
import { mean, mul, sub } from "../../graph/ops.ts"
import { adam } from "../../graph/optimisers.ts"
import type { Course, Schedule } from "../../graph/schedules.ts"
import { type Layout, layout } from "../../graph/Parameters.ts"
import type { ProgramSpec } from "../../graph/Program.ts"
import { policies } from "../../learner/acting.ts"
import { type Algorithm, define, type Learner, type SetupError, steered, type Task } from "../../learner/Algorithm.ts"
import { Averages } from "../../learner/Averages.ts"
import { actionColumn, type Arrays, f32, feedsOf } from "../../learner/Batch.ts"
import { batchSpec } from "../../learner/batchProgram.ts"
import { build, descend, netOf } from "../../learner/graphs.ts"
import { checkFit, type Demonstrations } from "../../learner/Demonstrations.ts"
import { namedVector, savedState, statesOf, weightsIn } from "../../learner/learnerState.ts"
import {
  chosenOptimiser,
  CourseSetting,
  learningRateOf,
  networkField,
  type NetworksOption,
  optimiserField,
  type OptimiserOption,
} from "../../learner/parts.ts"
import { accuracy, behaviourCloning } from "../../losses/policyGradient.ts"
import { type ActorCritic, actorCritic } from "../../model/ActorCritic.ts"
import { networkFields, type NetworkOptions } from "../../model/trunk.ts"
import { planningFields, type PlanningOptions } from "../../model/valueIteration.ts"
import { stream } from "../../rng/Rng.ts"

/**
 * Behaviour cloning: it trains the policy under which the demonstrated actions are likeliest. The demonstrations are in
 * memory. The steps of a run are the demonstrated steps that it learns from; the env is played only in validations.
 */

// --- Config: `BcOptions` are the settings in code; `BcConfig` checks them and fills in the defaults ---

export interface BcOptions extends NetworkOptions, PlanningOptions, NetworksOption, OptimiserOption {
  /** The learning rate of Adam. @default 0.001 */
  readonly learningRate?: number
  /** The course of the learning rate over the run, as in PPO. @default "constant" */
  readonly schedule?: Course | Schedule
  /** The number of demonstrated steps that an update learns from. @default 64 */
  readonly batchSize?: number
  /**
   * The weight of the policy's entropy in the loss; more keeps the policy less certain than the demonstrations alone do.
   * @default 0
   */
  readonly entropyCoefficient?: number
  /** The limit of the global norm of gradients; larger ones are scaled down to it. 0 sets no limit. @default 0 */
  readonly maxGradNorm?: number
}

export const BcConfig = Schema.Struct({
  ...networkFields,
  ...planningFields,
  ...networkField,
  ...optimiserField,
  learningRate: withDefault(positive, 1e-3),
  schedule: withDefault(CourseSetting, "constant"),
  batchSize: withDefault(positiveInt, 64),
  entropyCoefficient: withDefault(nonNegative, 0),
  maxGradNorm: withDefault(nonNegative, 0),
})
export type BcConfig = typeof BcConfig.Type

// --- Update ---

const columnsOf = ({ observationSpace, actionSpace }: Task) => {
  return { observations: f32(sizeOf(observationSpace)), actions: actionColumn(actionSpace) }
}

/** Describes the update: one step of Adam on L = −E[log π] − c_e H, with the entropy H, weighted by c_e. */
const updateSpec = (config: BcConfig, network: ActorCritic, parameters: Layout, task: Task): ProgramSpec =>
  batchSpec({
    name: "bc.update",
    columns: columnsOf(task),
    sequences: config.batchSize,
    build: ({ batch, scalar }) => {
      const learningRate = scalar("learningRate")
      const net = netOf(parameters, "theta")
      const { distribution } = network.evaluate(net.weights, batch.observations)
      const unlikeliness = behaviourCloning(distribution.logProbability(batch.actions))
      const entropy = mean(distribution.entropy())
      const loss = sub(unlikeliness, mul(entropy, config.entropyCoefficient))
      const optimiser = chosenOptimiser(config, adam)({ layout: parameters, size: parameters.size, learningRate })
      const { next, moments } = descend(net, loss, optimiser, config.maxGradNorm)
      const isDiscrete = task.actionSpace._tag === "Discrete"
      return {
        states: { theta: { tensor: net.theta, next }, ...moments },
        outputs: {
          "losses/unlikeliness": unlikeliness,
          "losses/entropy": entropy,
          ...(isDiscrete ? { "charts/accuracy": accuracy(distribution.mode(), batch.actions) } : {}),
        },
      }
    },
  })

// --- Learner: it takes the next batch of the demonstrations instead of a rollout ---

/** Returns a function that makes the learner for a config and a task. It learns from these demonstrations. */
const learnFrom = (demonstrations: Demonstrations) =>
  Effect.fnUntraced(function* (
    config: BcConfig,
    task: Task,
  ): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
    yield* checkFit("bc", demonstrations, task)
    const { observations, actions } = demonstrations
    const backend = yield* Backend
    const network = yield* build(() => actorCritic({ ...task, ...config, lstm: 0 }))
    const parameters = layout(network.parameters)
    const spec = yield* build(() => updateSpec(config, network, parameters, task))
    const update = yield* backend.compile(spec)
    const optimiser = statesOf(update, spec, ["theta"])
    yield* update.write("theta", parameters.initialise(stream(task.seed, "weights")))

    const averages = new Averages()
    const fill = batches(demonstrations, task, config.batchSize, feedsOf(columnsOf(task), update.feeds))
    const learningRate = learningRateOf(config)
    return {
      devices: { [update.name]: update.device },
      plays: "nothing",
      data: { observations: namedVector(observations), actions: namedVector(actions) },
      rollout: (_envs, { iteration }) =>
        Effect.sync(() => {
          fill(iteration)
          return config.batchSize
        }),
      update: Effect.fnUntraced(function* (position) {
        const { iteration, step } = position
        update.feeds.learningRate[0] = steered(position, learningRate(step / task.totalSteps))
        yield* update.run
        averages.addResults(update)
        yield* averages.checkFinite(`update ${iteration + 1}`)
      }),
      metrics: () => averages.take(),
      ...policies(backend, { name: "bc", task, actor: network, layout: parameters }, update.read("theta")),
      weights: Effect.map(update.read("theta"), parameters.toNamed),
      state: Effect.map(optimiser.read, (optimizer) => ({ optimizer })),
      start: (weights) => Effect.flatMap(weightsIn(parameters, weights), (theta) => update.write("theta", theta)),
      restore: Effect.fnUntraced(function* (weights, saved) {
        const checkpoint = savedState(saved)
        yield* update.write("theta", yield* checkpoint.weights(parameters, weights))
        yield* optimiser.restore(checkpoint, "optimizer")
      }),
    }
  })

/**
 * Returns a function that fills the feeds with the batch of an iteration. The demonstrations are shuffled anew for each
 * pass. The last batch of a pass is filled up with rows from the beginning of the pass.
 */
const batches = (
  { rows, observations, actions }: Demonstrations,
  { seed }: Task,
  batchSize: number,
  feeds: Arrays<ReturnType<typeof columnsOf>>,
): ((iteration: number) => void) => {
  const width = observations.length / rows
  const actionSize = actions.length / rows
  const perPass = Math.ceil(rows / batchSize)
  const order = new Int32Array(rows)
  let orderedPass = -1
  return (iteration) => {
    const pass = Math.floor(iteration / perPass)
    if (pass !== orderedPass) stream(seed, "demonstrations", pass).permutation(order)
    orderedPass = pass
    const from = (iteration % perPass) * batchSize
    for (let row = 0; row < batchSize; row++) {
      const step = order[(from + row) % rows]
      for (let at = 0; at < width; at++) feeds.observations[row * width + at] = observations[step * width + at]
      for (let at = 0; at < actionSize; at++) feeds.actions[row * actionSize + at] = actions[step * actionSize + at]
    }
  }
}

/**
 * Makes behaviour cloning of demonstrations; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Bc.make(demonstrations, { hidden: [32] }), totalSteps: 50_000 })
 * ```
 */
export const make = (demonstrations: Demonstrations, options: BcOptions = {}): Algorithm =>
  define({ name: "bc", config: BcConfig, setup: learnFrom(demonstrations) }).make(options)
