/**
 * Defines the bodies of requests and decodes them. Settings that this server does not support are refused if they would
 * change the answer; harmless ones are ignored, as on other servers of the protocol.
 */
import { Effect, Schema, SchemaIssue } from "effect"
import { closest } from "../../base/text/closest.ts"
import { fraction, intBetween, naturalInt, nonNegative, positiveInt, withDefault } from "../../base/config/fields.ts"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { LogitBias, mostTopLogprobs, Penalty, RepetitionPenalty } from "../inference/Sampling.ts"
import { type ApiError, badRequest } from "./ApiError.ts"

/** A key that may be left out or null. */
export const maybe = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** The largest number of choices of one prompt. */
const mostChoices = 128

/** The settings of the sampling. */
const SamplingFields = {
  n: maybe(intBetween(1, mostChoices)),
  temperature: maybe(nonNegative),
  top_p: maybe(fraction.check(Schema.isGreaterThan(0))),
  /** 0 or −1 keep all tokens. */
  top_k: maybe(Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1))),
  min_p: maybe(fraction),
  /** Numbers that are added to the logits of tokens. The keys are token ids. */
  logit_bias: maybe(Schema.Record(Schema.String, LogitBias)),
  presence_penalty: maybe(Penalty),
  frequency_penalty: maybe(Penalty),
  repetition_penalty: maybe(RepetitionPenalty),
  /** The number of likeliest tokens that are listed, with log-probabilities, for each token of the prompt. */
  prompt_logprobs: maybe(intBetween(0, mostTopLogprobs)),
  /** 0 only computes the log-probabilities of the prompt. */
  max_tokens: maybe(naturalInt),
  /** Whether `max_tokens` is cut to the room that the prompt leaves, instead of refusing a request for more. */
  clip_max_tokens: maybe(Schema.Boolean),
  seed: maybe(Schema.Int),
  stop: maybe(Schema.Union([Schema.NonEmptyString, Schema.Array(Schema.NonEmptyString)])),
  stop_token_ids: maybe(Schema.Array(naturalInt)),
  ignore_eos: maybe(Schema.Boolean),
}

const SamplingBody = Schema.Struct(SamplingFields)
export type SamplingBody = typeof SamplingBody.Type

const JsonSchemaFormat = Schema.Struct({
  type: Schema.Literal("json_schema"),
  json_schema: Schema.Struct({
    name: maybe(Schema.String),
    description: maybe(Schema.String),
    schema: Schema.Record(Schema.String, Schema.Unknown),
    strict: maybe(Schema.Boolean),
  }),
})

/** The settings of requests that generate text. */
const AnswerFields = {
  /** vLLM's formats of answers, which `structuredOutputs.ts` reads. */
  structured_outputs: maybe(Schema.Record(Schema.String, Schema.Unknown)),
  response_format: maybe(
    Schema.Union([
      Schema.Struct({ type: Schema.Literal("text") }),
      Schema.Struct({ type: Schema.Literal("json_object") }),
      JsonSchemaFormat,
    ]),
  ),
  ...SamplingFields,
  /** The name of the model; the base model if left out. */
  model: maybe(Schema.String),
  stream: maybe(Schema.Boolean),
  stream_options: maybe(Schema.Struct({ include_usage: maybe(Schema.Boolean) })),
  /** Whether the answer includes the token ids of the prompt and of the answer. */
  return_token_ids: maybe(Schema.Boolean),
}

const ToolCall = Schema.Struct({
  id: maybe(Schema.String),
  type: maybe(Schema.Literal("function")),
  function: Schema.Struct({
    name: Schema.String,
    arguments: Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]),
  }),
})

export const RequestMessage = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool"]),
  content: maybe(
    Schema.Union([Schema.String, Schema.Array(Schema.Struct({ type: Schema.String, text: maybe(Schema.String) }))]),
  ),
  name: maybe(Schema.String),
  tool_calls: maybe(Schema.Array(ToolCall)),
  tool_call_id: maybe(Schema.String),
})
export type RequestMessage = typeof RequestMessage.Type

const FunctionTool = Schema.Struct({
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: Schema.NonEmptyString,
    description: maybe(Schema.String),
    parameters: maybe(Schema.Record(Schema.String, Schema.Unknown)),
    strict: maybe(Schema.Boolean),
  }),
})

