/**
 * Evolution strategies (Salimans et al. 2017, arXiv:1703.03864): every env plays an episode with its own random
 * variation of the weights, and the weights move towards the variations with the larger returns. Variations come in
 * pairs of opposites. No gradient is computed, so this is a baseline for algorithms that compute one. The variations
 * that play at the same time are the members of a population.
 */
import { Effect, type Scope } from "effect"
import * as Schema from "effect/Schema"
import { Backend, type Program } from "../../../tensor/backend/Backend.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import { bounded, layers, nonNegative, positive, withDefault } from "../../../base/config/fields.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { sizeOf } from "../../env/Space.ts"
import type { Distribution } from "../../../tensor/graph/distributions.ts"
import { activations, mlp } from "../../../tensor/graph/layers.ts"
import { add, input, matmul, reshape, slice, state } from "../../../tensor/graph/ops.ts"
import { type ParameterLayout, layout } from "../../../tensor/graph/Parameters.ts"
import type { ProgramSpec } from "../../../tensor/graph/Program.ts"
import { sizeOf as elements, type Tensor } from "../../../tensor/graph/Tensor.ts"
import { policies } from "../../learner/acting.ts"
import { define, type Make } from "../../learner/Algorithm.ts"
import { type Learner, type SetupError, steered, type Task } from "../../learner/Learner.ts"
import { Averages } from "../../learner/Averages.ts"
import { build } from "../../learner/graphs.ts"
import { drive, type Steps, waitFor } from "../../learner/drive.ts"
import { learningRateSetting } from "../../learner/parts.ts"
import { type Scheduled, scheduleOf } from "../../learner/scheduled.ts"
import { numbersOf, savedState, vectorsOf, weightsIn } from "../../learner/learnerState.ts"
import { outputsFor, policyOver, toEnvAction } from "../../model/actions.ts"
import type { Actor } from "../../model/Actor.ts"
import { asVectors, maskOf, vectorSizeOf } from "../../model/observations.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { meanOf } from "../../../base/statistics/resampling.ts"

// --- Config: `EsOptions` are the settings in code; `EsConfig` checks them and fills in the defaults ---

export interface EsOptions {
  /** The learning rate of Adam. @default 0.03 */
  readonly learningRate?: Scheduled
  /** The standard deviation of the variations of the weights. @default 0.1 */
  readonly deviation?: number
  /** The weight decay: each update subtracts this share of the weights from the estimated gradient. @default 0.005 */
  readonly weightDecay?: number
  /** The sizes of the hidden layers. @default [32] */
  readonly hidden?: ReadonlyArray<number>
  /** The activation function between layers. @default "tanh" */
  readonly activation?: "tanh" | "relu"
  /** The number of steps after which an episode is cut short with its return so far; 0 sets no limit. @default 10000 */
  readonly maxEpisodeSteps?: number
}

export const EsConfig = Schema.Struct({
  learningRate: withDefault(learningRateSetting, 0.03),
  deviation: withDefault(positive, 0.1),
  weightDecay: withDefault(nonNegative, 0.005),
  hidden: withDefault(layers, [32]),
  activation: withDefault(Schema.Literals(["tanh", "relu"]), "tanh"),
  maxEpisodeSteps: withDefault(bounded("countOrNone"), 10_000),
})
export type EsConfig = typeof EsConfig.Type

// --- Network ---

type EsNetwork = ReturnType<typeof mlp>

/**
 * Computes a network's outputs for observations that each have weights of their own: one row of `population` [members,
 * size].
 */
const forward = (
  population: Tensor,
  shapes: ReadonlyArray<ReadonlyArray<number>>,
  observations: Tensor,
  activation: EsConfig["activation"],
): Tensor => {
  const [members, width] = observations.shape
  let value = reshape(observations, [members, 1, width])
  let offset = 0
  /** Takes the next parameter, of this shape, from the weights of every member. */
  const nextParameter = (shape: ReadonlyArray<number>): Tensor => {
    const part = slice(population, [0, offset], [members, elements(shape)])
    offset += elements(shape)
    return part
  }
  // `shapes` has two entries for each layer: the weight and the bias.
  for (let layer = 0; layer < shapes.length; layer += 2) {
    const [inputs, outputs] = shapes[layer]
    const weight = reshape(nextParameter(shapes[layer]), [members, inputs, outputs])
    const bias = reshape(nextParameter(shapes[layer + 1]), [members, 1, outputs])
    const sums = add(matmul(value, weight), bias)
    value = layer + 2 < shapes.length ? activations[activation](sums) : sums
  }
  return reshape(value, [members, value.shape[2]])
}

/** Computes the action from a network's outputs. No action is drawn at random: the varied weights explore instead. */
const policyOf = (task: Task, observations: Tensor, outputs: Tensor): Distribution =>
  policyOver(task.actionSpace, outputs, { allowed: maskOf(task.observationSpace, observations) })

