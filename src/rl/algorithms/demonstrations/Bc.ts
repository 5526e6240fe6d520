/**
 * Behaviour cloning: trains a policy to give the demonstrated actions the highest probability. The demonstrations are
 * in memory. A step of the run is a demonstrated step that the policy learns from; the env is played only in
 * validations.
 */
import { Effect, type Scope, Struct } from "effect"
import * as Schema from "effect/Schema"
import { Backend } from "../../../tensor/backend/Backend.ts"
import { bounded, nonNegative, withDefault } from "../../../base/config/fields.ts"
import { sizeOf } from "../../env/Space.ts"
import { mean, mul, sub } from "../../../tensor/graph/ops.ts"
import { adam } from "../../../tensor/graph/optimisers.ts"
import type { ScheduleCourse, Schedule } from "../../../tensor/graph/schedules.ts"
import { type ParameterLayout, layout, type NamedTensors } from "../../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../../tensor/graph/Program.ts"
import { policies } from "../../learner/acting.ts"
import { type Algorithm, define } from "../../learner/Algorithm.ts"
import {
  type Learner,
  type LearnerState,
  type Position,
  type SetupError,
  steered,
  type Task,
} from "../../learner/Learner.ts"
import { Averages } from "../../learner/Averages.ts"
import { actionColumn, copyRows, f32, feedsOf } from "../../learner/Batch.ts"
import { batchSpec } from "../../learner/batchProgram.ts"
import { build, descend, netOf } from "../../learner/graphs.ts"
import { checkFit, dataOf, type Demonstrations } from "../../learner/Demonstrations.ts"
import { savedState, statesOf, weightsIn } from "../../learner/learnerState.ts"
import { onlyPlaying } from "../../learner/onlyPlaying.ts"
import type { Scheduled } from "../../learner/scheduled.ts"
import {
  chosenOptimiser,
  CourseSetting,
  learningRateOf,
  learningRateSetting,
  networkField,
  type NetworksOption,
  optimiserField,
  type OptimiserOption,
} from "../../learner/parts.ts"
import { accuracy, behaviourCloning } from "../../losses/policyGradient.ts"
import { type ActorCritic, actorCritic } from "../../model/ActorCritic.ts"
import { networkFields, type NetworkOptions } from "../../model/trunk.ts"
import { plannerOf, planningFields, type PlanningOptions } from "../../model/valueIteration.ts"
import { stream } from "../../../base/rng/Rng.ts"

// --- Config: `BcOptions` are the settings in code; `BcConfig` checks them and fills in the defaults ---

