import { Effect, Schema, type Scope } from "effect"
import { Backend, type Program } from "../backend/Backend.ts"
import { ConfigError } from "../config/Config.ts"
import { fraction, nonNegative, positiveInt, withDefault } from "../config/fields.ts"
import { sizeOf } from "../env/Space.ts"
import type { Distribution } from "../graph/distributions.ts"
import { GraphError } from "../graph/GraphError.ts"
import { gradients } from "../graph/gradients.ts"
import { input, state, where } from "../graph/ops.ts"
import { clipGlobalNorm, type Optimiser } from "../graph/optimisers.ts"
import { indicesFeed, type ProgramSpec } from "../graph/Program.ts"
import { type Tensor, topologicalOrder } from "../graph/Tensor.ts"
import { stream } from "../rng/Rng.ts"
import { type ActorCritic, actorCritic, toEnvAction } from "./ActorCritic.ts"
import {
  AgentError,
  type Learner,
  type LearnerError,
  type Metrics,
  type NamedTensors,
  type Policy,
  type Position,
  type SetupError,
  type Task,
} from "./Algorithm.ts"
import { makeCollector } from "./Collector.ts"

/**
 * What A2C, PPO and their kin share: act with the current policy for a while, turn the rewards into advantages and
 * value targets, update on exactly that experience, forget it. They differ in their loss, in their optimiser, and in
 * how often they pass over a rollout.
 */
export const onPolicyFields = {
  gamma: withDefault(fraction, 0.99),
  entropyCoefficient: withDefault(nonNegative, 0.01),
  valueCoefficient: withDefault(nonNegative, 0.5),
  /** Gradients are scaled down to this global norm; 0 leaves them alone. */
  maxGradNorm: withDefault(nonNegative, 0.5),
  /** `linear` anneals the learning rate to zero over the run. */
  schedule: withDefault(Schema.Literals(["constant", "linear"]), "linear"),
  hidden: withDefault(Schema.Array(positiveInt), [64, 64]),
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "tanh"),
}

export interface OnPolicyConfig {
  readonly learningRate: number
  readonly nsteps: number
  readonly gamma: number
  readonly lambda: number
  readonly maxGradNorm: number
  readonly schedule: "constant" | "linear"
  readonly hidden: ReadonlyArray<number>
  readonly activation: "tanh" | "relu"
}

/** One minibatch as the loss sees it: each tensor has the minibatch's rows. */
export interface Batch {
  /** Of the current parameters, at the observations. */
  readonly distribution: Distribution
  readonly value: Tensor
  /** What was done, and how the policy that did it saw it. */
  readonly actions: Tensor
  readonly logProbs: Tensor
  readonly values: Tensor
  readonly advantages: Tensor
  readonly targets: Tensor
}

export interface Loss {
  readonly loss: Tensor
  /** Scalars, averaged over the minibatches of an update. */
  readonly metrics: Readonly<Record<string, Tensor>>
  /** Where false, the minibatch is not applied and the update ends. */
  readonly proceed?: Tensor
}

export interface OnPolicyDefinition {
  readonly name: string
  readonly config: OnPolicyConfig
  /** Passes over a rollout, and the parts of each. */
  readonly epochs: number
  readonly minibatches: number
  readonly loss: (batch: Batch) => Loss
  readonly optimiser: (options: { readonly size: number; readonly learningRate: Tensor }) => Optimiser
}

