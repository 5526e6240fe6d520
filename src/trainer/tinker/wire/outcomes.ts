/** Declares the outcomes of requests that take long, which the server encodes and the client decodes. */
import { Schema } from "effect"

/** Numbers of an output of a loss, one for each token of an example. */
const LossTensor = Schema.Struct({
  data: Schema.Array(Schema.Number),
  dtype: Schema.Literal("float32"),
  shape: Schema.Array(Schema.Int),
})

export const LossOutput = Schema.Struct({
  loss_fn_output_type: Schema.String,
  loss_fn_outputs: Schema.Array(Schema.Record(Schema.String, LossTensor)),
  metrics: Schema.Record(Schema.String, Schema.Number),
})
export type LossOutput = typeof LossOutput.Type

export const SampleOutput = Schema.Struct({
  type: Schema.Literal("sample"),
  sequences: Schema.Array(
    Schema.Struct({
      stop_reason: Schema.Literals(["stop", "length"]),
      tokens: Schema.Array(Schema.Int),
      logprobs: Schema.Array(Schema.Number),
    }),
  ),
  /** The log-probability of each token of the prompt; null for the first one. */
  prompt_logprobs: Schema.NullOr(Schema.Array(Schema.NullOr(Schema.Number))),
  /** The likeliest tokens at each place of the prompt, with their log-probabilities; null for the first place. */
  topk_prompt_logprobs: Schema.NullOr(
    Schema.Array(Schema.NullOr(Schema.Array(Schema.Tuple([Schema.Int, Schema.Number])))),
  ),
})
export type SampleOutput = typeof SampleOutput.Type

/** The outcome of a request that takes long. */
export const Outcome = Schema.Union([
  Schema.Struct({ _tag: Schema.Literal("Loss"), value: LossOutput }),
  Schema.Struct({ _tag: Schema.Literal("Sample"), value: SampleOutput }),
  Schema.Struct({ _tag: Schema.Literal("Other"), value: Schema.Record(Schema.String, Schema.Unknown) }),
  Schema.Struct({
    _tag: Schema.Literal("Failed"),
    error: Schema.String,
    /** Whether the client or the server caused the failure. */
    category: Schema.Literals(["user", "server"]),
  }),
])
export type Outcome = typeof Outcome.Type
