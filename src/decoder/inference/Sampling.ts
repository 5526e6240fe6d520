/**
 * Defines how the tokens of a request are drawn, and when the generation stops. A request has the settings that differ from
 * the defaults; the engine checks them with this Schema.
 */
import { Schema } from "effect"
import { fraction, intBetween, naturalInt, nonNegative, positiveInt, withDefault } from "../../base/config/fields.ts"

/** The largest number of alternatives of a token whose log-probabilities can be requested. */
export const mostTopLogprobs = 20

export const Sampling = Schema.Struct({
  /**
   * The temperature, a number that divides the logits before all filters. 0 always takes the likeliest token (of equal ones,
   * the lowest id).
   */
  temperature: withDefault(nonNegative, 1),
  /** Keeps the smallest number of likeliest tokens whose probabilities add up to at least this; 1 keeps all. */
  topP: withDefault(fraction.check(Schema.isGreaterThan(0)), 1),
  /** Keeps this many of the likeliest tokens; 0 keeps all. */
  topK: withDefault(naturalInt, 0),
  /** Keeps tokens whose probability is at least this share of the likeliest token's; 0 keeps all. */
  minP: withDefault(fraction, 0),
  /** The largest number of tokens to generate; null uses all the room that the model's length leaves. */
  maxTokens: withDefault(Schema.NullOr(positiveInt), null),
  /** Texts that end the generation. The answer's text ends before the first one that is complete. */
  stop: withDefault(Schema.Array(Schema.NonEmptyString), []),
  /** Tokens that end the generation, in addition to the model's own. They are the last token of the answer. */
  stopTokenIds: withDefault(Schema.Array(naturalInt), []),
  /** Whether the generation continues after the model's own end token. Benchmarks set it. */
  ignoreEos: withDefault(Schema.Boolean, false),
  /**
   * The seed of the random draws: token i is drawn from `Rng.stream(seed, "token", i)`. If null, the engine chooses a seed.
   */
  seed: withDefault(Schema.NullOr(Schema.Int), null),
  /** The number of likeliest tokens that are listed, with log-probabilities, for each generated token. */
  topLogprobs: withDefault(intBetween(0, mostTopLogprobs), 0),
})

/** Settings with all defaults. */
export type Sampling = typeof Sampling.Type
/** Settings of a request; each is optional. */
export type RequestedSampling = typeof Sampling.Encoded
