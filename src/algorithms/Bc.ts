import { Effect, Schema, type Scope } from "effect"
import { Backend } from "../backend/Backend.ts"
import { nonNegative, positive, positiveInt, withDefault } from "../config/fields.ts"
import { sizeOf } from "../env/Space.ts"
import { cast, equal, input, mean, mul, neg, state, sub } from "../graph/ops.ts"
import { adam } from "../graph/optimisers.ts"
import { type Layout, layout } from "../graph/Parameters.ts"
import type { ProgramSpec } from "../graph/Program.ts"
import { stream } from "../rng/Rng.ts"
import {
  LearningError,
  type Algorithm,
  define,
  type Learner,
  type PolicyOptions,
  type SetupError,
  type Task,
} from "../learner/Algorithm.ts"
import type { BcOptions } from "./options/Bc.ts"
import { Averages } from "../learner/Averages.ts"
import { build } from "../learner/build.ts"
import { descend } from "../learner/descent.ts"
import type { Demonstrations } from "../learner/Demonstrations.ts"
import { learnerPolicy, namedVector, onnxPolicy, restoreState, statesOf } from "../learner/learnerState.ts"
import { type ActorCritic, actorCritic } from "../model/ActorCritic.ts"
import { toEnvAction } from "../model/actions.ts"
import { networkFields, type Weights } from "../model/trunk.ts"
import { planningFields } from "../model/valueIteration.ts"
import { actionKind } from "../learner/rollout/programs.ts"

/**
 * Behaviour cloning: the policy that makes the demonstrated actions likeliest. A step of such a training is a
 * demonstrated step that was learnt from; the env is only played in validations.
 */
export const BcConfig = Schema.Struct({
  ...networkFields,
  ...planningFields,
  /** The learning rate of Adam. */
  learningRate: withDefault(positive, 1e-3),
  /** The course of the learning rate: `linear` lowers it to 0 over the run, `constant` keeps it. */
  schedule: withDefault(Schema.Literals(["constant", "linear"]), "constant"),
  /** The number of demonstrated steps that an update learns from. */
  batchSize: withDefault(positiveInt, 64),
  /**
   * The weight of the policy's entropy in the loss; more keeps the policy less certain than the demonstrations alone
   * do.
   */
  entropyCoefficient: withDefault(nonNegative, 0),
  /** The global norm that gradients are scaled down to; 0 does not limit them. */
  maxGradNorm: withDefault(nonNegative, 0),
})
export type BcConfig = typeof BcConfig.Type

const distributionOf = (network: ActorCritic, weights: Weights, observations: ReturnType<typeof input>) =>
  network.heads(weights, network.features(weights, observations)).distribution

const updateSpec = (config: BcConfig, network: ActorCritic, parameters: Layout, task: Task): ProgramSpec => {
  const { batchSize, entropyCoefficient, maxGradNorm } = config
  const learningRate = input("learningRate", [])
  const { size } = parameters
  const theta = state("theta", [size])
  const weights = parameters.tensorsOf(theta)
  const { shape, dtype } = actionKind(task.actionSpace)
  const observations = input("observations", [batchSize, sizeOf(task.observationSpace)])
  const actions = input("actions", [batchSize, ...shape], dtype)
  const distribution = distributionOf(network, weights, observations)
  const unlikeliness = neg(mean(distribution.logProbability(actions)))
  const entropy = mean(distribution.entropy())
  const loss = sub(unlikeliness, mul(entropy, entropyCoefficient))
  const net = { layout: parameters, theta, weights }
  const { next, moments } = descend(net, loss, adam({ size, learningRate }), maxGradNorm)
  const isDiscrete = task.actionSpace._tag === "Discrete"
  return {
    name: "bc.update",
    inputs: { observations, actions, learningRate },
    state: { theta: { tensor: theta, next }, ...moments },
    outputs: {
      "losses/unlikeliness": unlikeliness,
      "losses/entropy": entropy,
      ...(isDiscrete ? { "charts/accuracy": mean(cast(equal(distribution.mode(), actions), "f32")) } : {}),
    },
  }
}