const Conversation = {
  messages: Schema.NonEmptyArray(RequestMessage),
  tools: maybe(Schema.Array(FunctionTool)),
  /** Whether the prompt ends with the beginning of the assistant's message; true by default. */
  add_generation_prompt: maybe(Schema.Boolean),
  /** Further variables of the chat template. */
  chat_template_kwargs: maybe(Schema.Record(Schema.String, Schema.Unknown)),
}

/** The body of `POST /v1/chat/completions`. */
export const ChatBody = Schema.Struct({
  ...AnswerFields,
  ...Conversation,
  max_completion_tokens: maybe(positiveInt),
  tool_choice: maybe(
    Schema.Union([
      Schema.Literals(["none", "auto", "required"]),
      Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.String }) }),
    ]),
  ),
  parallel_tool_calls: maybe(Schema.Boolean),
  logprobs: maybe(Schema.Boolean),
  top_logprobs: maybe(intBetween(0, mostTopLogprobs)),
})
export type ChatBody = typeof ChatBody.Type

const Ids = Schema.NonEmptyArray(naturalInt)

/** The body of `POST /v1/completions`. */
export const CompletionBody = Schema.Struct({
  ...AnswerFields,
  prompt: Schema.Union([Schema.String, Ids, Schema.NonEmptyArray(Schema.String), Schema.NonEmptyArray(Ids)]),
  /** The number of likeliest tokens that are listed for each token. */
  logprobs: maybe(intBetween(0, mostTopLogprobs)),
  /** Whether the prompt is put before each answer's text. */
  echo: maybe(Schema.Boolean),
  /** Whether the tokenizer's special tokens are added to a text; true by default. */
  add_special_tokens: maybe(Schema.Boolean),
})
export type CompletionBody = typeof CompletionBody.Type

/** The body of `POST /inference/v1/generate`. */
export const GenerateBody = Schema.Struct({
  model: maybe(Schema.String),
  request_id: maybe(Schema.String.check(Schema.isMaxLength(256))),
  token_ids: Ids,
  sampling_params: Schema.Record(Schema.String, Schema.Unknown),
  stream: maybe(Schema.Boolean),
  stream_options: maybe(Schema.Struct({ include_usage: maybe(Schema.Boolean) })),
})

/** The settings in the key `sampling_params` of `GenerateBody`. */
export const SamplingParams = Schema.Struct({
  ...SamplingFields,
  /** The number of likeliest tokens that are listed for each token. */
  logprobs: maybe(intBetween(0, mostTopLogprobs)),
})

/** The body of `POST /tokenize`: a text, or a conversation. */
export const TokenizeBody = Schema.Union([
  Schema.Struct({ model: maybe(Schema.String), prompt: Schema.String, add_special_tokens: maybe(Schema.Boolean) }),
  Schema.Struct({ model: maybe(Schema.String), ...Conversation }),
])

/** The body of `POST /detokenize`. */
export const DetokenizeBody = Schema.Struct({ model: maybe(Schema.String), tokens: Schema.Array(naturalInt) })

/** The body of `POST /v1/load_lora_adapter`. */
export const LoadAdapterBody = Schema.Struct({
  lora_name: Schema.NonEmptyString.check(Schema.isMaxLength(256)),
  lora_path: Schema.NonEmptyString.check(Schema.isMaxLength(4096)),
  /** The training step of the weights; by default the number in a path that ends with `step_N`, otherwise 0. */
  step: maybe(naturalInt),
})

/** The body of `POST /v1/unload_lora_adapter`. */
export const UnloadAdapterBody = Schema.Struct({ lora_name: Schema.NonEmptyString })

/** The query of `GET /v1/models/NAME`: the step of the weights to wait for, and the longest time in seconds. */
export const AwaitedStep = Schema.Struct({
  step: Schema.optionalKey(Schema.NumberFromString.check(Schema.isInt(), Schema.isGreaterThanOrEqualTo(0))),
  wait: withDefault(Schema.NumberFromString.check(Schema.isBetween({ minimum: 0, maximum: 60 })), "0"),
})

const isEmpty = (value: unknown): boolean =>
  (Array.isArray(value) && value.length === 0) || (isPlain(value) && Object.keys(value).length === 0) || value === ""

/**
 * Settings of other servers, and of other routes of this one, that would change the answer, with the values that have no effect.
 * A body that has such a key in its Schema may have it.
 */