/** Sets an on-policy algorithm up for a task: compiles its programs and draws its first weights. */
export const onPolicyLearner = Effect.fnUntraced(function* (
  definition: OnPolicyDefinition,
  task: Task,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { config, name } = definition
  const rows = yield* checkedRows(definition, task)
  const backend = yield* Backend
  const network = yield* build(() => actorCritic({ ...task, ...config }))
  const act = yield* backend.compile(yield* build(() => actSpec(name, network, task)))
  const spec = yield* build(() => updateSpec(definition, network, task))
  const update = yield* backend.compile(spec)
  const moments = Object.keys(spec.state).filter((key) => key !== "theta")

  const setWeights = Effect.fnUntraced(function* (theta: Float32Array) {
    yield* act.write("theta", theta)
    yield* update.write("theta", theta)
  })
  yield* setWeights(network.parameters.initialise(stream(task.seed, "weights")))

  const collector = makeCollector({
    ...config,
    task,
    act,
    steps: config.nsteps,
    noiseSize: network.noiseSize,
    feeds: update.feeds,
  })
  const iterations = Math.ceil(task.totalSteps / rows)
  const indices = update.feeds[indicesFeed]
  const order = new Int32Array(rows)

  const learn = Effect.fnUntraced(function* ({ iteration }: Position): Effect.fn.Return<Metrics, LearnerError> {
    const shuffle = stream(task.seed, "minibatches", iteration)
    for (let epoch = 0; epoch < definition.epochs; epoch++) {
      shuffle.permutation(order)
      indices.set(order, epoch * rows)
    }
    const remaining = config.schedule === "linear" ? 1 - iteration / iterations : 1
    const learningRate = config.learningRate * Math.max(0, remaining)
    update.feeds.learningRate[0] = learningRate
    yield* update.run
    const losses = meansOf(update.results, update.iterations())
    const diverged = Object.keys(losses).find((key) => !Number.isFinite(losses[key]))
    if (diverged !== undefined) {
      const message = `update ${iteration + 1}: ${diverged} is ${losses[diverged]}: the training has diverged; a lower learning_rate may help`
      return yield* new AgentError({ message })
    }
    yield* act.write("theta", yield* update.read("theta"))
    return {
      "charts/learning_rate": learningRate,
      ...losses,
      "losses/explained_variance": explainedVariance(collector.values, collector.targets),
    }
  })

  const policy = Effect.fnUntraced(function* (numEnvs: number) {
    const program = yield* backend.compile(yield* build(() => policySpec(name, network, task, numEnvs)))
    const { actions } = program.results
    const { observations } = program.feeds
    if (!(observations instanceof Float32Array) || actions instanceof Uint8Array) {
      return yield* Effect.die(new TypeError("a policy maps float32 observations to numbers"))
    }
    const refresh = Effect.flatMap(update.read("theta"), (theta) => program.write("theta", theta))
    return { program, observations, actions, refresh } satisfies Policy
  })

  const optimiser = Effect.gen(function* () {
    const tensors: Record<string, NamedTensors[string]> = {}
    for (const key of moments) tensors[key] = { shape: spec.state[key].tensor.shape, data: yield* update.read(key) }
    return tensors
  })

  return {
    stepsPerIteration: rows,
    devices: { [act.name]: act.device, [update.name]: update.device },
    collect: (envs, { iteration }) => collector.collect(envs, iteration),
    learn,
    policy,
    weights: Effect.map(update.read("theta"), network.parameters.toNamed),
    optimiser,
    restore: Effect.fnUntraced(function* (weights, saved) {
      const misfit = (error: { readonly message: string }) => new AgentError({ message: error.message })
      const theta = yield* Effect.mapError(
        build(() => network.parameters.fromNamed(weights)),
        misfit,
      )
      yield* setWeights(theta)
      for (const key of moments) {
        const { shape } = spec.state[key].tensor
        if (saved[key]?.shape.join() !== shape.join()) {
          return yield* misfit({ message: `"${key}" is not of shape [${shape.join(", ")}]` })
        }
        yield* update.write(key, saved[key].data)
      }
    }),
  }
})

/** Building a graph is plain code that throws a GraphError. */
const build = <A>(body: () => A): Effect.Effect<A, GraphError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(body())
    } catch (error) {
      return error instanceof GraphError ? Effect.fail(error) : Effect.die(error)
    }
  })

const checkedRows = (
  { name, config, minibatches }: OnPolicyDefinition,
  { numEnvs }: Task,
): Effect.Effect<number, ConfigError> => {
  const rows = config.nsteps * numEnvs
  if (rows % minibatches === 0) return Effect.succeed(rows)
  const message = `algorithm.minibatches: expected a divisor of a rollout's ${numEnvs} envs × ${config.nsteps} steps = ${rows} rows, found ${minibatches}`
  return Effect.fail(new ConfigError({ source: name, key: "algorithm.minibatches", message }))
}

const meansOf = (results: Program["results"], iterations: number): Metrics =>
  Object.fromEntries(
    Object.entries(results).map(([key, values]) => {
      let sum = 0
      for (let index = 0; index < iterations; index++) sum += values[index]
      return [key, sum / iterations]
    }),
  )

