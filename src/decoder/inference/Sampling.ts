/**
 * Defines how the tokens of a request are drawn, and when the generation stops. A request gives the settings that differ
 * from the defaults; the engine checks them by this Schema.
 */
import { Schema } from "effect"
import { fraction, intBetween, naturalInt, nonNegative, positiveInt, withDefault } from "../../base/config/fields.ts"

/** The most alternatives of a token whose log-probabilities a request can ask for. */
export const mostTopLogprobs = 20

export const Sampling = Schema.Struct({
  /** Divides the logits before all filters. 0 always takes the likeliest token (of equal ones, the lowest id). */
  temperature: withDefault(nonNegative, 1),
  /** Keeps the fewest likeliest tokens whose probabilities add up to at least this; 1 keeps all. */
  topP: withDefault(fraction.check(Schema.isGreaterThan(0)), 1),
  /** Keeps this many of the likeliest tokens; 0 keeps all. */
  topK: withDefault(naturalInt, 0),
  /** Keeps the tokens that are at least this many times as likely as the likeliest one; 0 keeps all. */
  minP: withDefault(fraction, 0),
  /** The most tokens to generate; null stands for all that the model's length leaves room for. */
  maxTokens: withDefault(Schema.NullOr(positiveInt), null),
  /** Texts that end the generation. The answer's text ends before the first one that is complete. */
  stop: withDefault(Schema.Array(Schema.NonEmptyString), []),
  /** Tokens that end the generation, in addition to the model's own. They are the last token of the answer. */
  stopTokenIds: withDefault(Schema.Array(naturalInt), []),
  /** Goes on after the model's own end token; benchmarks set it. */
  ignoreEos: withDefault(Schema.Boolean, false),
  /** Addresses the random draws: token i is drawn from `Rng.stream(seed, "token", i)`. Null: the engine chooses one. */
  seed: withDefault(Schema.NullOr(Schema.Int), null),
  /** The number of likeliest tokens whose log-probabilities each generated token lists. */
  topLogprobs: withDefault(intBetween(0, mostTopLogprobs), 0),
})

/** Settings with their defaults filled in. */
export type Sampling = typeof Sampling.Type
/** Settings as a request gives them: each is optional. */
export type RequestedSampling = typeof Sampling.Encoded
