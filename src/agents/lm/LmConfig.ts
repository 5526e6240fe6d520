/**
 * Defines the config of a language model and of its calls: the keys below `lm_config` in a file.
 *
 * @example
 * ```yaml
 * lm_config:
 *   model: gpt-4.1-mini # the name determines the provider: see Lms.ts
 *   temperature: 0.2
 *   cache: record # call the model once, then answer from the cache's files
 *   budget: { money: 5 }
 *   prices: [{ model: gpt-4.1-mini, input: 0.4, output: 1.6 }]
 * ```
 */
import { Schema } from "effect"
import {
  bounded,
  fraction,
  nonNegative,
  nonNegativeBelow,
  orDefault,
  positive,
  positiveBelow,
  withDefault,
} from "../../base/config/fields.ts"
import { Address, Secret } from "../../base/config/secretFields.ts"
import { type ChatMessage, LmRequest } from "./Chat.ts"

export interface LimitsOptions {
  /** The largest number of calls that run at the same time; null sets no limit. @default null */
  readonly concurrency?: number | null
  /** The largest number of requests per minute, including retries; null sets no limit. @default null */
  readonly requestsPerMinute?: number | null
  /** The largest number of tokens per minute, of prompts and answers together; null sets no limit. @default null */
  readonly tokensPerMinute?: number | null
}

export const Limits = Schema.Struct({
  concurrency: withDefault(Schema.NullOr(bounded("atOnce")), null),
  requestsPerMinute: withDefault(Schema.NullOr(bounded("count")), null),
  tokensPerMinute: withDefault(Schema.NullOr(bounded("count")), null),
})
export type Limits = typeof Limits.Type

export interface BudgetOptions {
  /** The largest number of tokens that a run may use, of prompts and answers together; null sets no limit. @default null */
  readonly tokens?: number | null
  /**
   * The largest number of requests to a server, including retries but not answers from the cache; null sets no limit.
   * @default null
   */
  readonly calls?: number | null
  /** The largest amount of money that a run may spend, in the currency of `prices`; null sets no limit. @default null */
  readonly money?: number | null
}

export const Budget = Schema.Struct({
  tokens: withDefault(Schema.NullOr(bounded("countOrNone")), null),
  calls: withDefault(Schema.NullOr(bounded("countOrNone")), null),
  money: withDefault(Schema.NullOr(nonNegative), null),
})
export type Budget = typeof Budget.Type

/** The prices of a model per million tokens. */
export interface Price {
  /** The name of a model, or the beginning of its name. */
  readonly model: string
  /** The price of a million tokens of prompts. */
  readonly input: number
  /** The price of a million tokens of answers. */
  readonly output: number
}

export const Price = Schema.Struct({
  model: Schema.String,
  input: nonNegative,
  output: nonNegative,
})