const policySpec = (
  network: ActorCritic,
  parameters: Layout,
  task: Task,
  count: number,
  { sampled = false, see = (seen) => seen }: PolicyOptions = {},
): ProgramSpec => {
  const theta = state("theta", [parameters.size])
  const observations = input("observations", [count, sizeOf(task.observationSpace)])
  const noise = input("noise", [count, network.noiseSize])
  const distribution = distributionOf(network, parameters.tensorsOf(theta), see(observations))
  return {
    name: "bc.policy",
    inputs: { observations, ...(sampled ? { noise } : {}) },
    state: { theta: { tensor: theta } },
    outputs: {
      actions: toEnvAction(task.actionSpace, sampled ? distribution.sample(noise) : distribution.mode()),
    },
  }
}

const learnFrom = ({ rows, observations, actions }: Demonstrations) =>
  Effect.fnUntraced(function* (
    config: BcConfig,
    task: Task,
  ): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
    const width = sizeOf(task.observationSpace)
    const actionSize = sizeOf(task.actionSpace)
    const isDiscrete = task.actionSpace._tag === "Discrete"
    const fits = observations.length === rows * width && actions.length === rows * actionSize
    if (rows === 0) return yield* new LearningError({ message: "bc: there are no demonstrated steps to learn from" })
    if (!fits || isDiscrete !== actions instanceof Int32Array) {
      const message = `bc: ${rows} demonstrated steps of ${observations.length / rows} and ${actions.length / rows} numbers don't fit the env's ${width} and ${actionSize}`
      return yield* new LearningError({ message })
    }
    const backend = yield* Backend
    const network = yield* build(() => actorCritic({ ...task, ...config, lstm: 0 }))
    const parameters = layout(network.parameters)
    const spec = yield* build(() => updateSpec(config, network, parameters, task))
    const update = yield* backend.compile(spec)
    const optimiser = statesOf(update, spec, ["theta"])
    yield* update.write("theta", parameters.initialise(stream(task.seed, "weights")))

    const averages = new Averages()
    const batches = Math.ceil(rows / config.batchSize)
    const order = new Int32Array(rows)
    /** Which pass `order` is of. */
    let ordered = -1

    /** The batch of this iteration: the demonstrations are gone through again and again, each time in another order. */
    const fill = (iteration: number): void => {
      const pass = Math.floor(iteration / batches)
      if (pass !== ordered) stream(task.seed, "demonstrations", pass).permutation(order)
      ordered = pass
      const from = (iteration % batches) * config.batchSize
      for (let row = 0; row < config.batchSize; row++) {
        const shown = order[(from + row) % rows]
        for (let at = 0; at < width; at++)
          update.feeds.observations[row * width + at] = observations[shown * width + at]
        for (let at = 0; at < actionSize; at++)
          update.feeds.actions[row * actionSize + at] = actions[shown * actionSize + at]
      }
    }

    return {
      devices: { [update.name]: update.device },
      plays: "nothing",
      data: { observations: namedVector(observations), actions: namedVector(actions) },
      rollout: (_envs, { iteration }) =>
        Effect.sync(() => {
          fill(iteration)
          return config.batchSize
        }),
      update: Effect.fnUntraced(function* ({ iteration, step }) {
        const left = config.schedule === "linear" ? Math.max(0, 1 - step / task.totalSteps) : 1
        update.feeds.learningRate[0] = config.learningRate * left
        yield* update.run
        averages.addResults(update)
        yield* averages.checkFinite(`update ${iteration + 1}`)
      }),
      metrics: () => averages.take(),
      policy: (count, options) =>
        learnerPolicy(backend, () => policySpec(network, parameters, task, count, options), update.read("theta")),
      exportPolicy: (see = (seen) => seen) =>
        onnxPolicy(() => policySpec(network, parameters, task, 1, { see }), update.read("theta")),
      ...(network.dense === undefined ? {} : { dense: network.dense }),
      weights: Effect.map(update.read("theta"), parameters.toNamed),
      state: Effect.map(optimiser.read, (optimizer) => ({ optimizer })),
      restore: (weights, saved) =>
        restoreState(function* (files) {
          yield* update.write("theta", yield* files.weights(parameters, weights))
          yield* optimiser.restore(files, "optimizer")
        }, saved),
    }
  })

/**
 * Behaviour cloning of demonstrations, with any of its settings changed.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Bc.make(shown, { hidden: [32] }), totalSteps: 50_000 })
 * ```
 */
export const make = (demonstrations: Demonstrations, options: BcOptions = {}): Algorithm =>
  define({ name: "bc", config: BcConfig, setup: learnFrom(demonstrations) }).make(options)
