/**
 * Defines the parts of a log of Inspect (version 2 of its format) that we read, with the forms that older versions wrote. Everything
 * that may be missing is optional, and other keys are ignored.
 */
import { Schema } from "effect"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Metadata = Schema.Record(Schema.String, Schema.Unknown)

/** A text, or parts, of which only those with `text` are texts. Parts of the type `reasoning` are hidden. */
const InspectContent = Schema.Union([
  Schema.String,
  Schema.Array(Schema.Struct({ type: Schema.String, text: optional(Schema.String) })),
])
export type InspectContent = typeof InspectContent.Type

export const InspectMessage = Schema.Struct({
  role: Schema.Literals(["system", "user", "assistant", "tool"]),
  content: InspectContent,
  source: optional(Schema.String),
  tool_calls: optional(
    Schema.Array(
      Schema.Struct({
        id: Schema.String,
        function: Schema.String,
        arguments: Metadata,
        /** The problem, if the model's text of the arguments was no JSON. */
        parse_error: optional(Schema.String),
      }),
    ),
  ),
  /** The call that the message of a tool answers; older user messages have a list. */
  tool_call_id: optional(Schema.Union([Schema.String, Schema.Array(Schema.String)])),
  function: optional(Schema.String),
  error: optional(Schema.Struct({ message: Schema.String })),
  model: optional(Schema.String),
})
export type InspectMessage = typeof InspectMessage.Type

const InspectUsage = Schema.Struct({
  input_tokens: optional(Schema.Int),
  output_tokens: optional(Schema.Int),
  input_tokens_cache_read: optional(Schema.Int),
  input_tokens_cache_write: optional(Schema.Int),
  reasoning_tokens: optional(Schema.Int),
})
export type InspectUsage = typeof InspectUsage.Type

const LogProbabilities = Schema.Struct({
  content: Schema.Array(Schema.Struct({ token: Schema.String, logprob: Schema.NullOr(Schema.Finite) })),
})

export const InspectOutput = Schema.Struct({
  model: optional(Schema.String),
  choices: optional(
    Schema.Array(Schema.Struct({ stop_reason: optional(Schema.String), logprobs: optional(LogProbabilities) })),
  ),
  usage: optional(InspectUsage),
  metadata: optional(Metadata),
})
export type InspectOutput = typeof InspectOutput.Type

/** A call of a model, among the events of a sample. */
export const InspectModelEvent = Schema.Struct({ event: Schema.Literal("model"), output: InspectOutput })

const InspectScore = Schema.Struct({
  value: Schema.Unknown,
  answer: optional(Schema.String),
  explanation: optional(Schema.String),
})
export type InspectScore = typeof InspectScore.Type

export const InspectSample = Schema.Struct({
  id: Schema.Union([Schema.String, Schema.Finite]),
  epoch: Schema.Int,
  input: Schema.Union([Schema.String, Schema.Array(InspectMessage)]),
  target: Schema.Union([Schema.String, Schema.Array(Schema.String)]),
  messages: optional(Schema.Array(InspectMessage)),
  output: optional(InspectOutput),
  scores: optional(Schema.Record(Schema.String, InspectScore)),
  /** The only score, in logs of older versions. */
  score: optional(InspectScore),
  metadata: optional(Metadata),
  events: optional(Schema.Array(Schema.Unknown)),
  model_usage: optional(Schema.Record(Schema.String, InspectUsage)),
  total_time: optional(Schema.Finite),
  error: optional(Schema.Struct({ message: Schema.String })),
  limit: optional(Schema.Struct({ type: Schema.String })),
  /** The texts that messages refer to by `attachment://`. */
  attachments: optional(Schema.Record(Schema.String, Schema.String)),
})
export type InspectSample = typeof InspectSample.Type

/** What a log says about all of its samples. */
export const InspectHeader = Schema.Struct({
  status: Schema.String,
  eval: Schema.Struct({
    task: Schema.String,
    model: Schema.String,
    solver: optional(Schema.String),
    metadata: optional(Metadata),
  }),
})
export type InspectHeader = typeof InspectHeader.Type

/** A whole log in a JSON file. */
export const InspectLog = Schema.Struct({ ...InspectHeader.fields, samples: optional(Schema.Array(InspectSample)) })

/** The key of what we add to the metadata of logs and samples. */
export const ownKey = "effect_rl"
/** The name of the score in logs of older versions that does not say which scorer gave it. */
export const unnamedScore = "score"
