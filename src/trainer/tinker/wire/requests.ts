/**
 * Declares the JSON requests of Tinker's protocol, which the server decodes and the client encodes. Unknown keys are ignored, as
 * newer clients may send more.
 */
import { Schema } from "effect"
import { naturalInt, positiveInt } from "../../../base/config/fields.ts"
import type { RawDatum } from "../training/Datum.ts"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))
const unit = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
const fromZero = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** The name of a model, a session or a checkpoint. */
const Name = Schema.String.check(Schema.isMaxLength(500))
const seqId = optional(positiveInt)
/** The most characters of a model's metadata as JSON. Lists of models hold all of them. */
const mostMetadata = 65_536
const Metadata = optional(
  Schema.Record(Schema.String, Schema.Unknown).check(
    Schema.makeFilter((metadata) =>
      JSON.stringify(metadata).length <= mostMetadata
        ? undefined
        : `Expected metadata of at most ${mostMetadata} characters`,
    ),
  ),
)

/**
 * The key of a model's metadata that names its adapter. Models with the same seed and other names begin with other adapters, which
 * are those of a trainer's runs with these ids.
 */
export const metadataKey = "effect_rl_run"

/** The longest life of a checkpoint in seconds, about 30 years. */
const longestLife = 1e9
const lifeSeconds = optional(positiveInt.check(Schema.isLessThanOrEqualTo(longestLife)))

/** The most texts and tokens that end a sample, and the most characters of a text, as for OpenAI's protocol. */
const mostStops = 64
const longestStop = 1024
const StopText = Schema.String.check(Schema.isMaxLength(longestStop))

/** A list of numbers. A Schema of an array would take seconds for the millions that a request may have. */
const Numbers = Schema.declare(
  (value): value is ReadonlyArray<number> => Array.isArray(value) && value.every((one) => typeof one === "number"),
  { expected: "a list of numbers" },
)

const Chunk = Schema.Struct({ type: Schema.optionalKey(Schema.String), tokens: optional(Numbers) })
const ModelInput = Schema.Struct({ chunks: Schema.Array(Chunk) })

/** Returns the tokens of an input, or the kind of a chunk that is not text. */
export const tokensOf = ({ chunks }: typeof ModelInput.Type): RawDatum["tokens"] => {
  const other = chunks.find(({ type = "encoded_text" }) => type !== "encoded_text")
  if (other !== undefined) return { unsupported: other.type ?? "a chunk" }
  return chunks.length === 1 ? (chunks[0].tokens ?? []) : chunks.flatMap(({ tokens }) => tokens ?? [])
}

/** Numbers of an example, one for each token. */
export const Tensor = Schema.Struct({
  data: Numbers,
  shape: optional(Schema.Array(naturalInt)),
  sparse_crow_indices: optional(Numbers),
})

export const LossInput = Schema.Struct({
  data: Schema.Array(Schema.Struct({ model_input: ModelInput, loss_fn_inputs: Schema.Record(Schema.String, Tensor) })),
  loss_fn: Schema.String,
  loss_fn_config: optional(Schema.Record(Schema.String, Schema.Number)),
})

export const LossBody = Schema.Struct({
  model_id: Name,
  seq_id: seqId,
  forward_backward_input: optional(LossInput),
  forward_input: optional(LossInput),
})

export const SessionBody = Schema.Struct({ session_id: Name })

export const CreateModel = Schema.Struct({
  session_id: Name,
  model_seq_id: naturalInt,
  base_model: Name,
  user_metadata: Metadata,
  lora_config: optional(
    Schema.Struct({
      rank: positiveInt,
      seed: optional(Schema.Int),
      train_unembed: optional(Schema.Boolean),
      train_mlp: optional(Schema.Boolean),
      train_attn: optional(Schema.Boolean),
    }),
  ),
})

export const ModelBody = Schema.Struct({ model_id: Name, seq_id: seqId })

const largestBeta = 0.999999
const smallestEpsilon = 1e-30

export const OptimStep = Schema.Struct({
  adam_params: Schema.Struct({
    learning_rate: optional(fromZero),
    // In float32, numbers that are closer to 1 would become 1, and the corrections of the moments 0.
    beta1: optional(unit.check(Schema.isLessThanOrEqualTo(largestBeta))),
    beta2: optional(unit.check(Schema.isLessThanOrEqualTo(largestBeta))),
    // With 0, a parameter whose gradients are all zero would become 0 / 0; in float32, very small numbers become 0.
    eps: optional(Schema.Finite.check(Schema.isGreaterThanOrEqualTo(smallestEpsilon))),
    weight_decay: optional(fromZero),
    grad_clip_norm: optional(fromZero),
  }),
})

export const SaveWeights = Schema.Struct({
  path: optional(Name),
  ttl_seconds: lifeSeconds,
  overwrite: optional(Schema.Boolean),
  sampling_session_seq_id: optional(naturalInt),
})

export const LoadWeights = Schema.Struct({ path: Name, optimizer: optional(Schema.Boolean) })

export const CreateSamplingSession = Schema.Struct({
  session_id: Name,
  sampling_session_seq_id: naturalInt,
  base_model: optional(Name),
  model_path: optional(Name),
})

export const Sample = Schema.Struct({
  num_samples: optional(positiveInt),
  prompt: ModelInput,
  sampling_params: Schema.Struct({
    max_tokens: optional(positiveInt),
    seed: optional(Schema.Int),
    stop: optional(
      Schema.Union([StopText, Schema.Array(Schema.Union([StopText, Schema.Int])).check(Schema.isMaxLength(mostStops))]),
    ),
    temperature: optional(fromZero),
    top_k: optional(Schema.Int),
    top_p: optional(unit),
  }),
  base_model: optional(Name),
  model_path: optional(Name),
  sampling_session_id: optional(Name),
  seq_id: optional(naturalInt),
  prompt_logprobs: optional(Schema.Boolean),
  topk_prompt_logprobs: optional(naturalInt),
})

export const RetrieveFuture = Schema.Struct({ request_id: Name })
export const WeightsInfo = Schema.Struct({ tinker_path: Name })
export const TimeToLive = Schema.Struct({ ttl_seconds: lifeSeconds })
