/**
 * Trust region policy optimisation (Schulman et al. 2015, arXiv:1502.05477): after each rollout the policy takes one
 * step along its natural gradient. The step is as long as a limit on the KL divergence between the old and the new
 * policy allows; a line search makes sure that the limit holds and that the surrogate objective grows. So there is no
 * step size to tune. The critic learns by gradient steps on minibatches.
 */
import { Effect } from "effect"
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Optimisers from "../../../tensor/graph/optimisers.ts"
import * as TrustRegion from "../../../tensor/graph/trustRegion.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/onPolicy.ts"
import * as Losses from "../../losses/policyGradient.ts"
import * as Model from "../../model/ActorCritic.ts"
import type { Networks } from "../../model/network/layers.ts"

const { mean, mul, stopGradient } = Graph

// --- Config: `TrpoOptions` are the settings in code; `TrpoConfig` checks them and fills in the defaults ---

export interface TrpoOptions extends Learner.LearningOptions, Learner.DeviationOptions {
  /**
   * The network in place of `hidden`, `activation` and `convolutions`: layers of `Network`. Actor and critic each have one of
   * their own; `{ actor, critic }` gives them different ones. null leaves the choice to the algorithm. @default null
   */
  readonly network?: Networks | null
  /** The learning rate of the critic. @default 0.001 */
  readonly learningRate?: Learner.Scheduled
  /** The number of env steps that each env takes between two updates. @default 1024 */
  readonly nsteps?: number
  /** The λ of the returns: 0 gives one-step targets, 1 gives full returns. @default 0.95 */
  readonly lambda?: number
  /** The KL limit: the largest mean KL divergence between the policies before and after an update. @default 0.01 */
  readonly maxKl?: number
  /** The largest number of iterations of the conjugate gradient, which computes the natural gradient. @default 10 */
  readonly cgIterations?: number
  /** The number that is added to the diagonal of the Fisher matrix. @default 0.1 */
  readonly cgDamping?: number
  /** The number of steps that the line search tries. @default 10 */
  readonly lineSearchSteps?: number
  /** The length of each step that the line search tries, as a share of the one before. @default 0.8 */
  readonly lineSearchShrink?: number
  /** The number of passes over each rollout in which the critic learns. @default 10 */
  readonly valueEpochs?: number
  /** The number of minibatches that a rollout is shuffled into, in each pass of the critic. @default 16 */
  readonly valueMinibatches?: number
  /** Normalises the advantages of each rollout to mean 0 and standard deviation 1. @default true */
  readonly normalizeAdvantages?: boolean
}

export const TrpoConfig = Schema.Struct({
  ...Learner.learningFields,
  ...Learner.networkField,
  ...Learner.deviationFields,
  learningRate: Fields.withDefault(Learner.learningRateSetting, 1e-3),
  nsteps: Fields.withDefault(Fields.bounded("rolloutSteps"), 1024),
  lambda: Fields.withDefault(Fields.fraction, 0.95),
  maxKl: Fields.withDefault(Fields.positive, 0.01),
  cgIterations: Fields.withDefault(Fields.bounded("rounds"), 10),
  cgDamping: Fields.withDefault(Fields.nonNegative, 0.1),
  lineSearchSteps: Fields.withDefault(Fields.bounded("rounds"), 10),
  lineSearchShrink: Fields.withDefault(Fields.fraction, 0.8),
  valueEpochs: Fields.withDefault(Fields.bounded("rounds"), 10),
  valueMinibatches: Fields.withDefault(Fields.bounded("minibatches"), 16),
  normalizeAdvantages: Fields.withDefault(Schema.Boolean, true),
})
export type TrpoConfig = typeof TrpoConfig.Type

// --- Learner, which `make` below sets up for a task: networks, rollout, returns, update ---

type TrpoMinibatch = Learner.Minibatch<Learner.ColumnsOf<Model.ActorCriticKept>>

const setup = Effect.fnUntraced(function* (settings: TrpoConfig, task: Algorithm.Task) {
  const config = Learner.resolved(settings)
  yield* Learner.checkSde("trpo", config, task)
  // Actor and critic share nothing, because the critic's steps would change the policy without a limit.
  const network = yield* Learner.build(() => Model.actorCritic({ ...task, ...config, lstm: 0, separate: true }))
  const noise = Learner.noiseSharing({ ...config, noiseRepeat: 1 })
  const rollout = Learner.experience({
    name: "trpo",
    task,
    actor: network,
    steps: config.nsteps,
    ...noise,
    returns: config,
  })

  /**
   * Builds the policy's step on the surrogate objective E[r A], with the probability ratio r = π(a | s) / π_old(a | s) and
   * the advantage A, within the limit of E[KL(π_old ‖ π)].
   */
  const policyStep = ({ batch }: TrpoMinibatch, net: Learner.Net) => {
    const advantage_t = config.normalizeAdvantages ? Losses.standardised(batch.advantages) : batch.advantages
    const old = network.evaluate(net.weights, batch.observations).distribution
    const oldParameters = old.parameters.map((parameter) => stopGradient(parameter))
    const surrogate = (theta: Graph.Tensor): TrustRegion.Surrogate => {
      const { distribution } = network.evaluate(net.layout.tensorsOf(theta), batch.observations)
      const { ratio_t } = Losses.importanceRatio({
        logProbability_t: distribution.logProbability(batch.actions),
        logProbabilityOld_t: batch.logProbs,
      })
      return { objective: mean(mul(ratio_t, advantage_t)), divergence: mean(distribution.klFrom(oldParameters)) }
    }
    const { next, divergence, fraction } = TrustRegion.trustRegionStep(net.theta, surrogate, {
      maxKl: config.maxKl,
      iterations: config.cgIterations,
      damping: config.cgDamping,
      tries: config.lineSearchSteps,
      shrink: config.lineSearchShrink,
    })
    const metrics = {
      "losses/kl": divergence,
      "losses/line_search": fraction,
      "losses/entropy": mean(old.entropy()),
    }
    return { next, metrics }
  }

  /** Computes the loss of the critic: E[(V − target)²]. */
  const criticLoss = ({ batch, weights }: TrpoMinibatch): Learner.Loss => {
    const { value } = network.evaluate(weights, batch.observations)
    const loss = Losses.valueLoss({ v_t: value, target_t: batch.targets })
    return { loss, metrics: { "losses/value_loss": loss } }
  }
  return Learner.rolloutLearner(rollout, {
    learningRate: Learner.learningRateOf(config),
    phases: [
      { name: "policy", epochs: 1, minibatches: 1, step: policyStep },
      {
        name: "value",
        epochs: config.valueEpochs,
        minibatches: config.valueMinibatches,
        minibatchesKey: "value_minibatches",
        maxGradNorm: config.maxGradNorm,
        loss: criticLoss,
        learns: (name) => name.startsWith("critic."),
        optimiser: Learner.chosenOptimiser(config, Optimisers.adam),
      },
    ],
  })
})

/**
 * Makes TRPO; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Trpo.make({ maxKl: 0.02 }), totalSteps: 100_000 })
 * ```
 */
export const make: Algorithm.Make<TrpoOptions> = Algorithm.define({ name: "trpo", config: TrpoConfig, setup }).make
