/** Declares the answers of Tinker's protocol besides the outcomes of losses and samples, for the server and the client. */
import { Schema } from "effect"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** The name of something on the server, or its address. Files keep some of them. */
const Name = Schema.String.check(Schema.isMaxLength(1024))

export const SessionCreated = Schema.Struct({
  session_id: Name,
  info_message: optional(Schema.String),
  warning_message: optional(Schema.String),
  error_message: optional(Schema.String),
})

/** The answer to a request that takes long. `retrieve_future` has the outcome by its id. */
export const RequestAccepted = Schema.Struct({ request_id: Name })

export const ModelCreated = Schema.Struct({ model_id: Name })

export const OptimStepDone = Schema.Struct({ metrics: optional(Schema.Record(Schema.String, Schema.Number)) })

/** The outcome of `save_weights`, and of `save_weights_for_sampler` with a path. */
export const WeightsSaved = Schema.Struct({ path: Name })

/** The outcome of `save_weights_for_sampler` with the number of a sampling session. */
export const SamplerSaved = Schema.Struct({ sampling_session_id: Name })

export const SamplerOpened = Schema.Struct({ sampling_session_id: Name })

export const Capabilities = Schema.Struct({
  supported_models: Schema.Array(
    Schema.Struct({ model_name: optional(Name), max_context_length: optional(Schema.Int) }),
  ).check(Schema.isMaxLength(10_000)),
})

/** The outcome of a request that failed: who caused it. Also the body of an answer with another status than 200. */
export const RequestFailed = Schema.Struct({
  error: Schema.Unknown,
  category: optional(Schema.String),
  param: optional(Schema.String),
})
