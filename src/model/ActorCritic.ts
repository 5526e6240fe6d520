import { type ActionSpace, display, type RowSpace } from "../env/Space.ts"
import type { Distribution } from "../graph/distributions.ts"
import { orthogonal, zeros } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { fail } from "../graph/ops/core.ts"
import { concat, reshape, split } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { noiseSizeFor, outputsFor, policyOver } from "./actions.ts"
import type { Actor } from "./Actor.ts"
import { memory, type Recall } from "./memory.ts"
import { isSeparate } from "./network/layers.ts"
import { hasImages, maskOf } from "./observations.ts"
import {
  type Declarations,
  denseLayers,
  type NetworkConfig,
  networkFor,
  type Trunk,
  trunk,
  type Weights,
} from "./trunk.ts"
import { type Planning, planner } from "./valueIteration.ts"

/**
 * An actor and a critic, which PPO, A2C and the algorithms that extend them learn. A trunk is the layers that compute
 * features from observations; a head is a linear layer from features to the policy's outputs or to a value.
 *
 * A `network` of the user's is the trunk that both share, or `{ actor, critic }` are two trunks. Without one:
 * for vectors, actor and critic are two networks, which share nothing, not even a memory (an LSTM): at first a critic's
 * errors are much larger than an actor's, and would shape the features of both. For images, also as a part of an
 * observation, they are two heads on one trunk and one memory. Action masks go to the actor's head alone.
 *
 * Weights start orthogonal: with gain 0.01 in the actor's head, so that the first policy is
 * nearly uniform, with gain 1 in the critic's head, in an LSTM and in a planner (a value-iteration network in place of
 * the trunk), and with √2 in all other layers. Biases start at 0.
 *
 * @example
 * ```ts
 * const network = actorCritic({ ...CartPole.env, hidden: [64, 64], activation: "tanh", convolutions: null, lstm: 0 })
 * Object.keys(network.parameters) // actor.0.weight, actor.0.bias, …, critic.2.weight, critic.2.bias
 * ```
 */
export interface ActorCritic<Kept extends string = ActorCriticKept> extends Actor<Kept> {
  /** Computes the policy and the value of observations, which have the shape [rows, size]. */
  readonly evaluate: (weights: Weights, observations: Tensor, recall?: Recall) => Evaluation<Kept>
  /** The number of features that the actor's head reads. */
  readonly featureSize: number
  /** The trunk that actor and critic share; if they share none, the actor's. */
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
  /** The number of units of an LSTM between the trunk and the heads; 0 adds no LSTM. */
  readonly lstm: number
  /** Whether actor and critic are separate networks for image observations too. */
  readonly separate?: boolean
  /** The settings of a value-iteration network that replaces the trunk; null or undefined uses a trunk. */
  readonly planning?: Planning | null
  /** Names of further critics on the same features; their values are kept in a rollout under these names. */
  readonly critics?: ReadonlyArray<Critics>
}

