import { linear } from "../../graph/layers.ts"
import { reshape } from "../../graph/ops.ts"
import { orthogonal } from "../../graph/initialisers.ts"
import type { Distribution } from "../../graph/distributions.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import { type ActorCritic, actorCritic, type ActorCriticOptions, type Features } from "../../model/ActorCritic.ts"
import type { Declarations, Weights } from "../../model/trunk.ts"
import type { Minibatch, Model } from "./programs.ts"

/** An actor and a critic as a model to act by, and as what a loss looks at. */
export interface ActorCriticModel extends Model {
  readonly network: ActorCritic
  /** What the current weights say of a minibatch. */
  readonly evaluate: (batch: Minibatch) => Evaluated
}

export interface Evaluated {
  readonly distribution: Distribution
  readonly value: Tensor
  readonly features: Features
  /** What further heads say, one number a row. */
  readonly heads: Readonly<Record<string, Tensor>>
}

export interface ActorCriticModelOptions extends ActorCriticOptions {
  /** More critics on the same features, by name: `bonusValues`. */
  readonly critics?: ReadonlyArray<string>
}

export const actorCriticModel = (options: ActorCriticModelOptions): ActorCriticModel => {
  const network = actorCritic(options)
  const critics = (options.critics ?? []).map((name) => ({
    name,
    head: linear(name, network.featureSize, 1, orthogonal(1)),
  }))
  const headsOf = (weights: Weights, { critic }: Features): Record<string, Tensor> =>
    Object.fromEntries(critics.map(({ name, head }) => [name, reshape(head.apply(weights, critic), [critic.shape[0]])]))
  const parameters: Declarations = Object.assign({}, network.parameters, ...critics.map(({ head }) => head.parameters))
  return {
    network,
    parameters,
    ...(network.dense === undefined ? {} : { dense: network.dense }),
    noiseSize: network.noiseSize,
    memorySize: network.memorySize,
    also: ["logProbs", ...critics.map(({ name }) => name)],
    act: ({ weights, observations, noise, recall }) => {
      const features = network.features(weights, observations, recall)
      const { distribution, value } = network.heads(weights, features)
      const actions = distribution.sample(noise)
      return {
        actions,
        values: value,
        also: { logProbs: distribution.logProbability(actions), ...headsOf(weights, features) },
        ...(features.memory === undefined ? {} : { memory: features.memory }),
      }
    },
    greedy: ({ weights, observations, recall }) => {
      const features = network.features(weights, observations, recall)
      const { distribution } = network.heads(weights, features)
      return {
        actions: distribution.mode(),
        ...(features.memory === undefined ? {} : { memory: features.memory }),
      }
    },
    evaluate: ({ weights, column, recall }) => {
      const features = network.features(weights, column("observations"), recall)
      return { ...network.heads(weights, features), features, heads: headsOf(weights, features) }
    },
  }
}
