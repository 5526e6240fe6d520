/** Computes the log-probabilities of the tokens of packed sequences. All token losses use them. */
import {
  add,
  constant,
  exp,
  flatten,
  gather,
  greaterEqual,
  logSoftmax,
  mul,
  neg,
  reciprocal,
  reshape,
  sum,
  where,
} from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"
import type { Weights } from "../../rl/model/trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { logitsOf } from "./layers.ts"
import type { PackedInputs } from "./packed.ts"

interface LogProbabilityOptions extends Pick<PackedInputs, "tokens" | "contexts"> {
  /** The temperature at which each token was sampled, f32 [rows, width]; by default 1. */
  readonly temperature?: Tensor
}

/** The model's predictions of each token, both [rows, width]. They are 0 where a token has no context. */
export interface TokenPredictions {
  /** log π(token t | the tokens before it in its sequence). */
  readonly logProbability_t: Tensor
  /** The entropy, in nats, of the distribution from which token t was drawn. */
  readonly entropy_t: Tensor
}

/**
 * Predicts each token from the tokens before it in its sequence. Element t of the results belongs to token t, so masks,
 * advantages and sampled log-probabilities that are aligned with the tokens need no shift. For the first token of a sequence
 * and for padding, the results are 0, and no gradient flows from them.
 *
 * @example
 * ```ts
 * const inputs = Decoder.packedInputs(4, 256)
 * const weights = Decoder.statesOf(Decoder.parametersOf(decoderConfig))
 * const hidden = Decoder.hiddenStates(decoderConfig, weights, inputs)
 * const { logProbability_t } = Decoder.predictions(decoderConfig, weights, hidden, inputs)
 * ```
 */
export const predictions = (
  config: DecoderConfig,
  weights: Weights,
  hidden: Tensor,
  { tokens, contexts, temperature }: LogProbabilityOptions,
): TokenPredictions => {
  const [rows, width] = tokens.shape
  const count = rows * width
  const places = flatten(contexts)
  const hasContext = greaterEqual(places, 0)
  // The hidden state of a token predicts the next token of each sequence that contains it.
  const before = gather(reshape(hidden, [count, config.hiddenSize]), where(hasContext, places, 0))
  const all = logSoftmax(cooledLogits(config, weights, before, temperature))
  const firsts = constant(Int32Array.from({ length: count }, (_, token) => token * config.vocabSize))
  const chosen = gather(flatten(all), add(firsts, flatten(tokens)))
  const entropy = neg(sum(mul(exp(all), all), -1))
  const inWindows = (perToken: Tensor): Tensor => reshape(where(hasContext, perToken, 0), [rows, width])
  return { logProbability_t: inWindows(chosen), entropy_t: inWindows(entropy) }
}

/** Computes logits [count, vocabSize], divided by the temperatures of their tokens. */
const cooledLogits = (config: DecoderConfig, weights: Weights, hidden: Tensor, temperature?: Tensor): Tensor => {
  if (temperature === undefined) return logitsOf(config, weights, hidden)
  const factor = reshape(reciprocal(temperature), [hidden.shape[0], 1])
  // Divide the hidden states instead of the logits, because they have fewer elements, unless the logits are bounded.
  return config.logitCap === undefined
    ? logitsOf(config, weights, mul(hidden, factor))
    : mul(logitsOf(config, weights, hidden), factor)
}
