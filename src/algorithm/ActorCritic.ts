import type { Box, Space } from "../env/Space.ts"
import { sizeOf } from "../env/Space.ts"
import { categorical, diagonalGaussian, type Distribution } from "../graph/distributions.ts"
import { zeros } from "../graph/initialisers.ts"
import { mlp } from "../graph/layers.ts"
import { constant, maximum, minimum, reshape } from "../graph/ops.ts"
import { type Layout, layout } from "../graph/Parameters.ts"
import type { Tensor } from "../graph/Tensor.ts"

/**
 * An actor and a critic, two perceptrons that share nothing, over one flat vector of parameters.
 *
 * The last layer of the actor starts near zero (orthogonal, gain 0.01), so that the first policy is nearly uniform; the
 * critic's with gain 1; all others with √2.
 */
export interface ActorCritic {
  readonly parameters: Layout
  /** Uniform numbers that one sampled action takes. */
  readonly noiseSize: number
  readonly evaluate: (
    theta: Tensor,
    observations: Tensor,
  ) => { readonly distribution: Distribution; readonly value: Tensor }
}

export interface ActorCriticOptions {
  readonly observationSpace: Box
  readonly actionSpace: Space
  readonly hidden: ReadonlyArray<number>
  readonly activation: "tanh" | "relu"
}

export const actorCritic = ({ observationSpace, actionSpace, hidden, activation }: ActorCriticOptions): ActorCritic => {
  const inputs = sizeOf(observationSpace)
  const outputs = actionSpace._tag === "Discrete" ? actionSpace.n : sizeOf(actionSpace)
  const actor = mlp("actor", { sizes: [inputs, ...hidden, outputs], activation, outputGain: 0.01 })
  const critic = mlp("critic", { sizes: [inputs, ...hidden, 1], activation, outputGain: 1 })
  const parameters = layout({
    ...actor.parameters,
    ...critic.parameters,
    ...(actionSpace._tag === "Box" ? { "actor.logStd": { shape: [outputs], init: zeros } } : {}),
  })
  return {
    parameters,
    noiseSize: actionSpace._tag === "Discrete" ? 1 : 2 * outputs,
    evaluate: (theta, observations) => {
      const weights = parameters.tensorsOf(theta)
      const features = actor.apply(weights, observations)
      const distribution =
        actionSpace._tag === "Discrete" ? categorical(features) : diagonalGaussian(features, weights["actor.logStd"])
      const [batch] = observations.shape
      return { distribution, value: reshape(critic.apply(weights, observations), [batch]) }
    },
  }
}

/** Actions as the env takes them: a continuous one is clipped to the space's bounds. */
export const toEnvAction = (space: Space, action: Tensor): Tensor =>
  space._tag === "Discrete"
    ? action
    : minimum(maximum(action, constant(space.low.map(atLeast))), constant(space.high.map((high) => -atLeast(-high))))

const bits = new DataView(new ArrayBuffer(4))

/** The least float32 that is not below a number: 0.1 itself is none, and the nearest may lie out of bounds. */
const atLeast = (bound: number): number => {
  const nearest = Math.fround(bound)
  if (!(nearest < bound)) return nearest
  bits.setFloat32(0, nearest)
  bits.setInt32(0, bits.getInt32(0) + (nearest < 0 ? -1 : 1))
  return bits.getFloat32(0)
}