const unsupported: Readonly<Record<string, ReadonlyArray<unknown> | ((value: unknown) => boolean)>> = {
  length_penalty: [1],
  best_of: [1],
  use_beam_search: [false],
  min_tokens: [0],
  suffix: isEmpty,
  structured_outputs: [],
  guided_json: [],
  guided_regex: [],
  guided_choice: [],
  guided_grammar: [],
  truncate_prompt_tokens: [],
  include_stop_str_in_output: [false],
  skip_special_tokens: [true],
  return_tokens_as_token_ids: [false],
  bad_words: isEmpty,
  allowed_token_ids: [],
  logits_processors: isEmpty,
  continue_final_message: [false],
  chat_template: [],
  documents: isEmpty,
  functions: isEmpty,
  function_call: ["auto", "none"],
  modalities: (value) => Array.isArray(value) && value.every((mode) => mode === "text"),
  audio: [],
  web_search_options: [],
  prompt_embeds: [],
  previous_response_id: [],
  conversation: [],
  background: [false],
  include: isEmpty,
  prompt: [],
  max_tool_calls: [],
  truncation: ["disabled"],
  features: [],
  kv_transfer_params: [],
  flat_logprobs: [false],
  normalize: [true],
}

/** Settings that never change the answer. */
const harmless = [
  "user",
  "metadata",
  "store",
  "service_tier",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "prediction",
  "reasoning",
  "priority",
  "request_id",
  "cache_salt",
  "detokenize",
  "spaces_between_special_tokens",
]

/** The length in characters above which a key is not compared with known settings. */
const longestName = 64

/** Returns an error if a body has a setting that must not be ignored; otherwise undefined. */
const problemOf = (body: Plain, known: ReadonlyArray<string>): ApiError | undefined => {
  for (const [key, value] of Object.entries(body)) {
    if (value === null || value === undefined || known.includes(key)) continue
    const neutral = Object.hasOwn(unsupported, key) ? unsupported[key] : undefined
    if (neutral !== undefined) {
      if (typeof neutral === "function" ? neutral(value) : neutral.includes(value)) continue
      return badRequest(`${key} is not supported by this server; leave it out`, key, "unsupported_parameter")
    }
    if (harmless.includes(key)) continue
    // A key that is almost the name of a setting is an error, because ignoring it would silently change the answer. Any other
    // unknown key may be meant for another server.
    const near = key.length > longestName ? undefined : closest(key, known)
    if (near !== undefined) return badRequest(`unknown key "${key}"; did you mean "${near}"?`, key, "unknown_parameter")
  }
  return undefined
}

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** Formats the path of a key as clients write it: `messages[0].role`. */
const spelled = (path: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }>): string =>
  path
    .map((part) => (typeof part === "object" ? part.key : part))
    .map((key, index) => (typeof key === "number" ? `[${key}]` : index === 0 ? String(key) : `.${String(key)}`))
    .join("")

/**
 * Makes a function that decodes a body with its Schema. It fails with an error that names the first wrong key. `inside` is the
 * key of the request that has the body, if it is not the whole request.
 */
export const decoder = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
  inside?: string,
): ((body: unknown) => Effect.Effect<S["Type"], ApiError>) => {
  const placed = ({ message, param, code }: ApiError): ApiError => {
    if (inside === undefined) return badRequest(message, param, code)
    const place = param === null ? inside : `${inside}.${param}`
    return badRequest(
      param !== null && message.startsWith(param) ? `${inside}.${message}` : `${place}: ${message}`,
      place,
      code,
    )
  }
  const decode = Schema.decodeUnknownEffect(schema)
  const fields = "fields" in schema && isPlain(schema.fields) ? Object.keys(schema.fields) : []
  return (body) => {
    if (!isPlain(body)) return Effect.fail(badRequest("expected a JSON object as the body"))
    const problem = fields.length === 0 ? undefined : problemOf(body, fields)
    if (problem !== undefined) return Effect.fail(placed(problem))
    return Effect.mapError(decode(body), ({ issue }) => {
      const [{ message, path = [] }] = issuesOf(issue).issues
      const param = spelled(path)
      const expected = message.charAt(0).toLowerCase() + message.slice(1)
      return placed(badRequest(`${param === "" ? "body" : param}: ${expected}`, param === "" ? null : param))
    })
  }
}
