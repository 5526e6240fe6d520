/**
 * Computes the metrics of a training step on tokens. A program computes sums over the tokens of a micro-batch; the
 * caller adds the sums of all micro-batches and ranks; `meanMetrics` divides them by the number of tokens.
 *
 * @example
 * ```ts
 * const sums = { tokens: 4, clipped: 1, inferenceKl: 0.2 }
 * Losses.meanMetrics(sums) // { "losses/tokens": 4, "losses/clipfrac": 0.25, "losses/inference_kl": 0.05 }
 * ```
 */
import { cast, greater, greaterEqual, less, mul, or, sub } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { TokenPairs } from "./preferences.ts"

/** The sums over the tokens that count, by name. A metric is absent if the objective does not have it. */
export type MetricSums<A> = { readonly tokens: A; readonly pairs?: A } & { readonly [Name in keyof typeof names]?: A }

/** The metrics in logs, by the name of their sum. */
const names = {
  /**
   * The ratio of the token's probabilities under the trained and the old weights; in GSPO, the ratio of its sequence.
   */
  ratio: "losses/ratio",
  /** The share of tokens whose ratio lies outside of the clip range. */
  clipped: "losses/clipfrac",
  /** The weight of the importance correction. */
  importance: "losses/importance",
  /** The share of tokens whose importance weight reached the cap. */
  capped: "losses/importance_capped",
  /** The divergence from the inference engine's policy to the trainer's. */
  inferenceKl: "losses/inference_kl",
  /** The divergence from the trainer's policy to the reference model's. */
  referenceKl: "losses/reference_kl",
  /** The entropy of the model's distribution. */
  entropy: "losses/entropy",
  /** The reward of the chosen answer of a pair: β times the sum of log π − log π_ref over its tokens. */
  rewardChosen: "losses/reward_chosen",
  /** The reward of the rejected answer. */
  rewardRejected: "losses/reward_rejected",
  /** The reward of the chosen answer minus that of the rejected one. */
  rewardMargin: "losses/reward_margin",
  /** The share of pairs whose chosen answer has the larger reward. */
  rewardAccuracy: "losses/reward_accuracy",
} as const

/** The metrics that are means over pairs; all others are means over tokens. */
const ofPairs: ReadonlySet<string> = new Set(["rewardChosen", "rewardRejected", "rewardMargin", "rewardAccuracy"])

/** The distances of a ratio below and above 1 from which on it is clipped; null if it is not clipped below. */
export interface RatioBounds {
  readonly clipLow: number | null
  readonly clipHigh: number
}

/** The metrics of each token, which `sumsOf` adds up. The caller sets tokens that do not count to finite numbers. */
interface TokenMetrics {
  readonly counts_t: Tensor
  readonly ratio_t?: Tensor
  readonly clip?: RatioBounds | undefined
  readonly importance_t?: Tensor | undefined
  readonly cap?: number | undefined
  readonly inferenceKl_t?: Tensor | undefined
  readonly referenceKl_t?: Tensor | undefined
  readonly entropy_t?: Tensor | undefined
  readonly pairs?: TokenPairs
}

/** Builds the sums of a micro-batch, for `objectiveGraph`. `reduce` sums a number of each token. */
export const sumsOf = (metrics: TokenMetrics, reduce: (x_t: Tensor) => Tensor): MetricSums<Tensor> => {
  const { counts_t, ratio_t, clip, importance_t, cap, inferenceKl_t, referenceKl_t, entropy_t, pairs } = metrics
  const ones = cast(counts_t, "f32")
  const total = (x: Tensor): Tensor => reduce(mul(x, ones))
  const share = (condition: Tensor): Tensor => total(cast(condition, "f32"))
  const sumOf = (name: keyof typeof names, x: Tensor | undefined) => (x === undefined ? {} : { [name]: total(x) })
  return {
    tokens: reduce(ones),
    ...sumOf("ratio", ratio_t),
    ...(ratio_t === undefined || clip === undefined
      ? {}
      : {
          clipped: share(
            clip.clipLow === null
              ? greater(ratio_t, 1 + clip.clipHigh)
              : or(greater(ratio_t, 1 + clip.clipHigh), less(ratio_t, 1 - clip.clipLow)),
          ),
        }),
    ...sumOf("importance", importance_t),
    ...(importance_t === undefined || cap === undefined ? {} : { capped: share(greaterEqual(importance_t, cap)) }),
    ...sumOf("inferenceKl", inferenceKl_t),
    ...sumOf("referenceKl", referenceKl_t),
    ...sumOf("entropy", entropy_t),
    ...(pairs === undefined ? {} : sumsOfPairs(pairs, reduce)),
  }
}

/** Builds the sums over the pairs of a micro-batch. */
const sumsOfPairs = ({ share_t, chosen_t, rejected_t, accuracy_t }: TokenPairs, reduce: (x_t: Tensor) => Tensor) => {
  const total = (x_t: Tensor): Tensor => reduce(mul(x_t, share_t))
  return {
    pairs: reduce(share_t),
    rewardChosen: total(chosen_t),
    rewardRejected: total(rejected_t),
    rewardMargin: total(sub(chosen_t, rejected_t)),
    rewardAccuracy: total(accuracy_t),
  }
}

/** Divides the sums of a step by its number of tokens or of pairs, and names them as logs do. */
export const meanMetrics = (sums: MetricSums<number>): Readonly<Record<string, number>> => ({
  "losses/tokens": sums.tokens,
  ...Object.fromEntries(
    Object.entries(sums).flatMap(([name, value]) => {
      const label = name in names ? Reflect.get(names, name) : undefined
      const count = ofPairs.has(name) ? (sums.pairs ?? 0) : sums.tokens
      return label === undefined ? [] : [[label, count === 0 ? 0 : value / count]]
    }),
  ),
})
