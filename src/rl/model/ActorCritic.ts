/** Makes the networks of an actor and a critic, for PPO, A2C and the algorithms that extend them. */
import { type ActionSpace, display, type RowSpace } from "../env/Space.ts"
import type { Distribution } from "../../tensor/graph/distributions.ts"
import { asPytorch, constant, orthogonal } from "../../tensor/graph/initialisers.ts"
import { linear } from "../../tensor/graph/layers.ts"
import { fail } from "../../tensor/graph/ops/core.ts"
import { reshape, split, stopGradient } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { noiseSizeFor, outputsFor, policyOver } from "./actions.ts"
import type { Actor } from "./Actor.ts"
import { emptyMemory, memory, type Recall } from "./memory.ts"
import { isSeparate } from "./network/layers.ts"
import { hasImages, joined, maskOf } from "./observations.ts"
import { type StateDependentOptions, stateDependentNoise } from "./stateDependentNoise.ts"
import {
  type Declarations,
  denseLayers,
  hiddenLayers,
  type NetworkConfig,
  networkFor,
  type Trunk,
  trunk,
  type Weights,
} from "./trunk.ts"

/**
 * An actor and a critic, which PPO, A2C and the algorithms that extend them learn. A trunk is the layers that compute
 * features from observations; a head is a linear layer from features to the policy's outputs or to a value.
 *
 * The setting `network` is one trunk that both share, or `{ actor, critic }`, two trunks. Without it, the observations
 * decide. For vectors, actor and critic are two networks that share nothing, not even a memory (an LSTM): at first a
 * critic's errors are much larger than an actor's, and would shape the features of both. For images, or if a part of
 * the observation is an image, they are two heads on one trunk and one memory. Only the actor's head reads action
 * masks.
 *
 * An LSTM reads vectors before the hidden layers, as in sb3-contrib's RecurrentPPO, and images after them, as in UNREAL
 * (Jaderberg et al. 2016). `lstmAfter` and `criticMemory` change this.
 *
 * Weights start orthogonal: with gain 0.01 in the actor's head, so that the first policy is nearly uniform, with gain 1
 * in the critic's head, in an LSTM and in a planner (a value-iteration network in place of the trunk), and with √2 in
 * all other layers. Biases start at 0, except that an LSTM's forget gates start at `forgetBias`.
 *
 * @example
 * ```ts
 * const network = actorCritic({ ...CartPole.env, hidden: [64, 64], activation: "tanh", convolutions: null, lstm: 0 })
 * Object.keys(network.parameters) // actor.0.weight, actor.0.bias, …, critic.2.weight, critic.2.bias
 * ```
 */
export interface ActorCritic<Kept extends string = ActorCriticKept> extends Actor<Kept> {
  /** Computes the policy and the value of observations [rows, size]. Without `recall`, a memory is empty before each row. */
  readonly evaluate: (weights: Weights, observations: Tensor, recall?: Recall) => Evaluation<Kept>
  /** The number of features that the actor's head reads. */
  readonly featureSize: number
  /** The trunk that actor and critic share; if they share none, the trunk of the actor. */
  readonly trunk: Trunk
}

/** The numbers that a rollout stores of each step for the loss: the critic's value and the action's log probability. */
export type ActorCriticKept = "values" | "logProbs"

export interface Evaluation<Kept extends string = ActorCriticKept> extends Features {
  readonly distribution: Distribution
  /** The critic's value of each observation, of shape [rows]. */
  readonly value: Tensor
  /** The values of further critics by name, of shape [rows] each, e.g. of a critic for an exploration bonus. */
  readonly critics: Readonly<Record<Exclude<Kept, ActorCriticKept>, Tensor>>
}

/** The features that the heads read; they are the same for actor and critic if both share a trunk. */
interface Features {
  readonly actor: Tensor
  readonly critic: Tensor
  /** The state of the memory after the last observation; absent without a memory. */
  readonly memory?: Tensor
}

export interface ActorCriticOptions<Critics extends string = never> extends NetworkConfig {
  readonly observationSpace: RowSpace
  readonly actionSpace: ActionSpace
  /** The number of units of the memory (an LSTM); 0 for no memory. */
  readonly lstm: number
  /** The number of hidden layers before the LSTM; null or undefined is 0 for vectors and all for images. */
  readonly lstmAfter?: number | null
  /** The initial bias of the LSTM's forget gates; 0 if left out. */
  readonly forgetBias?: number
  /** Whether the critic has an LSTM of its own; null or undefined is `own` for vectors and `shared` for images. */
  readonly criticMemory?: "own" | "shared" | null
  /** Whether actor and critic are separate networks for image observations too. */
  readonly separate?: boolean
  /** Makes a value-iteration network that replaces the trunk: `plannerOf(planning)`; null or undefined uses a trunk. */
  readonly planner?: ((space: RowSpace) => Trunk) | null
  /**
   * The settings of `planner`. If they are set without `planner`, building the networks fails, so that no trunk is
   * trained by mistake.
   */
  readonly planning?: object | null
  /**
   * The logarithm of the initial standard deviation of real-valued actions; 0 by default, which is a deviation of 1.
   */
  readonly logStdInit?: number
  /** Whether weights start orthogonal and biases at 0, as described above; if not, both are drawn as in PyTorch. */
  readonly orthogonal?: boolean
  /**
   * Explores with noise that depends on the state; null or undefined draws noise for each step. Only for real-valued
   * actions.
   */
  readonly sde?: Required<StateDependentOptions> | null
  /** Names of further critics on the same features; their values are kept in a rollout under these names. */
  readonly critics?: ReadonlyArray<Critics>
}

