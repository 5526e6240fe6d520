import { Effect, Schema, type Scope } from "effect"
import { Backend } from "../../../tensor/backend/Backend.ts"
import { ConfigError } from "../../../base/config/Config.ts"
import { bounded, layers, nonNegative, positive, withDefault } from "../../../base/config/fields.ts"
import { sizeOf } from "../../env/Space.ts"
import type { Distribution } from "../../../tensor/graph/distributions.ts"
import { activations, mlp } from "../../../tensor/graph/layers.ts"
import { add, input, matmul, reshape, slice, state } from "../../../tensor/graph/ops.ts"
import { layout } from "../../../tensor/graph/Parameters.ts"
import { sizeOf as elements, type Tensor } from "../../../tensor/graph/Tensor.ts"
import { policies } from "../../learner/acting.ts"
import { define, type Learner, type Make, type SetupError, steered, type Task } from "../../learner/Algorithm.ts"
import { Averages } from "../../learner/Averages.ts"
import { build } from "../../learner/graphs.ts"
import { drive, waitFor } from "../../learner/drive.ts"
import { learningRateSetting } from "../../learner/parts.ts"
import { type Scheduled, scheduleOf } from "../../learner/scheduled.ts"
import { numbersOf, savedState, vectorsOf, weightsIn } from "../../learner/learnerState.ts"
import { outputsFor, policyOver, toEnvAction } from "../../model/actions.ts"
import type { Actor } from "../../model/Actor.ts"
import { asVectors, maskOf, vectorSizeOf } from "../../model/observations.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { meanOf } from "../../../base/statistics/resampling.ts"

/**
 * Evolution strategies (Salimans et al. 2017, arXiv:1703.03864): every env plays an episode with its own slight
 * variation of the weights, in pairs of opposite variations, and the weights move towards the variations with the
 * larger returns. It computes no gradient, so it is a baseline for algorithms that do. The variations of the weights
 * that play at the same time are the members of a population.
 */

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

/** Computes a network's outputs, where each observation has its own weights: a row of `population`, [members, size]. */
const forward = (
  population: Tensor,
  shapes: ReadonlyArray<ReadonlyArray<number>>,
  observations: Tensor,
  activation: EsConfig["activation"],
): Tensor => {
  const [members, width] = observations.shape
  let value = reshape(observations, [members, 1, width])
  let offset = 0
  /** Returns the next parameter of every member, of this shape. */
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
  const inputs = vectorSizeOf(observationSpace)
  const outputs = outputsFor(actionSpace)
  const network = yield* build(() =>
    mlp("actor", { sizes: [inputs, ...config.hidden, outputs], activation: config.activation, outputGain: 0.01 }),
  )
  const parameters = layout(network.parameters)
  const { size } = parameters
  const shapes = parameters.names.map((name) => network.parameters[name].shape)
  const act = yield* backend.compile(
    yield* build(() => {
      const population = state("population", [numEnvs, size])
      const observations = input("observations", [numEnvs, sizeOf(observationSpace)])
      const seen = asVectors(observationSpace, observations)
      const outputs = forward(population, shapes, seen, config.activation)
      const actions = toEnvAction(actionSpace, policyOf(task, observations, outputs).mode())
      return {
        name: "es.act",
        inputs: { observations },
        state: { population: { tensor: population } },
        outputs: { actions },
      }
    }),
  )
  const actions = numbersOf(act.results, "actions")

  const theta = parameters.initialise(stream(seed, "weights"))
  // The state of Adam: its first and second moments, and the number of updates.
  const first = new Float64Array(size)
  const second = new Float64Array(size)
  const updates = new Float64Array(1)
  const optimizer = vectorsOf({ first, second, updates })
  const noise = new Float32Array((numEnvs / 2) * size)
  const population = new Float32Array(numEnvs * size)
  const returns = new Float64Array(numEnvs)
  const allEnvs = new Uint8Array(numEnvs).fill(1)
  const averages = new Averages()

  /** Gives each member of the population its weights: a pair of members gets θ + σε and θ − σε, with the same ε. */
  const vary = (generation: number): void => {
    stream(seed, "es", generation).fillNormal(noise)
    for (let member = 0; member < numEnvs; member++) {
      const sign = member % 2 === 0 ? config.deviation : -config.deviation
      const from = (member >> 1) * size
      for (let at = 0; at < size; at++) population[member * size + at] = theta[at] + sign * noise[from + at]
    }
  }

  const learningRateAt = scheduleOf(config.learningRate)
  /** Takes a step of Adam (β₁ = 0.9, β₂ = 0.999) by the estimated gradient 1 / (nσ) Σ rank · ε, with weight decay. */
  const learn = (learningRate: number): void => {
    const ranks = centredRanks(returns)
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

  // Other programs can compute dense layers, but know neither masks, nor one-hot parts, nor several choices.
  const isDense = observationSpace._tag === "Box" && (actionSpace._tag === "Box" || actionSpace._tag === "Discrete")
  const greedy: Actor["greedy"] = ({ weights, observations }) => {
    const policy = policyOf(task, observations, network.apply(weights, asVectors(observationSpace, observations)))
    // Real numbers have no deviation here: the action is the mean.
    return { actions: policy.mode(), outputs: actionSpace._tag === "Box" ? undefined : policy.outputs }
  }
  const actor: Actor = {
    parameters: network.parameters,
    dense: isDense
      ? {
          layers: [...config.hidden, outputs].map((_, index) => ({
            names: [`actor.${index}`],
            activation: index < config.hidden.length ? config.activation : "identity",
          })),
        }
      : undefined,
    noiseSize: 0,
    memorySize: 0,
    keeps: [],
    act: (observing) => ({ actions: greedy(observing).actions, kept: {} }),
    greedy,
  }

  return {
    devices: { [act.name]: act.device },
    plays: "one episode each",
    rollout: Effect.fnUntraced(function* (envs, { iteration }) {
      vary(iteration)
      yield* act.write("population", population)
      return yield* drive(function* () {
        if (iteration > 0) {
          const wait = envs.restart(allEnvs)
          if (wait !== undefined) yield waitFor(wait)
        }
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
            // An env whose episode has ended is stepped until all have ended, but its rewards no longer count.
            if (running[env] === 0) continue
            returns[env] += envs.rewards[env]
            if ((envs.terminated[env] | envs.truncated[env]) === 0 && !cutShort) continue
            running[env] = 0
            runningCount--
          }
        }
        return steps * numEnvs
      })
    }),
    update: (position) =>
      Effect.sync(() => {
        learn(steered(position, learningRateAt(position.step / task.totalSteps)))
        averages.add("losses/fitness", meanOf(returns))
      }),
    metrics: () => averages.take(),
    ...policies(
      backend,
      { name: "es", task, actor, layout: parameters },
      Effect.sync(() => theta),
    ),
    weights: Effect.sync(() => parameters.toNamed(theta)),
    state: Effect.sync(() => ({ optimizer: optimizer.state() })),
    start: (weights) => Effect.map(weightsIn(parameters, weights), (vector) => theta.set(vector)),
    restore: Effect.fnUntraced(function* (weights, saved) {
      const checkpoint = savedState(saved)
      theta.set(yield* checkpoint.weights(parameters, weights))
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