/** 1 − Var(targets − values) / Var(targets): 1 is a critic that knows, 0 one that says nothing. */
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

/** The act program's graph: observations and uniform noise in; actions, their log-probabilities and values out. */
const actSpec = (name: string, network: ActorCritic, task: Task): ProgramSpec => {
  const { numEnvs } = task
  const theta = state("theta", [network.parameters.size])
  const observations = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const noise = input("noise", [numEnvs, network.noiseSize])
  const { distribution, value } = network.evaluate(theta, observations)
  const action = distribution.sample(noise)
  return {
    name: `${name}.act`,
    inputs: { observations, noise },
    state: { theta: { tensor: theta } },
    outputs: {
      actions: action,
      envActions: toEnvAction(task.actionSpace, action),
      logProbs: distribution.logProbability(action),
      values: value,
    },
  }
}

/** The greedy policy's graph, for validation and deployment. */
const policySpec = (name: string, network: ActorCritic, task: Task, numEnvs: number): ProgramSpec => {
  const theta = state("theta", [network.parameters.size])
  const observations = input("observations", [numEnvs, sizeOf(task.observationSpace)])
  const { distribution } = network.evaluate(theta, observations)
  return {
    name: `${name}.policy`,
    inputs: { observations },
    state: { theta: { tensor: theta } },
    outputs: { actions: toEnvAction(task.actionSpace, distribution.mode()) },
  }
}

/** The whole update as one graph: forward, loss, backward, clipping, optimiser, once a minibatch. */
const updateSpec = (definition: OnPolicyDefinition, network: ActorCritic, task: Task): ProgramSpec => {
  const rows = definition.config.nsteps * task.numEnvs
  const batch = rows / definition.minibatches
  const { size } = network.parameters
  const theta = state("theta", [size])
  const learningRate = input("learningRate", [])
  const actionSize = sizeOf(task.actionSpace)
  const gathered = {
    observations: input("observations", [batch, sizeOf(task.observationSpace)]),
    actions:
      task.actionSpace._tag === "Discrete" ? input("actions", [batch], "i32") : input("actions", [batch, actionSize]),
    logProbs: input("logProbs", [batch]),
    values: input("values", [batch]),
    advantages: input("advantages", [batch]),
    targets: input("targets", [batch]),
  }
  const { distribution, value } = network.evaluate(theta, gathered.observations)
  const { loss, metrics, proceed } = definition.loss({ ...gathered, distribution, value })

  const weights = network.parameters.tensorsOf(theta)
  const names = network.parameters.names
  const slopes = gradients(
    loss,
    names.map((name) => weights[name]),
  )
  const gradient = network.parameters.flatten(Object.fromEntries(names.map((name, index) => [name, slopes[index]])))
  const { maxGradNorm } = definition.config
  const clipped = maxGradNorm > 0 ? clipGlobalNorm(gradient, maxGradNorm) : gradient
  const { next, moments } = definition.optimiser({ size, learningRate }).update(theta, clipped)
  const kept = (tensor: Tensor, proposed: Tensor): Tensor =>
    proceed === undefined ? proposed : where(proceed, proposed, tensor)
  const states = Object.entries({ theta: { tensor: theta, next }, ...moments })
  const spec = {
    state: Object.fromEntries(states.map(([key, { tensor, next: to }]) => [key, { tensor, next: kept(tensor, to) }])),
    outputs: metrics,
  }
  // A loss need not look at everything that a rollout holds (A2C doesn't look at the old probabilities).
  const used = new Set(
    topologicalOrder([...Object.values(metrics), ...Object.values(spec.state).map((entry) => entry.next)]),
  )
  const looksAt = Object.fromEntries(Object.entries(gathered).filter(([, tensor]) => used.has(tensor)))
  return {
    name: `${definition.name}.update`,
    inputs: { ...looksAt, learningRate },
    ...spec,
    minibatches: {
      rows,
      batch,
      count: definition.epochs * definition.minibatches,
      gathered: Object.keys(looksAt),
      ...(proceed === undefined ? {} : { continueWhile: proceed }),
    },
  }
}
