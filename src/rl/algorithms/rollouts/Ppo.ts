/**
 * Proximal Policy Optimisation (Schulman et al. 2017, arXiv:1707.06347), with the details that make it work in practice.
 * Each detail of "The 37 Implementation Details of PPO" (Huang et al. 2022) that applies is in one of these places:
 *
 * - Below, with formulas in `rl/losses/policyGradient.ts`: advantages normalised in each minibatch; the clipped surrogate
 *   objective; value loss clipping; overall loss and entropy bonus; debug variables (explained variance is in
 *   `rl/learner/rollout/RolloutLearner.ts`). Early stopping by KL, which is not one of the 37, is below too.
 * - Set below or in `rl/learner/rollout/fields.ts`, and done elsewhere: generalised advantage estimation
 *   (`rl/returns/gae.ts`); the ε of Adam and global gradient clipping (`tensor/graph/optimisers.ts`); learning rate
 *   annealing (`learningRateOf` in `rl/learner/parts.ts`).
 * - `rl/learner/rollout/Rollout.ts`: a vectorised rollout that continues where the last one ended, keeps actions as they were
 *   before clipping, and bootstraps from the final observation of a truncated episode.
 * - `rl/learner/rollout/update.ts`: several epochs of minibatches, shuffled without replacement; for an LSTM, whole
 *   sequences, each with the memory that the rollout had before it, which is emptied where an episode begins
 *   (`rl/learner/rollout/features.ts`). The memory passes from one rollout to the next, and is empty before the first.
 * - `rl/model/ActorCritic.ts`: orthogonal weights (`rl/model/trunk.ts` has the hidden layers) and zero biases; separate networks
 *   for vectors and a shared one for images; Gaussian actions with a state-independent log deviation.
 *   `tensor/graph/distributions.ts` treats their elements as independent, as it does several choices at once, and has action masks;
 *   `rl/model/actions.ts` clips real numbers to the env's bounds.
 * - `rl/env/Wrapper.ts`, for pixels: frame stacking, reward clipping, no-op starts, frame skipping, episodes that end with a
 *   life, firing to reset, and grey scaled-down frames. `rl/env/Normalise.ts`: normalised and clipped observations and rewards
 *   (`normalize` of `Train.run`) for continuous control.
 */
import * as Schema from "effect/Schema"
import * as Fields from "../../../base/config/fields.ts"
import * as Graph from "../../../tensor/graph/ops.ts"
import * as Optimisers from "../../../tensor/graph/optimisers.ts"
import * as Algorithm from "../../learner/Algorithm.ts"
import * as Learner from "../../learner/onPolicy.ts"
import * as Losses from "../../losses/policyGradient.ts"
import type * as Model from "../../model/ActorCritic.ts"
import type { MemoryOptions } from "../../model/trunk.ts"

const { add, mean, mul, sub } = Graph

// --- Config: `PpoOptions` are the settings in code; `PpoConfig` checks them and fills in the defaults ---

/** The settings that PPO shares with algorithms that differ in the network or in the critic's loss. */
export interface ClippingOptions extends Learner.RolloutOptions, Learner.ActorOptions, MemoryOptions {
  /** The learning rate. @default 0.00025 */
  readonly learningRate?: Learner.Scheduled
  /** The number of env steps that each env takes between two updates. @default 128 */
  readonly nsteps?: number
  /** The number of passes over each rollout. @default 4 */
  readonly epochs?: number
  /** The number of minibatches that a rollout is shuffled into, in each pass. @default 4 */
  readonly minibatches?: number
  /** The λ of the returns: 0 gives one-step targets, 1 gives full returns. @default 0.95 */
  readonly lambda?: number
  /** The clip range: the probability ratio is clipped to 1 ± this. It can change over the run. @default 0.2 */
  readonly clip?: Learner.Scheduled
  /** Normalises the advantages of each minibatch to mean 0 and standard deviation 1. @default true */
  readonly normalizeAdvantages?: boolean
  /**
   * The KL limit: an update ends at the first minibatch whose approximate KL divergence exceeds 1.5 times this, and
   * leaves that minibatch out. null sets no limit. @default null
   */
  readonly targetKl?: number | null
  /** The constant that keeps Adam from dividing by zero. @default 0.00001 */
  readonly adamEpsilon?: number
}