/** Makes the networks of an actor and a critic, described at `ActorCritic`. */
export function actorCritic<Critics extends string = never>(
  options: ActorCriticOptions<Critics>,
): ActorCritic<ActorCriticKept | Critics>
export function actorCritic(options: ActorCriticOptions<string>): ActorCritic<string> {
  const { observationSpace, actionSpace, separate = false } = options
  const outputs = outputsFor(actionSpace)
  const { network = null } = options
  const shares = !separate && (network === null ? hasImages(observationSpace) : !isSeparate(network))
  if (options.planning && network !== null) fail("network", "expected null, because `planning` is the network")
  if (options.planning && !shares) {
    const actual = separate ? "two trunks" : display(observationSpace)
    fail("planning", `a planner is one trunk below both heads, over maps [planes, height, width], found ${actual}`)
  }
  const body = shares ? sharedBody(options) : separateBodies(options)
  const actorHead = linear(body.actorHead, body.featureSize, outputs, orthogonal(0.01))
  const criticHead = linear(body.criticHead, body.criticSize, 1, orthogonal(1))
  const logDeviation: Declarations =
    actionSpace._tag === "Box" ? { "actor.logStd": { shape: [outputs], init: zeros } } : {}
  // Exported dense layers take the best of one choice, or real numbers.
  const isDense = actionSpace._tag === "Discrete" || actionSpace._tag === "Box"
  const critics = (options.critics ?? []).map((name) => ({
    name,
    head: linear(name, body.criticSize, 1, orthogonal(1)),
  }))

  /** Makes the distribution of actions. The deviation of real numbers is a weight for each element. */
  const policyOf = (weights: Weights, observations: Tensor, features: Features): Distribution =>
    policyOver(actionSpace, actorHead.apply(weights, features.actor), {
      allowed: maskOf(observationSpace, observations),
      logDeviation: weights["actor.logStd"],
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
  return {
    // The order of the parameters here is their order in the flat vector of weights.
    parameters: Object.assign(
      { ...body.actor, ...actorHead.parameters, ...body.critic, ...criticHead.parameters, ...logDeviation },
      ...critics.map(({ head }) => head.parameters),
    ),
    dense: options.lstm > 0 || !isDense ? undefined : denseLayers("actor", observationSpace, options),
    noiseSize: noiseSizeFor(actionSpace),
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
      return { actions: policyOf(weights, observations, features).mode(), memory: features.memory }
    },
  }
}

/** Makes the part before the heads of an actor and a critic that share nothing: each has its own trunk and memory. */
const separateBodies = (options: ActorCriticOptions<string>) => {
  const { observationSpace, lstm } = options
  const towers = (["actor", "critic"] as const).map((name) => {
    const tower = trunk(name, observationSpace, options, networkFor(options, name))
    return { trunk: tower, lstm: lstm > 0 ? memory(`${name}.memory`, tower.outputs, lstm) : undefined }
  })
  const [actor, critic] = towers
  const size = actor.lstm?.size ?? 0
  return {
    actorHead: `actor.${actor.trunk.depth}`,
    criticHead: `critic.${critic.trunk.depth}`,
    featureSize: actor.lstm?.outputs ?? actor.trunk.outputs,
    criticSize: critic.lstm?.outputs ?? critic.trunk.outputs,
    memorySize: 2 * size,
    trunk: actor.trunk,
    features: (weights: Weights, observations: Tensor, recall?: Recall): Features => {
      const rows = towers.map((tower) => tower.trunk.apply(weights, observations))
      if (recall === undefined) return { actor: rows[0], critic: rows[1] }
      const states = split(recall.state, [size, size], 1)
      const [first, second] = towers.map(({ lstm }, index) => {
        const own = { state: states[index], fresh: recall.fresh }
        return lstm?.apply(weights, rows[index], own) ?? { features: rows[index], memory: own.state }
      })
      return { actor: first.features, critic: second.features, memory: concat([first.memory, second.memory], 1) }
    },
    // The parameters of the actor's trunk and memory, and of the critic's.
    actor: { ...actor.trunk.parameters, ...actor.lstm?.parameters },
    critic: { ...critic.trunk.parameters, ...critic.lstm?.parameters },
  }
}

/** Makes the part before the heads that an actor and a critic share: one trunk or planner, and one memory. */
const sharedBody = (options: ActorCriticOptions<string>) => {
  const { observationSpace, planning = null } = options
  const shared =
    planning === null
      ? trunk("trunk", observationSpace, options, networkFor(options))
      : planner("planner", observationSpace, planning)
  const lstm = options.lstm > 0 ? memory("memory", shared.outputs, options.lstm) : undefined
  const featureSize = lstm?.outputs ?? shared.outputs
  return {
    actorHead: "actor",
    criticHead: "critic",
    featureSize,
    criticSize: featureSize,
    memorySize: lstm?.size ?? 0,
    trunk: shared,
    features: (weights: Weights, observations: Tensor, recall?: Recall): Features => {
      const rows = shared.apply(weights, observations)
      if (lstm === undefined || recall === undefined) return { actor: rows, critic: rows }
      const { features, memory: after } = lstm.apply(weights, rows, recall)
      return { actor: features, critic: features, memory: after }
    },
    // Shared parameters are listed once, as the actor's.
    actor: { ...shared.parameters, ...lstm?.parameters },
    critic: {},
  }
}