// --- Rollout: one episode for each variation. Update: a step towards the variations with larger returns ---

/** Replaces returns by ranks from −½ to ½, so that one very large return counts little. Equal returns share a rank. */
export const centredRanks = (returns: Float64Array): Float64Array => {
  const order = Array.from(returns.keys()).sort((a, b) => returns[a] - returns[b])
  const ranks = new Float64Array(returns.length)
  for (let from = 0; from < order.length;) {
    let to = from
    while (to + 1 < order.length && returns[order[to + 1]] === returns[order[from]]) to++
    for (let at = from; at <= to; at++) {
      ranks[order[at]] = order.length < 2 ? 0 : (from + to) / 2 / (order.length - 1) - 0.5
    }
    from = to + 1
  }
  return ranks
}

/** The current weights, the variations of them that play, and the state of Adam. */
interface Population {
  readonly config: EsConfig
  readonly seed: number
  readonly numEnvs: number
  /** The number of weights. */
  readonly size: number
  readonly theta: Float32Array
  /** The first and second moments of Adam, and the number of updates. */
  readonly first: Float64Array
  readonly second: Float64Array
  readonly updates: Float64Array
  /** The variation ε of each pair of members, and (`members`) the weights of each member. */
  readonly noise: Float32Array
  readonly members: Float32Array
  readonly returns: Float64Array
}

const populationOf = (config: EsConfig, { seed, numEnvs }: Task, theta: Float32Array): Population => {
  const size = theta.length
  return {
    config,
    seed,
    numEnvs,
    size,
    theta,
    first: new Float64Array(size),
    second: new Float64Array(size),
    updates: new Float64Array(1),
    noise: new Float32Array((numEnvs / 2) * size),
    members: new Float32Array(numEnvs * size),
    returns: new Float64Array(numEnvs),
  }
}

/** Gives each member of the population its weights: a pair of members gets θ + σε and θ − σε, with the same ε. */
const vary = ({ config, seed, numEnvs, size, theta, noise, members }: Population, generation: number): void => {
  stream(seed, "es", generation).fillNormal(noise)
  for (let member = 0; member < numEnvs; member++) {
    const sign = member % 2 === 0 ? config.deviation : -config.deviation
    const from = (member >> 1) * size
    for (let at = 0; at < size; at++) members[member * size + at] = theta[at] + sign * noise[from + at]
  }
}

/** Takes a step of Adam (β₁ = 0.9, β₂ = 0.999) by the estimated gradient 1 / (nσ) Σ rank · ε, with weight decay. */
const learn = (population: Population, learningRate: number): void => {
  const { config, numEnvs, size, theta, first, second, updates, noise } = population
  const ranks = centredRanks(population.returns)
  updates[0]++
  const correction = Math.sqrt(1 - 0.999 ** updates[0]) / (1 - 0.9 ** updates[0])
  for (let at = 0; at < size; at++) {
    let ascent = 0
    for (let pair = 0; pair < numEnvs / 2; pair++) {
      ascent += (ranks[2 * pair] - ranks[2 * pair + 1]) * noise[pair * size + at]
    }
    const slope = config.weightDecay * theta[at] - ascent / (numEnvs * config.deviation)
    first[at] = 0.9 * first[at] + 0.1 * slope
    second[at] = 0.999 * second[at] + 0.001 * slope * slope
    theta[at] -= (learningRate * correction * first[at]) / (Math.sqrt(second[at]) + 1e-8)
  }
}

/** Plays one episode in each env, which the trainer has reset before the first generation. Returns the number of env steps. */
const playEpisodes = function* (
  { config, numEnvs, returns }: Population,
  act: Program,
  envs: AnyBatchEnv,
  generation: number,
): Steps<number> {
  if (generation > 0) {
    const wait = envs.restart(new Uint8Array(numEnvs).fill(1))
    if (wait !== undefined) yield waitFor(wait)
  }
  const actions = numbersOf(act.results, "actions")
  const running = new Uint8Array(numEnvs).fill(1)
  returns.fill(0)
  let runningCount = numEnvs
  let steps = 0
  while (runningCount > 0) {
    act.feeds.observations.set(envs.observations)
    yield act
    const wait = envs.step(actions)
    if (wait !== undefined) yield waitFor(wait)
    steps++
    const cutShort = config.maxEpisodeSteps > 0 && steps >= config.maxEpisodeSteps
    for (let env = 0; env < numEnvs; env++) {
      // An env whose episode has ended is stepped on until all have ended, but its rewards no longer count.
      if (running[env] === 0) continue
      returns[env] += envs.rewards[env]
      if ((envs.terminated[env] | envs.truncated[env]) === 0 && !cutShort) continue
      running[env] = 0
      runningCount--
    }
  }
  return steps * numEnvs
}

