/** Computes the log-probabilities of the tokens of packed sequences, on which all token losses are built. */
import {
  add,
  and,
  constant,
  exp,
  gather,
  greaterEqual,
  equal,
  logSoftmax,
  mul,
  neg,
  pad,
  reciprocal,
  reshape,
  slice,
  sum,
  where,
} from "../../graph/ops.ts"
import type { Tensor } from "../../graph/Tensor.ts"
import type { Weights } from "../trunk.ts"
import type { DecoderConfig } from "./DecoderConfig.ts"
import { logitsOf } from "./layers.ts"
import type { PackedInputs } from "./packed.ts"

interface Options extends Pick<PackedInputs, "tokens" | "segments"> {
  /** The temperature at which each token was sampled, f32 [rows, width]; by default 1. */
  readonly temperature?: Tensor
}

/** The model's predictions of each token, both [rows, width]. They are 0 where a token has no context. */
export interface TokenPredictions {
  /** log π(token t | the tokens before it in its segment). */
  readonly logProbability_t: Tensor
  /** The entropy of the distribution that token t was drawn from, in nats. */
  readonly entropy_t: Tensor
}

/**
 * Predicts each token from those before it in its segment. Place t of the results is about token t itself, so masks,
 * advantages and sampled log-probabilities that are aligned with the tokens need no shift. The first token of a segment
 * and padding have 0, and no gradient flows from them.
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
  { tokens, segments, temperature }: Options,
): TokenPredictions => {
  const [rows, width] = tokens.shape
  const count = rows * width
  // The state of token t − 1 predicts token t. The last token of each window predicts nothing that is used.
  const earlier = (x: Tensor): Tensor => slice(x, [0, 0], [rows, width - 1])
  const later = (x: Tensor): Tensor => slice(x, [0, 1], [rows, width - 1])
  const targets = pad(later(tokens), [0, 0], [0, 1])
  // Dividing the states by the temperature, not the logits, takes less: there are fewer numbers.
  const cooled =
    temperature === undefined
      ? hidden
      : mul(hidden, reshape(reciprocal(pad(later(temperature), [0, 0], [0, 1], 1)), [rows, width, 1]))
  const all = reshape(logSoftmax(logitsOf(config, weights, cooled)), [count, config.vocabSize])
  const firsts = constant(Int32Array.from({ length: count }, (_, token) => token * config.vocabSize))
  const chosen = gather(reshape(all, [-1]), add(firsts, reshape(targets, [-1])))
  const entropy = neg(sum(mul(exp(all), all), -1))

  const hasContext = and(equal(later(segments), earlier(segments)), greaterEqual(later(segments), 0))
  const aligned = (perToken: Tensor): Tensor =>
    pad(where(hasContext, earlier(reshape(perToken, [rows, width])), 0), [0, 1], [0, 0])
  return { logProbability_t: aligned(chosen), entropy_t: aligned(entropy) }
}
