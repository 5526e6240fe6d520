/**
 * Which language model, and how it is asked: what a file says below `lm_config`.
 *
 * @example
 * ```yaml
 * lm_config:
 *   model: gpt-4.1-mini # the name says whom to ask: see Lms.ts
 *   temperature: 0.2
 *   cache: record # asked once, answered from the files ever after
 *   budget: { money: 5 }
 *   prices: [{ model: gpt-4.1-mini, input: 0.4, output: 1.6 }]
 * ```
 */
import { Redacted, Schema, SchemaGetter } from "effect"
import { shownSecret } from "../config/Config.ts"
import { fraction, naturalInt, nonNegative, orDefault, positive, positiveInt, withDefault } from "../config/fields.ts"
import { type ChatMessage, LmRequest } from "./Chat.ts"
import type { LmOptions } from "./LmOptions.ts"

/** What stands in a run's files in the place of a key; read again, it is none. */
export const shownKey = shownSecret

/** `${NAME}` is a key by the name of the variable that holds it. */
export const variableIn = (key: string): string | undefined => /^\$\{(\w+)\}$/.exec(key.trim())?.[1]

const Secret = Schema.String.pipe(
  Schema.decodeTo(Schema.Redacted(Schema.String), {
    decode: SchemaGetter.transform((key: string) => Redacted.make(key)),
    // A config goes into files; a key doesn't. Where it is found may stand there: the run can be repeated from them.
    encode: SchemaGetter.transform((key: Redacted.Redacted) =>
      variableIn(Redacted.value(key)) === undefined ? shownKey : Redacted.value(key),
    ),
  }),
)

/** An address without what stands before its last `@`. */
export const withoutUser = (url: string): string => url.replace(/^([a-z][a-z\d+.-]*:(?=[\\/]))?([\\/]*).*@/is, "$1$2")

/** As a file may hold it: with nobody's name and password, and without the keys in its query. */
const shownUrl = (said: string): string => {
  const url = URL.parse(said)
  const isNobodys = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
  return (isNobodys ? said : withoutUser(said)).replace(
    /([?&][^=&#]*(?:key|token|secret|sig|pass|code|auth)[^=&#]*=)[^&#]*/gi,
    `$1${shownKey}`,
  )
}

const Address = Schema.String.pipe(
  Schema.decodeTo(Schema.String, {
    decode: SchemaGetter.transform((said: string) => said),
    encode: SchemaGetter.transform(shownUrl),
  }),
)

export const Limits = Schema.Struct({
  /** Calls at the same time; null: as many as come. */
  concurrency: withDefault(Schema.NullOr(positiveInt), null),
  /** Sent, with those that are tried again; null: no limit. */
  requestsPerMinute: withDefault(Schema.NullOr(positiveInt), null),
  /** Of prompts and answers together. */
  tokensPerMinute: withDefault(Schema.NullOr(positiveInt), null),
})
export type Limits = typeof Limits.Type

export const Budget = Schema.Struct({
  /** Of prompts and answers together; null: no limit. */
  tokens: withDefault(Schema.NullOr(naturalInt), null),
  /** How often a server may be asked, retries included; answers from the cache cost nothing. */
  calls: withDefault(Schema.NullOr(naturalInt), null),
  /** In what the prices are in. */
  money: withDefault(Schema.NullOr(nonNegative), null),
})
export type Budget = typeof Budget.Type

/** What a million tokens cost. */
export const Price = Schema.Struct({
  /** A model's name, or how it begins. */
  model: Schema.String,
  /** Of prompts. */
  input: nonNegative,
  /** Of answers. */
  output: nonNegative,
})
export type Price = typeof Price.Type

export const LmConfig = Schema.Struct({
  /** Its name says whom to ask: gpt-…, o1 …, gemini…, claude…, or vllm:, toka:, scripted:, builtin: before a name. */
  model: Schema.String.check(Schema.isNonEmpty()),
  /** 0: what is likeliest; 1: as likely as the model thinks. */
  temperature: withDefault(nonNegative, 0.2),
  /** An answer is cut off there, and then isn't acted upon. */
  maxOutputTokens: withDefault(positiveInt, 2048),
  /** Every call as a file below `llm_calls/`. */
  logCalls: withDefault(Schema.Boolean, false),
  /** How often a call is tried again after a failure that may pass. */
  maxRetries: withDefault(naturalInt, 5),
  /** In seconds: how long is waited before the first retry. */
  startingDelay: withDefault(nonNegative, 1),
  /** What each wait is multiplied by for the next. */
  backoffFactor: withDefault(positive, 2),
  /** In seconds: no wait is longer, unless a server asks for one, of up to a minute. */
  maxDelay: withDefault(nonNegative, 10),
  /** Where the server is; null: where the model's provider is. */
  baseUrl: withDefault(Schema.NullOr(Address), null),
  /** How the server is spoken to; null: as the model's name says. */
  protocol: withDefault(Schema.NullOr(Schema.Literals(["openai", "anthropic"])), null),
  /** Better in the environment; `${NAME}` names a variable there. */
  apiKey: withDefault(Schema.NullOr(Secret), null),
  /** In seconds: how long one try may take. */
  timeoutS: withDefault(positive, 900),
  /** In megabytes: a longer answer of a server is refused before it fills the memory. */
  maxAnswerMb: withDefault(positive, 64),
  /** Where an answer ends. */
  stopSequences: orDefault(Schema.Array(Schema.String), []),
  /** How many tokens a model may think before it answers, where it can; null: as the server likes. */
  thinkingBudget: withDefault(Schema.NullOr(positiveInt), null),
  /** Models are always asked over HTTP; read so that files that say so are. */
  useServer: withDefault(Schema.NullOr(Schema.Boolean), null),
  /** `record`: asked once, answered from files ever after; `replay`: from files alone. */
  cache: withDefault(Schema.Literals(["record", "replay", "off"]), "off"),
  /** Where answers are kept. */
  cacheDir: withDefault(Schema.String, "lm_cache"),
  /** How much may be asked at once, and in a minute. */
  limits: withDefault(Limits, {}),
  /** What a run may spend before it stops. */
  budget: withDefault(Budget, {}),
  /** What tokens cost, for a budget of money. */
  prices: withDefault(Schema.Array(Price), []),
  /** What share of a wait is left to chance, so that many clients don't come back all at once. */
  jitter: withDefault(fraction, 0.25),
})
export type LmConfig = typeof LmConfig.Type

/** The request that a config asks for. */
export const request = (config: LmConfig, messages: ReadonlyArray<ChatMessage>): LmRequest => ({
  ...LmRequest.defaults,
  model: config.model,
  messages,
  temperature: config.temperature,
  maxOutputTokens: config.maxOutputTokens,
  stop: config.stopSequences,
})

/** A config with everything but the model at its default. */
export const make = (options: LmOptions): LmConfig => Schema.decodeSync(LmConfig)(options)