/** Makes the networks of an actor and a critic, described at `ActorCritic`. */
export function actorCritic<Critics extends string = never>(
  options: ActorCriticOptions<Critics>,
): ActorCritic<ActorCriticKept | Critics>
export function actorCritic(options: ActorCriticOptions<string>): ActorCritic<string> {
  const { observationSpace, actionSpace, separate = false, logStdInit = 0, sde = null } = options
  const outputs = outputsFor(actionSpace)
  const { network = null } = options
  const shares = !separate && (network === null ? hasImages(observationSpace) : !isSeparate(network))
  checkPlanner(options, shares)
  const body = bodyOf(options, sharesOf(options, shares))
  const actorHead = linear(body.actorHead, body.featureSize, outputs, orthogonal(0.01))
  const criticHead = linear(body.criticHead, body.criticSize, 1, orthogonal(1))
  if (sde !== null && actionSpace._tag !== "Box")
    fail("sde", `expected real numbers as actions, found ${display(actionSpace)}`)
  const stateDependent =
    sde === null ? undefined : stateDependentNoise("actor.logStd", body.featureSize, outputs, { ...sde, logStdInit })
  const logDeviation: Declarations =
    stateDependent?.parameters ??
    (actionSpace._tag === "Box" ? { "actor.logStd": { shape: [outputs], init: constant(logStdInit) } } : {})
  // Exported dense layers support only a single choice, or real numbers.
  const isDense = actionSpace._tag === "Discrete" || actionSpace._tag === "Box"
  const critics = (options.critics ?? []).map((name) => ({
    name,
    head: linear(name, body.criticSize, 1, orthogonal(1)),
  }))

  /** Makes the distribution of actions. For real numbers, each element has a learned log deviation. */
  const policyOf = (weights: Weights, observations: Tensor, features: Features): Distribution =>
    policyOver(actionSpace, actorHead.apply(weights, features.actor), {
      allowed: maskOf(observationSpace, observations),
      logDeviation: weights["actor.logStd"],
      // Only the means of the actions train the features; the noise does not.
      stateDependent: stateDependent && {
        features: stopGradient(features.actor),
        deviation: stateDependent.deviation(weights),
      },
    })
  const flat = (column: Tensor): Tensor => reshape(column, [column.shape[0]])
  const evaluate = (weights: Weights, observations: Tensor, recall?: Recall): Evaluation<string> => {
    const features = body.features(weights, observations, recall)
    return {
      ...features,
      distribution: policyOf(weights, observations, features),
      value: flat(criticHead.apply(weights, features.critic)),
      critics: Object.fromEntries(critics.map(({ name, head }) => [name, flat(head.apply(weights, features.critic))])),
    }
  }
  // The order of the parameters here is their order in the flat vector of weights.
  const parameters: Declarations = Object.assign(
    { ...body.actor, ...actorHead.parameters, ...body.critic, ...criticHead.parameters, ...logDeviation },
    ...critics.map(({ head }) => head.parameters),
  )
  return {
    parameters: options.orthogonal === false ? asPytorch(parameters) : parameters,
    dense: options.lstm > 0 || !isDense ? undefined : denseLayers("actor", observationSpace, options),
    noiseSize: stateDependent === undefined ? noiseSizeFor(actionSpace) : 2 * body.featureSize * outputs,
    memorySize: body.memorySize,
    featureSize: body.featureSize,
    trunk: body.trunk,
    keeps: ["logProbs", ...critics.map(({ name }) => name), "values"],
    evaluate,
    act: ({ weights, observations, noise, recall }) => {
      const { distribution, value, critics, memory } = evaluate(weights, observations, recall)
      const actions = distribution.sample(noise)
      const kept = { logProbs: distribution.logProbability(actions), ...critics, values: value }
      return { actions, kept, memory }
    },
    greedy: ({ weights, observations, recall }) => {
      const features = body.features(weights, observations, recall)
      const distribution = policyOf(weights, observations, features)
      const value = () => flat(criticHead.apply(weights, features.critic))
      const outputs = () => ({ ...distribution.outputs(), value: value() })
      return { actions: distribution.mode(), memory: features.memory, outputs }
    },
  }
}

/**
 * Fails if there is a planner that does not fit the other options, or if there are settings of a planner without one.
 */
