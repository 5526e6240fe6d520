/**
 * Builds the parts that the updates of SAC and its relatives share: the steps of critics, actor and temperature, and
 * the metrics.
 */
import { mean, neg } from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import type { Weights } from "../../model/trunk.ts"
import type { Loss } from "../graphs.ts"
import type { OptimiserOption } from "../parts.ts"
import type { Learning, Update } from "./networks.ts"
import { gradientStep, polyak } from "./steps.ts"
import { temperature, type TemperatureConfig } from "./temperature.ts"

/** The settings that `softUpdate` reads. */
interface SoftConfig extends Required<OptimiserOption>, TemperatureConfig {
  readonly maxGradNorm: number
  /** The share by which the target critics move towards the critics. */
  readonly tau: number
}

/** The losses of critics and actor at a temperature. */
export interface SoftLosses {
  readonly critic: (alpha: Tensor | number) => Loss
  /** The actor's loss, with the weights that the critics have after their own step. */
  readonly actor: (
    alpha: Tensor | number,
    criticWeights: Weights,
  ) => Loss & {
    /** The log π of each row, or minus the entropy of the policy there; its mean is minus the policy's entropy. */
    readonly logProbability: Tensor
  }
  /** The entropy at which a learned temperature keeps the policy. */
  readonly targetEntropy: number
  /** The learning rate of the critics, if it differs from the actor's. */
  readonly criticLearningRate?: Tensor
}

/**
 * Describes one update of soft actor-critic (Haarnoja et al. 2018, arXiv:1812.05905, Algorithm 1): a step of the
 * critics, a step of the actor, which uses the new critics, a step of the temperature unless it is fixed, and a step of
 * the target critics.
 *
 * @example
 * ```ts
 * const learned = { optimiser: null, maxGradNorm: 0, tau: 0.005, alpha: null, alphaStart: 1 }
 * softUpdate(softLearning, learned, softLosses).states // the next weights, moments and temperature
 * ```
 */
export const softUpdate = (
  { networks, targets, learningRates }: Learning<"critic", "critic", "learningRate">,
  config: SoftConfig,
  losses: SoftLosses,
): Update => {
  const { maxGradNorm, optimiser, tau } = config
  const { learningRate } = learningRates
  const { alpha, ...learnedAlpha } = temperature(config, learningRate)

  const critic = losses.critic(alpha)
  const criticStep = gradientStep(networks.critic, critic.loss, {
    learningRate: losses.criticLearningRate ?? learningRate,
    maxGradNorm,
    optimiser,
  })

  const actor = losses.actor(alpha, networks.critic.layout.tensorsOf(criticStep.next))
  const actorStep = gradientStep(networks.actor, actor.loss, { learningRate, maxGradNorm, optimiser })

  const { logProbability } = actor
  return {
    states: {
      ...actorStep.states,
      ...criticStep.states,
      ...polyak(targets.critic, criticStep.next, tau),
      ...learnedAlpha.step(logProbability, losses.targetEntropy),
    },
    metrics: {
      ...critic.metrics,
      ...actor.metrics,
      "losses/entropy": neg(mean(logProbability)),
      ...learnedAlpha.metrics,
    },
  }
}