export interface ClippedValueOptions extends ClippingOptions, Learner.ActorCriticLearningOptions {
  /**
   * Uses the larger of two squared errors of the critic: of its value, and of this value clipped to ± `clip` around its
   * value in the rollout; false uses only the first. @default true
   */
  readonly clipValue?: boolean
  /**
   * A loss of your own in place of PPO's: a function of a minibatch and of the network's outputs, which include PPO's
   * loss. Only code can set one; null keeps PPO's. @default null
   */
  readonly loss?: Learner.OwnLoss | null
}

export interface PpoOptions extends ClippedValueOptions, Learner.DeviationOptions {
  /**
   * Where rollouts are played: `envs` steps the envs in JavaScript; `graph` plays whole rollouts in one program of the
   * backend, so that no step passes through JavaScript. Only envs with a graph form can do that. @default "envs"
   */
  readonly rollouts?: "envs" | "graph"
  /**
   * The number of slices that each minibatch is divided into, so that as many processes can compute its gradient: see
   * `ranks`. The results depend on this number, in their last bits, but not on the number of processes. @default 1
   */
  readonly slices?: number
}

export const ppoFields = {
  ...Learner.actorCriticFields,
  learningRate: Fields.withDefault(Learner.learningRateSetting, 2.5e-4),
  nsteps: Fields.withDefault(Fields.bounded("rolloutSteps"), 128),
  epochs: Fields.withDefault(Fields.bounded("rounds"), 4),
  minibatches: Fields.withDefault(Fields.bounded("minibatches"), 4),
  lambda: Fields.withDefault(Fields.fraction, 0.95),
  clip: Fields.withDefault(Learner.scheduled(Fields.positive), 0.2),
  clipValue: Fields.withDefault(Schema.Boolean, true),
  normalizeAdvantages: Fields.withDefault(Schema.Boolean, true),
  targetKl: Fields.withDefault(Schema.NullOr(Fields.positive), null),
  adamEpsilon: Fields.withDefault(Fields.positive, 1e-5),
  loss: Fields.withDefault(Schema.NullOr(Fields.code<Learner.OwnLoss>()), null),
}
const ClippedConfig = Schema.Struct(ppoFields)
/** The settings that the loss and the learner read. VIN, RND and GAIL have them, too. */
type ClippedConfig = typeof ClippedConfig.Type
export const PpoConfig = Schema.Struct({
  ...ppoFields,
  ...Learner.deviationFields,
  rollouts: Fields.withDefault(Schema.Literals(["envs", "graph"]), "envs"),
  slices: Fields.withDefault(Fields.bounded("slices"), 1),
})
export type PpoConfig = typeof PpoConfig.Type

// --- Learner: the loss and the phase; `actorCriticLearner` has the network, the rollout and the returns ---

/** Describes the learner of PPO, and of VIN, which passes its own `name` and `planner`. */
export const ppoLearner = (
  name: string,
  settings: ClippedConfig &
    Partial<Pick<PpoConfig, "rollouts" | "slices" | "sde" | "logStdInit">> &
    Pick<Model.ActorCriticOptions<never>, "planner">,
  task: Algorithm.Task,
) => {
  const config = Learner.resolved(settings)
  return Learner.actorCriticLearner(name, config, task, {
    loss: ({ batch, standardised }, outputs) => ppoLoss(config, batch, outputs, standardised),
    phase: (loss) => ppoPhase(config, loss),
  })
}

/** The columns of a minibatch, as tensors, that the loss reads. */
type PpoBatch = Learner.Batch<Learner.ColumnsOf<Model.ActorCriticKept>>

