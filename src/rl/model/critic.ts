/** Makes critics: networks that compute the value of a continuous action. `qNetwork.ts` has those for discrete actions. */
import { type Box, box, type RowSpace, sizeOf, tuple, unmasked } from "../env/Space.ts"
import { orthogonal } from "../../tensor/graph/initialisers.ts"
import { linear } from "../../tensor/graph/layers.ts"
import { concat, reshape } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import { withoutMask } from "./observations.ts"
import { type Declarations, type NetworkConfig, networkFor, trunk, type Weights } from "./trunk.ts"

/**
 * A network that computes the value of one continuous action: from observations and actions to values of shape [rows], or to
 * several numbers for each action, such as quantiles, of shape [rows, outputs].
 */
export interface Critic {
  readonly parameters: Declarations
  readonly apply: (weights: Weights, observations: Tensor, actions: Tensor) => Tensor
}

/**
 * Makes a critic: observation and action are joined and pass through a trunk and one linear layer. `outputs` is the
 * number of numbers for each action.
 */
export const critic = (
  name: string,
  observationSpace: RowSpace,
  actionSpace: Box,
  config: NetworkConfig,
  outputs?: number,
): Critic => {
  const seen = unmasked(observationSpace)
  const joined =
    seen._tag === "Box"
      ? box(-Infinity, Infinity, [sizeOf(seen) + sizeOf(actionSpace)])
      : tuple(seen, box(-Infinity, Infinity, [sizeOf(actionSpace)]))
  const body = trunk(name, joined, config, networkFor(config, "critic"))
  const head = linear(`${name}.${body.depth}`, body.outputs, outputs ?? 1, orthogonal(1))
  return {
    parameters: { ...body.parameters, ...head.parameters },
    apply: (weights, observations, actions) => {
      const [rows] = observations.shape
      return reshape(
        head.apply(weights, body.apply(weights, concat([withoutMask(observationSpace, observations), actions], 1))),
        outputs === undefined ? [rows] : [rows, outputs],
      )
    },
  }
}

/** Critics with separate weights. TD3 and SAC use the smaller value of two (Fujimoto et al. 2018, arXiv:1802.09477). */
export interface Critics {
  readonly parameters: Declarations
  /** Returns the outputs of each critic. */
  readonly apply: (weights: Weights, observations: Tensor, actions: Tensor) => ReadonlyArray<Tensor>
}

/** Makes `count` critics, whose parameters begin with `critic1`, `critic2` and so on. See `critic` for `outputs`. */
export const critics = (
  count: number,
  observationSpace: RowSpace,
  actionSpace: Box,
  config: NetworkConfig,
  outputs?: number,
): Critics => {
  const all = Array.from({ length: count }, (_, index) =>
    critic(`critic${index + 1}`, observationSpace, actionSpace, config, outputs),
  )
  return {
    parameters: Object.fromEntries(all.flatMap(({ parameters }) => Object.entries(parameters))),
    apply: (weights, observations, actions) => all.map((one) => one.apply(weights, observations, actions)),
  }
}