const checkPlanner = (options: ActorCriticOptions<string>, isShared: boolean): void => {
  const { observationSpace, planner = null, planning = null, network = null, separate = false } = options
  if (planner === null) {
    if (planning !== null) {
      fail("planning", "expected a `planner` with these settings, such as plannerOf(planning), found none")
    }
    return
  }
  if (network !== null) fail("network", "expected null with `planning`, whose planner is the network")
  if (!isShared) {
    const actual = separate ? "two trunks" : display(observationSpace)
    fail("planning", `a planner is one trunk below both heads, over maps [planes, height, width], found ${actual}`)
  }
}

/** The parts that actor and critic share; all other parts exist twice. */
interface Shares {
  readonly trunk: boolean
  readonly memory: boolean
  /** The hidden layers after the memory. */
  readonly top: boolean
}

/**
 * Decides which parts actor and critic share, from the default for the observations and from the setting
 * `criticMemory`.
 */
const sharesOf = ({ lstm, criticMemory }: ActorCriticOptions<string>, byDefault: boolean): Shares => {
  if (lstm === 0) return { trunk: byDefault, memory: byDefault, top: byDefault }
  const memory = criticMemory == null ? byDefault : criticMemory === "shared"
  return { trunk: byDefault || memory, memory, top: byDefault && memory }
}

const towers = ["actor", "critic"] as const

/** Makes the part before the heads: trunks (or a planner), memories, and the hidden layers after the memories. */
const bodyOf = (options: ActorCriticOptions<string>, shares: Shares) => {
  const { observationSpace, lstm, forgetBias = 0, planner = null } = options
  const { before, after } = hiddenAround(options)
  /** Makes one part for both, or one part for each. */
  const parts = <Part>(isShared: boolean, make: (name: string, index: number, tower?: "actor" | "critic") => Part) =>
    isShared ? [make("trunk", 0)] : towers.map((tower, index) => make(tower, index, tower))
  const trunks = parts(shares.trunk, (name, _, tower) =>
    planner === null
      ? trunk(name, observationSpace, { ...options, hidden: before }, networkFor(options, tower))
      : planner(observationSpace),
  )
  const memories =
    lstm === 0
      ? []
      : parts(shares.memory, (name, index, tower) =>
          memory(tower === undefined ? "memory" : `${name}.memory`, own(trunks, index).outputs, lstm, forgetBias),
        )
  const tops = parts(shares.top, (name, index) => {
    const inputs = lstm === 0 ? own(trunks, index).outputs : lstm
    return hiddenLayers(name, inputs, observationSpace, { ...options, hidden: after }, own(trunks, index).depth)
  })
  const headOf = (index: number): string => (shares.top ? towers[index] : `${towers[index]}.${own(tops, index).depth}`)
  const memorySize = memories.reduce((sum, { size }) => sum + size, 0)
  const remembered = (weights: Weights, rows: ReadonlyArray<Tensor>, recall: Recall) => {
    const states = split(
      recall.state,
      memories.map(({ size }) => size),
      1,
    )
    return memories.map((each, index) =>
      each.apply(weights, own(rows, index), { state: states[index], fresh: recall.fresh }),
    )
  }
  return {
    actorHead: headOf(0),
    criticHead: headOf(1),
    featureSize: own(tops, 0).outputs,
    criticSize: own(tops, 1).outputs,
    memorySize,
    trunk: trunks[0],
    features: (weights: Weights, observations: Tensor, given?: Recall): Features => {
      const rows = trunks.map((each) => each.apply(weights, observations))
      const after =
        memories.length === 0
          ? undefined
          : remembered(weights, rows, given ?? emptyMemory(observations.shape[0], memorySize))
      const inputs = after === undefined ? rows : after.map(({ features }) => features)
      const outputs = tops.map((top, index) => top.apply(weights, own(inputs, index)))
      return {
        actor: own(outputs, 0),
        critic: own(outputs, 1),
        ...(after === undefined ? {} : { memory: joined(after.map(({ memory }) => memory)) }),
      }
    },
    // Shared parameters are listed once, as the actor's.
    actor: parametersOf([trunks[0], ...memories.slice(0, 1), tops[0]]),
    critic: parametersOf([...trunks.slice(1), ...memories.slice(1), ...tops.slice(1)]),
  }
}

/** Returns the part of the actor (index 0) or the critic (index 1); both get the same part if there is only one. */
const own = <Part>(parts: ReadonlyArray<Part>, index: number): Part => parts[Math.min(index, parts.length - 1)]

const parametersOf = (parts: ReadonlyArray<{ readonly parameters: Declarations }>): Declarations =>
  Object.assign({}, ...parts.map(({ parameters }) => parameters))

/** Divides the hidden layers into those before the memory and those after it. A network of another kind replaces them all. */
const hiddenAround = (options: ActorCriticOptions<string>) => {
  const { hidden, lstm, lstmAfter, network = null, planner = null } = options
  if (lstm === 0 || network !== null || planner !== null) return { before: hidden, after: [] }
  const count = lstmAfter ?? (hasImages(options.observationSpace) ? hidden.length : 0)
  return { before: hidden.slice(0, count), after: hidden.slice(count) }
}
