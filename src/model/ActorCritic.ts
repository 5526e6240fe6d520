import type { Box, Space } from "../env/Space.ts"
import { categorical, diagonalGaussian, type Distribution } from "../graph/distributions.ts"
import { orthogonal, zeros } from "../graph/initialisers.ts"
import { linear } from "../graph/layers.ts"
import { fail } from "../graph/ops/core.ts"
import { concat, reshape, split } from "../graph/ops.ts"
import type { Tensor } from "../graph/Tensor.ts"
import { outputsFor } from "./actions.ts"
import { memory, type Recall } from "./memory.ts"
import { type Planning, planner } from "./valueIteration.ts"
import type { DensePolicy } from "./DensePolicy.ts"
import {
  type Declarations,
  denseLayers,
  isImage,
  type NetworkConfig,
  type Trunk,
  trunk,
  type Weights,
} from "./trunk.ts"

/**
 * An actor and a critic.
 *
 * Over vectors they share nothing, not even a memory: a critic's errors are much larger than an actor's at first, and
 * would shape what both see. Over images they are two heads on one trunk, and on one memory. The
 * last layer of the actor starts near zero (orthogonal, gain 0.01), so that the first policy is nearly uniform; the critic's with gain 1; all others with √2.
 */
export interface ActorCritic {
  readonly parameters: Declarations
  /** Uniform numbers that one sampled action takes. */
  readonly noiseSize: number
  /** Numbers that an env's memory holds; 0 without memory. */
  readonly memorySize: number
  /** What the heads see: of the actor and of the critic, the same where they share a trunk. */
  readonly featureSize: number
  readonly features: (weights: Weights, observations: Tensor, recall?: Recall) => Features
  /** What the actor sees of single observations, before it remembers anything. */
  readonly glance: (weights: Weights, observations: Tensor) => Tensor
  readonly glanceSize: number
  readonly heads: (weights: Weights, features: Features) => Heads
  /** The actor, where it is nothing but dense layers. */
  readonly dense: DensePolicy | undefined
}

export interface Features {
  readonly actor: Tensor
  readonly critic: Tensor
  /** What is remembered after the last of the observations. */
  readonly memory?: Tensor
}

export interface Heads {
  readonly distribution: Distribution
  readonly value: Tensor
}

export interface ActorCriticOptions extends NetworkConfig {
  readonly observationSpace: Box
  readonly actionSpace: Space
  readonly lstm: number
  /** Two networks, over images too. */
  readonly separate?: boolean
  /** A planner in place of the trunk. */
  readonly planning?: Planning | null
}

export const actorCritic = (options: ActorCriticOptions): ActorCritic => {
  const { observationSpace, actionSpace, separate = false } = options
  const outputs = outputsFor(actionSpace)
  const shares = isImage(observationSpace) && !separate
  if (options.planning && !shares) {
    fail(
      "planning",
      `a planner is one trunk below both heads, over maps [planes, height, width], found ${separate ? "two trunks" : `[${observationSpace.shape.join(", ")}]`}`,
    )
  }
  const below = shares ? sharedTrunk(options) : separateTrunks(options)
  const actorHead = linear(below.actorHead, below.featureSize, outputs, orthogonal(0.01))
  const criticHead = linear(below.criticHead, below.featureSize, 1, orthogonal(1))
  const deviations: Declarations =
    actionSpace._tag === "Box" ? { "actor.logStd": { shape: [outputs], init: zeros } } : {}
  return {
    parameters: below.around(actorHead.parameters, criticHead.parameters, deviations),
    noiseSize: actionSpace._tag === "Discrete" ? 1 : 2 * outputs,
    memorySize: below.memorySize,
    featureSize: below.featureSize,
    features: below.features,
    glance: below.seeing.apply,
    glanceSize: below.seeing.outputs,
    dense: options.lstm > 0 ? undefined : denseLayers("actor", observationSpace, options),
    heads: (weights, { actor, critic }) => {
      const preferences = actorHead.apply(weights, actor)
      const distribution =
        actionSpace._tag === "Discrete"
          ? categorical(preferences)
          : diagonalGaussian(preferences, weights["actor.logStd"])
      const [rows] = critic.shape
      return { distribution, value: reshape(criticHead.apply(weights, critic), [rows]) }
    },
  }
}

interface Below {
  readonly actorHead: string
  readonly criticHead: string
  readonly featureSize: number
  readonly memorySize: number
  readonly seeing: Trunk
  readonly features: ActorCritic["features"]
  /** All parameters, in the order in which they are kept. */
  readonly around: (actor: Declarations, critic: Declarations, deviations: Declarations) => Declarations
}

const separateTrunks = (options: ActorCriticOptions): Below => {
  const { observationSpace, lstm } = options
  const towers = (["actor", "critic"] as const).map((name) => {
    const seeing = trunk(name, observationSpace, options)
    return { seeing, remembering: lstm > 0 ? memory(`${name}.memory`, seeing.outputs, lstm) : undefined }
  })
  const [actor, critic] = towers
  const memorySize = actor.remembering?.size ?? 0
  return {
    actorHead: `actor.${actor.seeing.depth}`,
    criticHead: `critic.${critic.seeing.depth}`,
    featureSize: actor.remembering?.outputs ?? actor.seeing.outputs,
    memorySize: 2 * memorySize,
    seeing: actor.seeing,
    features: (weights, observations, recall) => {
      const seen = towers.map(({ seeing }) => seeing.apply(weights, observations))
      if (recall === undefined) return { actor: seen[0], critic: seen[1] }
      const halves = split(recall.state, [memorySize, memorySize], 1)
      const [first, second] = towers.map(({ remembering }, index) => {
        const rows = seen[index]
        const own = { state: halves[index], fresh: recall.fresh }
        return remembering?.apply(weights, rows, own) ?? { features: rows, memory: own.state }
      })
      return { actor: first.features, critic: second.features, memory: concat([first.memory, second.memory], 1) }
    },
    around: (actorHead, criticHead, deviations) => ({
      ...actor.seeing.parameters,
      ...actor.remembering?.parameters,
      ...actorHead,
      ...critic.seeing.parameters,
      ...critic.remembering?.parameters,
      ...criticHead,
      ...deviations,
    }),
  }
}

const sharedTrunk = (options: ActorCriticOptions): Below => {
  const { observationSpace, planning = null } = options
  const shared =
    planning === null ? trunk("trunk", observationSpace, options) : planner("planner", observationSpace, planning)
  const remembers = options.lstm > 0 ? memory("memory", shared.outputs, options.lstm) : undefined
  return {
    actorHead: "actor",
    criticHead: "critic",
    featureSize: remembers?.outputs ?? shared.outputs,
    memorySize: remembers?.size ?? 0,
    seeing: shared,
    features: (weights, observations, recall) => {
      const seen = shared.apply(weights, observations)
      if (remembers === undefined || recall === undefined) return { actor: seen, critic: seen }
      const { features, memory: after } = remembers.apply(weights, seen, recall)
      return { actor: features, critic: features, memory: after }
    },
    around: (actorHead, criticHead, deviations) => ({
      ...shared.parameters,
      ...remembers?.parameters,
      ...actorHead,
      ...criticHead,
      ...deviations,
    }),
  }
}