/**
 * Computes the loss of a minibatch: L = L_clip − c_e H + c_v ½ L_value, with the clipped surrogate loss L_clip, the
 * entropy H, the critic's squared error L_value, and their weights c_e and c_v in `config`. `standardised` is the
 * minibatch's function of this name.
 */
export const ppoLoss = (
  config: Learner.Resolved<ClippedConfig>,
  batch: PpoBatch,
  evaluation: Pick<Model.Evaluation, "distribution" | "value">,
  standardised: Learner.Minibatch<unknown>["standardised"],
): Learner.Loss => {
  const { loss, metrics, limit } = ppoPolicyLoss(config, batch, evaluation, standardised)
  const errors = { v_t: evaluation.value, target_t: batch.targets }
  const squaredError = config.clipValue
    ? Losses.clippedValueLoss({ ...errors, vOld_t: batch.values, epsilon: config.clip })
    : Losses.valueLoss(errors)
  const valueLoss = mul(squaredError, 0.5)
  return {
    loss: add(loss, mul(valueLoss, config.valueCoefficient)),
    metrics: { ...metrics, "losses/value_loss": valueLoss },
    limit,
  }
}

/** Computes the part of the loss that the policy learns from: L_clip − c_e H, as in `ppoLoss`. */
export const ppoPolicyLoss = (
  config: Pick<Learner.Resolved<PpoConfig>, "clip" | "normalizeAdvantages" | "entropyCoefficient" | "targetKl">,
  batch: PpoBatch,
  { distribution }: Pick<Model.Evaluation, "distribution">,
  standardised: Learner.Minibatch<unknown>["standardised"],
): Learner.Loss => {
  const { actions, logProbs, advantages } = batch
  const advantage_t = config.normalizeAdvantages ? standardised(advantages) : advantages
  const ratios = Losses.importanceRatio({
    logProbability_t: distribution.logProbability(actions),
    logProbabilityOld_t: logProbs,
  })
  const { ratio_t } = ratios
  const policyLoss = Losses.clippedSurrogate({ ratio_t, advantage_t, epsilon: config.clip })
  const entropy = mean(distribution.entropy())
  const kl = Losses.approximateKl(ratios)
  return {
    loss: sub(policyLoss, mul(entropy, config.entropyCoefficient)),
    metrics: {
      "losses/policy_loss": policyLoss,
      "losses/entropy": entropy,
      "losses/approx_kl": kl,
      "losses/clipfrac": Losses.clipFraction({ ratio_t, epsilon: config.clip }),
    },
    limit: config.targetKl === null ? undefined : { value: kl, atMost: 1.5 * config.targetKl },
  }
}

/** Describes the only phase of the update: several epochs of shuffled minibatches, with Adam or the config's optimiser. */
export const ppoPhase = <C>(
  config: Pick<
    Learner.Resolved<PpoConfig>,
    "epochs" | "minibatches" | "maxGradNorm" | "adamEpsilon" | "optimiser" | "scheduledInputs"
  >,
  loss: (minibatch: Learner.Minibatch<C>) => Learner.Loss,
): Learner.Phase<C> => ({
  name: "update",
  epochs: config.epochs,
  minibatches: config.minibatches,
  maxGradNorm: config.maxGradNorm,
  loss,
  scheduledInputs: config.scheduledInputs,
  optimiser: Learner.chosenOptimiser(config, ({ size, learningRate }) =>
    Optimisers.adam({ size, learningRate, epsilon: config.adamEpsilon }),
  ),
})

/**
 * Makes PPO; settings that are left out have their defaults.
 *
 * @example
 * ```ts
 * Train.run({ env: CartPole.env, algorithm: Ppo.make({ learningRate: 1e-3 }), totalSteps: 100_000 })
 * ```
 */
export const make: Algorithm.Make<PpoOptions> = Algorithm.define({
  name: "ppo",
  config: PpoConfig,
  setup: (config, task) => ppoLearner("ppo", config, task),
}).make