export interface BcOptions extends NetworkOptions, PlanningOptions, NetworksOption, OptimiserOption {
  /** The learning rate of Adam. @default 0.001 */
  readonly learningRate?: Scheduled
  /** The course of the learning rate over the run, as in PPO. @default "constant" */
  readonly schedule?: ScheduleCourse | Schedule
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

export const bcFields = {
  ...networkFields,
  ...planningFields,
  ...networkField,
  ...optimiserField,
  learningRate: withDefault(learningRateSetting, 1e-3),
  schedule: withDefault(CourseSetting, "constant"),
  batchSize: withDefault(bounded("batchRows"), 64),
  entropyCoefficient: withDefault(nonNegative, 0),
  maxGradNorm: withDefault(nonNegative, 0),
}
export const BcConfig = Schema.Struct(bcFields)
export type BcConfig = typeof BcConfig.Type

// --- Network ---

/** Makes the network of the policy, for behaviour cloning and DAgger. */
export const cloneOf = (config: BcConfig, task: Task): ActorCritic =>
  actorCritic({ ...task, ...config, planner: plannerOf(config.planning), lstm: 0 })

/** Removes the critic's value from exported policies, because the critic doesn't learn. */
const withoutValue = (network: ActorCritic): ActorCritic => ({
  ...network,
  greedy: (at) => {
    const { outputs, ...chosen } = network.greedy(at)
    return { ...chosen, outputs: () => Struct.omit(outputs?.() ?? {}, ["value"]) }
  },
})

// --- Update ---

const columnsOf = ({ observationSpace, actionSpace }: Task) => {
  return { observations: f32(sizeOf(observationSpace)), actions: actionColumn(actionSpace) }
}

/** Describes the update: one step of Adam on L = −E[log π] − c_e H, with the entropy H, weighted by c_e. */
const updateSpec = (
  name: string,
  config: BcConfig,
  network: ActorCritic,
  parameters: ParameterLayout,
  task: Task,
): ProgramSpec =>
  batchSpec({
    name: `${name}.update`,
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

/**
 * Compiles the policy and its update, for behaviour cloning and DAgger. `fill` fills the batch that `update` learns from, and
 * `learner` has the hooks that do not depend on where the demonstrations come from.
 */
export const cloner = Effect.fnUntraced(function* (name: string, config: BcConfig, task: Task) {
  const backend = yield* Backend
  const network = yield* build(() => cloneOf(config, task))
  const parameters = layout(network.parameters)
  const spec = yield* build(() => updateSpec(name, config, network, parameters, task))
  const update = yield* backend.compile(spec)
  const optimiser = statesOf(update, spec, ["theta"])
  yield* update.write("theta", parameters.initialise(stream(task.seed, "weights")))

  const averages = new Averages()
  const feeds = feedsOf(columnsOf(task), update.feeds)
  const rows = new Int32Array(config.batchSize)
  const learningRate = learningRateOf(config)
  const learner = {
    devices: { [update.name]: update.device },
    metrics: () => averages.take(),
    ...policies(backend, { name, task, actor: withoutValue(network), layout: parameters }, update.read("theta")),
    weights: Effect.map(update.read("theta"), parameters.toNamed),
    state: Effect.map(optimiser.read, (optimizer) => ({ optimizer })),
    start: (weights: NamedTensors) =>
      Effect.flatMap(weightsIn(parameters, weights), (theta) => update.write("theta", theta)),
    restore: Effect.fnUntraced(function* (weights: NamedTensors, saved: LearnerState) {
      const checkpoint = savedState(saved)
      yield* update.write("theta", yield* checkpoint.weights(parameters, weights))
      yield* optimiser.restore(checkpoint, "optimizer")
    }),
  }
  return {
    learner,
    update,
    averages,
    /**
     * Fills the batch with the rows listed in `order`, from index `from` on; after the end of the list, continues at
     * its start.
     */
    fill: (
      { observations, actions }: Pick<Demonstrations, "observations" | "actions">,
      order: Int32Array,
      from: number,
    ) => {
      for (let row = 0; row < rows.length; row++) rows[row] = order[(from + row) % order.length]
      copyRows(observations, rows, feeds.observations)
      copyRows(actions, rows, feeds.actions)
    },
    setLearningRate: (position: Position): void => {
      update.feeds.learningRate[0] = steered(position, learningRate(position.step / task.totalSteps))
    },
  }
})

// --- Learner: it takes the next batch of the demonstrations instead of a rollout ---

/** Returns a function that makes the learner for a config and a task. It learns from these demonstrations. */
const learnFrom = (demonstrations: Demonstrations) =>
  Effect.fnUntraced(function* (
    config: BcConfig,
    task: Task,
  ): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
    yield* checkFit("bc", demonstrations, task)
    const { learner, update, averages, fill, setLearningRate } = yield* cloner("bc", config, task)
    const order = new Int32Array(demonstrations.rows)
    const perPass = Math.ceil(order.length / config.batchSize)
    let orderedPass = -1
    return {
      ...learner,
      capabilities: { plays: "nothing" },
      data: dataOf(demonstrations),
      // The demonstrations are shuffled anew for each pass.
      rollout: (_envs, { iteration }) =>
        Effect.sync(() => {
          const pass = Math.floor(iteration / perPass)
          if (pass !== orderedPass) stream(task.seed, "demonstrations", pass).permutation(order)
          orderedPass = pass
          fill(demonstrations, order, (iteration % perPass) * config.batchSize)
          return config.batchSize
        }),
      update: Effect.fnUntraced(function* (position) {
        setLearningRate(position)
        yield* update.run
        averages.addResults(update)
        yield* averages.checkFinite(`update ${position.iteration + 1}`)
      }),
    }
  })

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

/** Behaviour cloning as a run's saved config makes it: it can only play what the run has learned. */
export const onlyPlays = onlyPlaying("bc", BcConfig, cloneOf)
