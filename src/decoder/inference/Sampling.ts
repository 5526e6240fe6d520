/**
 * Defines how the tokens of a request are drawn, and when the generation stops. A request has the settings that differ from
 * the defaults; the engine checks them with this Schema.
 */
import { Schema } from "effect"
import { TextFormat } from "../constrained/TextFormat.ts"
import { fraction, intBetween, naturalInt, nonNegative, withDefault } from "../../base/config/fields.ts"

/** The largest number of alternatives of a token whose log-probabilities can be requested. */
export const mostTopLogprobs = 20

/** The largest number of tokens whose logits a request can change. */
export const mostLogitBiases = 1024

const between = (minimum: number, maximum: number) => Schema.Finite.check(Schema.isBetween({ minimum, maximum }))

/** A number that is added to the logit of a token. */
export const LogitBias = between(-100, 100)
/** A penalty that is subtracted from the logits of tokens that the answer already has. */
export const Penalty = between(-2, 2)
/** The number that divides or multiplies the logits of tokens that the text already has. */
export const RepetitionPenalty = between(0.01, 100)

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
  /** Numbers that are added to the logits of tokens, as pairs of an id and a number. */
  logitBias: withDefault(
    Schema.Array(Schema.Tuple([naturalInt, LogitBias])).check(Schema.isMaxLength(mostLogitBiases)),
    [],
  ),
  /**
   * The penalty for tokens that the text already has, prompt and answer: it divides their logits if they are positive, and
   * multiplies them otherwise. It applies after `logitBias`; 1 changes nothing.
   */
  repetitionPenalty: withDefault(RepetitionPenalty, 1),
  /** Subtracted from the logit of a token for each time that the answer already has it. */
  frequencyPenalty: withDefault(Penalty, 0),
  /** Subtracted from the logits of all tokens that the answer already has. */
  presencePenalty: withDefault(Penalty, 0),
  /**
   * The JSON Schema that the answer's text fits, unless it is cut off by `maxTokens` or a stop string; `{}` is any JSON. If
   * null, the answer can be any text. Tokens that cannot follow are excluded before the draw.
   */
  jsonSchema: withDefault(
    Schema.NullOr(Schema.Union([Schema.Boolean, Schema.Record(Schema.String, Schema.Unknown)])),
    null,
  ),
  /**
   * The format of an answer that is no JSON, as `jsonSchema` is for JSON: a regular expression that the whole text matches, or the
   * texts of which it is one.
   */
  textFormat: withDefault(Schema.NullOr(TextFormat), null),
  /**
   * The largest number of tokens to generate; null uses all the room that the model's length leaves. 0 generates none, and
   * only computes the log-probabilities of the prompt.
   */
  maxTokens: withDefault(Schema.NullOr(naturalInt), null),
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
  /**
   * The number of likeliest tokens that are listed for each token of the prompt, beside the log-probability of the token
   * itself. If null, prompts get no log-probabilities. With them, a prompt is read token by token, like an answer.
   */
  promptLogprobs: withDefault(Schema.NullOr(intBetween(0, mostTopLogprobs)), null),
})

/** Settings with all defaults. */
export type Sampling = typeof Sampling.Type
/** Settings of a request; each is optional. */
export type RequestedSampling = typeof Sampling.Encoded