/**
 * Describes the acting program, which applies to each env's observation the weights of that env's member of the
 * population.
 */
const actSpecOf = (config: EsConfig, task: Task, network: EsNetwork, parameters: ParameterLayout): ProgramSpec => {
  const { numEnvs, observationSpace, actionSpace } = task
  const shapes = parameters.names.map((name) => network.parameters[name].shape)
  const population = state("population", [numEnvs, parameters.size])
  const observations = input("observations", [numEnvs, sizeOf(observationSpace)])
  const outputs = forward(population, shapes, asVectors(observationSpace, observations), config.activation)
  const actions = toEnvAction(actionSpace, policyOf(task, observations, outputs).mode())
  return {
    name: "es.act",
    inputs: { observations },
    state: { population: { tensor: population } },
    outputs: { actions },
  }
}

/** Returns the actor for validations and exports. It has the current weights, without a variation. */
const actorOf = (config: EsConfig, task: Task, network: EsNetwork): Actor => {
  const { observationSpace, actionSpace } = task
  const greedy: Actor["greedy"] = ({ weights, observations }) => {
    const policy = policyOf(task, observations, network.apply(weights, asVectors(observationSpace, observations)))
    // Real numbers have no deviation here: the action is the mean.
    return { actions: policy.mode(), outputs: actionSpace._tag === "Box" ? undefined : policy.outputs }
  }
  // `dense` describes policies for export as C++, which knows neither masks, nor one-hot parts, nor several choices.
  const isDense = observationSpace._tag === "Box" && (actionSpace._tag === "Box" || actionSpace._tag === "Discrete")
  const layers = Array.from({ length: config.hidden.length + 1 }, (_, index) => ({
    names: [`actor.${index}`],
    activation: index < config.hidden.length ? config.activation : ("identity" as const),
  }))
  return {
    parameters: network.parameters,
    dense: isDense ? { layers } : undefined,
    noiseSize: 0,
    memorySize: 0,
    keeps: [],
    act: (observing) => ({ actions: greedy(observing).actions, kept: {} }),
    greedy,
  }
}

const setup = Effect.fnUntraced(function* (
  config: EsConfig,
  task: Task,
): Effect.fn.Return<Learner, SetupError, Backend | Scope.Scope> {
  const { numEnvs, seed, observationSpace, actionSpace } = task
  if (numEnvs % 2 !== 0) {
    const problem = `expected an even number, since es tries each variation and its mirror image; found ${numEnvs}`
    return yield* ConfigError.at({ source: "es" }, "num_envs", problem)
  }
  const backend = yield* Backend
  const sizes = [vectorSizeOf(observationSpace), ...config.hidden, outputsFor(actionSpace)]
  const network = yield* build(() => mlp("actor", { sizes, activation: config.activation, outputGain: 0.01 }))
  const parameters = layout(network.parameters)
  const act = yield* backend.compile(yield* build(() => actSpecOf(config, task, network, parameters)))
  const population = populationOf(config, task, parameters.initialise(stream(seed, "weights")))
  const { theta, first, second, updates, returns } = population
  const optimizer = vectorsOf({ first, second, updates })
  const averages = new Averages()
  const learningRateAt = scheduleOf(config.learningRate)
  const actor = actorOf(config, task, network)
  const weights = Effect.sync(() => theta)
  return {
    devices: { [act.name]: act.device },
    capabilities: { plays: "one episode each" },
    rollout: Effect.fnUntraced(function* (envs, { iteration }) {
      vary(population, iteration)
      yield* act.write("population", population.members)
      return yield* drive(() => playEpisodes(population, act, envs, iteration))
    }),
    update: (position) =>
      Effect.sync(() => {
        learn(population, steered(position, learningRateAt(position.step / task.totalSteps)))
        averages.add("losses/fitness", meanOf(returns))
      }),
    metrics: () => averages.take(),
    ...policies(backend, { name: "es", task, actor, layout: parameters }, weights),
    weights: Effect.map(weights, parameters.toNamed),
    state: Effect.sync(() => ({ optimizer: optimizer.state() })),
    start: (named) => Effect.map(weightsIn(parameters, named), (vector) => theta.set(vector)),
    restore: Effect.fnUntraced(function* (named, saved) {
      const checkpoint = savedState(saved)
      theta.set(yield* checkpoint.weights(parameters, named))
      yield* checkpoint.use("optimizer", optimizer.restore)
    }),
  }
})

/**
 * Makes evolution strategies; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, numEnvs: 64, algorithm: Es.make({ deviation: 0.2 }), totalSteps: 500_000 })
 * ```
 */
export const make: Make<EsOptions> = define({ name: "es", config: EsConfig, setup }).make