export interface LmOptions {
  /**
   * The name of the model, which determines the provider: gpt-…, o1 …, gemini…, claude…, or a name after vllm:, toka:,
   * scripted:, builtin: or decoder:.
   */
  readonly model: string
  /**
   * The sampling temperature: 0 always takes the likeliest token; 1 samples from the model's own distribution. @default 0.2
   */
  readonly temperature?: number
  /** The number of tokens after which an answer is cut off; by default, agents do not act upon such an answer. @default 2048 */
  readonly maxOutputTokens?: number
  /** Whether every call is written as a file below `llm_calls/`. @default false */
  readonly logCalls?: boolean
  /** The largest number of retries of a call after temporary failures. @default 5 */
  readonly maxRetries?: number
  /** The delay before the first retry, in seconds. @default 1 */
  readonly startingDelay?: number
  /** The growth factor of the delay from one retry to the next. @default 2 */
  readonly backoffFactor?: number
  /** The longest delay before a retry, in seconds. The server can ask for a longer one, up to a minute. @default 10 */
  readonly maxDelay?: number
  /** The address of the server; null takes the default address of the model's provider. @default null */
  readonly baseUrl?: string | null
  /**
   * The protocol of the server; null chooses it by the model's name. `toka` is the small protocol of Tokasaurus, `/generate`,
   * which has no tools. @default null
   */
  readonly protocol?: "openai" | "anthropic" | "toka" | null
  /**
   * The API key. `${NAME}` reads it from that environment variable, which is safer than writing the key here. @default null
   */
  readonly apiKey?: string | null
  /** The time limit of one attempt, in seconds. @default 900 */
  readonly timeoutS?: number
  /**
   * The largest size of a server's answer, in megabytes; a longer answer is refused before it fills the memory. @default 64
   */
  readonly maxAnswerMb?: number
  /** Texts at which the model stops its answer. @default [] */
  readonly stopSequences?: ReadonlyArray<string> | null
  /**
   * The number of tokens that the model may use to think before it answers, if it can think; null uses the server's default.
   * @default null
   */
  readonly thinkingBudget?: number | null
  /**
   * This setting has no effect: `model`, `protocol` and `baseUrl` decide how a model is called. It is accepted so that
   * existing files stay valid. @default null
   */
  readonly useServer?: boolean | null
  /**
   * Whether answers are cached: `record` calls the model only for new requests, and stores its answers; `replay` only returns
   * stored answers; `off` always calls the model. @default "off"
   */
  readonly cache?: "record" | "replay" | "off"
  /** The folder of the cached answers. @default "lm_cache" */
  readonly cacheDir?: string
  /** Limits on concurrent calls, and on requests and tokens per minute. */
  readonly limits?: LimitsOptions
  /** Limits on what a run may spend before it stops. */
  readonly budget?: BudgetOptions
  /** The prices of tokens, for a budget of money. @default [] */
  readonly prices?: ReadonlyArray<Price>
  /** The share of each delay that is random, so that many clients do not all retry at the same time. @default 0.25 */
  readonly jitter?: number
}

export const LmConfig = Schema.Struct({
  model: Schema.String.check(Schema.isNonEmpty()),
  temperature: withDefault(nonNegative, 0.2),
  maxOutputTokens: withDefault(bounded("count"), 2048),
  logCalls: withDefault(Schema.Boolean, false),
  maxRetries: withDefault(bounded("countOrNone"), 5),
  startingDelay: withDefault(nonNegativeBelow("seconds"), 1),
  backoffFactor: withDefault(positive, 2),
  maxDelay: withDefault(nonNegativeBelow("seconds"), 10),
  baseUrl: withDefault(Schema.NullOr(Address), null),
  protocol: withDefault(Schema.NullOr(Schema.Literals(["openai", "anthropic", "toka"])), null),
  apiKey: withDefault(Schema.NullOr(Secret), null),
  timeoutS: withDefault(positiveBelow("seconds"), 900),
  maxAnswerMb: withDefault(positiveBelow("megabytes"), 64),
  stopSequences: orDefault(Schema.Array(Schema.String), []),
  thinkingBudget: withDefault(Schema.NullOr(bounded("count")), null),
  useServer: withDefault(Schema.NullOr(Schema.Boolean), null),
  cache: withDefault(Schema.Literals(["record", "replay", "off"]), "off"),
  cacheDir: withDefault(Schema.String, "lm_cache"),
  limits: withDefault(Limits, {}),
  budget: withDefault(Budget, {}),
  prices: withDefault(Schema.Array(Price), []),
  jitter: withDefault(fraction, 0.25),
})
export type LmConfig = typeof LmConfig.Type

/** Makes a request with the settings of a config. */
export const request = (config: LmConfig, messages: ReadonlyArray<ChatMessage>): LmRequest => ({
  ...LmRequest.defaults,
  model: config.model,
  messages,
  temperature: config.temperature,
  maxOutputTokens: config.maxOutputTokens,
  stop: config.stopSequences,
})

/** Makes a config; settings that are left out have their defaults. */
export const make = (options: LmOptions): LmConfig => Schema.decodeSync(LmConfig)(options)
