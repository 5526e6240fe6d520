/**
 * Converts the `config.json` of a Hugging Face model to a `DecoderConfig` and back. It reads the architectures `llama` and
 * `qwen2`, with the keys of transformers 5 (`rope_parameters`, `dtype`) or of older versions (`rope_theta` and
 * `rope_scaling`, `torch_dtype`). A feature that our decoder does not support is an error that names its key.
 *
 * @example
 * ```ts
 * const { decoder, eosIds } = yield* decodeModelConfig(yield* files.read("llama/config.json"), "llama/config.json")
 * decoder.hiddenSize // 64
 * ```
 */
import { Effect, Schema } from "effect"
import { ConfigError, display } from "../../base/config/Config.ts"
import { naturalInt, positive, positiveInt } from "../../base/config/fields.ts"
import { checkJson, parseJson } from "../../base/config/jsonFile.ts"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { modelFiles } from "../../base/formats/modelFiles.ts"
import { type DecoderConfig, decodeConfig, type RopeScaling } from "../networks/DecoderConfig.ts"

/** The number types in which weights are stored. In computations they are 32-bit floats. */
const weightTypes = ["float32", "bfloat16", "float16"] as const
export type WeightType = (typeof weightTypes)[number]

/** A model's config: the sizes of its decoder, its special tokens, and the number type of its weights. */
export interface ModelConfig {
  readonly decoder: DecoderConfig
  /** The number type of the weights; null if the file does not name one. */
  readonly weightType: WeightType | null
  readonly bosId: number | null
  /** The ids that end a generation. A generation config may override them. */
  readonly eosIds: ReadonlyArray<number>
  readonly padId: number | null
  /** The content of the file. Keys that we do not use are kept when the model is saved. */
  readonly json: Plain
}

const maybe = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** One id, or several. */
export const TokenIds = Schema.Union([naturalInt, Schema.Array(naturalInt)])
export const idsOf = (ids: typeof TokenIds.Type | null | undefined): ReadonlyArray<number> =>
  typeof ids === "number" ? [ids] : (ids ?? [])

const Rope = Schema.Struct({
  rope_type: maybe(Schema.String),
  /** The name of `rope_type` in older files. */
  type: maybe(Schema.String),
  rope_theta: maybe(positive),
  factor: maybe(positive),
  low_freq_factor: maybe(positive),
  high_freq_factor: maybe(positive),
  original_max_position_embeddings: maybe(positiveInt),
  partial_rotary_factor: maybe(positive),
})
type Rope = typeof Rope.Type

const ConfigJson = Schema.Struct({
  model_type: Schema.String,
  vocab_size: positiveInt,
  hidden_size: positiveInt,
  intermediate_size: positiveInt,
  num_hidden_layers: positiveInt,
  num_attention_heads: positiveInt,
  num_key_value_heads: maybe(positiveInt),
  head_dim: maybe(positiveInt),
  hidden_act: maybe(Schema.String),
  max_position_embeddings: maybe(positiveInt),
  rms_norm_eps: maybe(positive),
  rope_theta: maybe(positive),
  rope_scaling: maybe(Rope),
  rope_parameters: maybe(Rope),
  partial_rotary_factor: maybe(positive),
  attention_bias: maybe(Schema.Boolean),
  mlp_bias: maybe(Schema.Boolean),
  tie_word_embeddings: maybe(Schema.Boolean),
  use_sliding_window: maybe(Schema.Boolean),
  layer_types: maybe(Schema.Array(Schema.String)),
  quantization_config: maybe(Schema.Unknown),
  dtype: maybe(Schema.String),
  torch_dtype: maybe(Schema.String),
  bos_token_id: maybe(TokenIds),
  eos_token_id: maybe(TokenIds),
  pad_token_id: maybe(naturalInt),
})
type ConfigJson = typeof ConfigJson.Type

const architectures = ["llama", "qwen2"] as const

/** The defaults of transformers for keys that a file lacks. */
const defaults = { maxPositions: { llama: 2048, qwen2: 32_768 }, rmsNormEpsilon: 1e-6, theta: 10_000 }

/** Decodes the contents of `config.json`; `path` names the file in errors. */
export const decodeModelConfig = Effect.fnUntraced(function* (
  bytes: Uint8Array,
  path: string,
): Effect.fn.Return<ModelConfig, ConfigError> {
  const parsed = yield* parseJson(bytes, path)
  const named = yield* checkJson(Schema.Struct({ model_type: Schema.String }), parsed, path)
  const architecture = architectures.find((name) => name === named.model_type)
  if (architecture === undefined) return yield* unexpected(path, "model_type", architectures, named.model_type)
  const json = yield* checkJson(ConfigJson, parsed, path)
  yield* refuseOthers(json, path)
  const heads = json.num_attention_heads
  const keyValueHeads = json.num_key_value_heads ?? heads
  if (heads % keyValueHeads !== 0) {
    const problem = `expected a divisor of num_attention_heads (${heads}), found ${keyValueHeads}`
    return yield* ConfigError.at({ source: path }, "num_key_value_heads", problem)
  }
  const headDim = json.head_dim ?? json.hidden_size / heads
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    const key = json.head_dim === undefined || json.head_dim === null ? "hidden_size" : "head_dim"
    const problem = `expected heads of an even size, found ${headDim} numbers per head`
    return yield* ConfigError.at({ source: path }, key, problem)
  }
  const isQwen = architecture === "qwen2"
  const bias = json.attention_bias ?? false
  const decoder = yield* decodeConfig(
    {
      architecture,
      vocabSize: json.vocab_size,
      hiddenSize: json.hidden_size,
      intermediateSize: json.intermediate_size,
      layers: json.num_hidden_layers,
      heads,
      keyValueHeads,
      headDim,
      maxPositions: json.max_position_embeddings ?? defaults.maxPositions[architecture],
      rmsNormEpsilon: json.rms_norm_eps ?? defaults.rmsNormEpsilon,
      rope: yield* ropeOf(json, path),
      biases: { qkv: isQwen || bias, output: !isQwen && bias, mlp: !isQwen && (json.mlp_bias ?? false) },
      tiedEmbeddings: json.tie_word_embeddings ?? false,
    },
    path,
  )
  const type = json.dtype ?? json.torch_dtype ?? null
  return {
    decoder,
    weightType: weightTypes.find((name) => name === type) ?? null,
    bosId: idsOf(json.bos_token_id)[0] ?? null,
    eosIds: idsOf(json.eos_token_id),
    padId: json.pad_token_id ?? null,
    json: isPlain(parsed) ? parsed : {},
  }
})

const unexpected = (path: string, key: string, expected: ReadonlyArray<string>, found: unknown): ConfigError =>
  ConfigError.at({ source: path }, key, `expected ${expected.join(" or ")}, found ${display(found)}`)

/** Fails if the config needs a feature that our decoder does not support. */
const refuseOthers = Effect.fnUntraced(function* (json: ConfigJson, path: string) {
  const activation = json.hidden_act ?? "silu"
  if (activation !== "silu") return yield* unexpected(path, "hidden_act", ["silu"], activation)
  if (json.quantization_config !== undefined && json.quantization_config !== null) {
    const problem = "expected weights that are not quantized; save the model in float32, bfloat16 or float16"
    return yield* ConfigError.at({ source: path }, "quantization_config", problem)
  }
  if (json.use_sliding_window === true) {
    return yield* unexpected(path, "use_sliding_window", ["false"], true)
  }
  const layer = json.layer_types?.find((type) => type !== "full_attention")
  if (layer !== undefined) return yield* unexpected(path, "layer_types", ["full_attention"], layer)
})

/** Returns the base and the scaling of the rotary embeddings, from the new or the old keys. */
const ropeOf = Effect.fnUntraced(function* (json: ConfigJson, path: string) {
  const [key, rope]: readonly [string, Rope] =
    json.rope_parameters === undefined || json.rope_parameters === null
      ? ["rope_scaling", json.rope_scaling ?? {}]
      : ["rope_parameters", json.rope_parameters]
  const partial = rope.partial_rotary_factor ?? json.partial_rotary_factor ?? 1
  if (partial !== 1) return yield* unexpected(path, `${key}.partial_rotary_factor`, ["1"], partial)
  return {
    theta: rope.rope_theta ?? json.rope_theta ?? defaults.theta,
    scaling: yield* scalingOf(rope, key, json, path),
  }
})

const scalingOf = Effect.fnUntraced(function* (
  rope: Rope,
  key: string,
  json: ConfigJson,
  path: string,
): Effect.fn.Return<RopeScaling | null, ConfigError> {
  const number = (name: "factor" | "low_freq_factor" | "high_freq_factor") => {
    const value = rope[name] ?? undefined
    return value === undefined
      ? Effect.fail(ConfigError.at({ source: path }, `${key}.${name}`, "expected a positive number, found nothing"))
      : Effect.succeed(value)
  }
  const type = rope.rope_type ?? rope.type ?? "default"
  switch (type) {
    case "default":
      return null
    case "linear":
      return { _tag: "linear", factor: yield* number("factor") }
    case "llama3": {
      const low = yield* number("low_freq_factor")
      const high = yield* number("high_freq_factor")
      if (low >= high) {
        const problem = `expected more than low_freq_factor (${low}), found ${high}`
        return yield* ConfigError.at({ source: path }, `${key}.high_freq_factor`, problem)
      }
      return {
        _tag: "llama3",
        factor: yield* number("factor"),
        lowFrequencyFactor: low,
        highFrequencyFactor: high,
        originalMaxPositions:
          rope.original_max_position_embeddings ?? json.max_position_embeddings ?? defaults.maxPositions.llama,
      }
    }
    default:
      return yield* unexpected(path, `${key}.rope_type`, ["default", "linear", "llama3"], type)
  }
})

/**
 * Makes a `config.json` that transformers 4 and 5 and servers such as vLLM can read. Unknown keys of the file from which the
 * model was read are kept. Fails for biases that the architecture cannot have.
 */
export const encodeModelConfig = Effect.fnUntraced(function* ({
  decoder,
  weightType,
  bosId,
  eosIds,
  padId,
  json,
}: Omit<ModelConfig, "json"> & { readonly json?: Plain }): Effect.fn.Return<Plain, ConfigError> {
  const isQwen = decoder.architecture === "qwen2"
  const { qkv, output, mlp } = decoder.biases
  if (isQwen ? !qkv || output || mlp : qkv !== output) {
    const expected = isQwen ? "biases of q, k and v, and no others" : "biases of q, k, v and the output, or of none"
    const problem = `expected ${expected}, as all models of ${decoder.architecture} have; found ${display(decoder.biases)}`
    return yield* ConfigError.at({ source: modelFiles.config }, "biases", problem)
  }
  const { theta, scaling } = decoder.rope
  const type = weightType ?? "float32"
  const scaled = scaling === null ? { rope_type: "default" } : encodeScaling(scaling)
  return {
    ...json,
    architectures: [isQwen ? "Qwen2ForCausalLM" : "LlamaForCausalLM"],
    model_type: decoder.architecture,
    vocab_size: decoder.vocabSize,
    hidden_size: decoder.hiddenSize,
    intermediate_size: decoder.intermediateSize,
    num_hidden_layers: decoder.layers,
    num_attention_heads: decoder.heads,
    num_key_value_heads: decoder.keyValueHeads,
    head_dim: decoder.headDim,
    hidden_act: "silu",
    max_position_embeddings: decoder.maxPositions,
    rms_norm_eps: decoder.rmsNormEpsilon,
    // Transformers 5 reads `rope_parameters`; older versions and most other programs read the other two.
    rope_theta: theta,
    rope_scaling: scaling === null ? null : scaled,
    rope_parameters: { ...scaled, rope_theta: theta },
    ...(isQwen ? { use_sliding_window: false } : { attention_bias: qkv, mlp_bias: mlp }),
    tie_word_embeddings: decoder.tiedEmbeddings,
    torch_dtype: type,
    dtype: type,
    bos_token_id: bosId,
    eos_token_id: eosIds.length === 1 ? eosIds[0] : eosIds.length === 0 ? null : eosIds,
    pad_token_id: padId,
  }
})

const encodeScaling = (scaling: RopeScaling): Plain =>
  scaling._tag === "linear"
    ? { rope_type: "linear", factor: scaling.factor }
    : {
        rope_type: "llama3",
        factor: scaling.factor,
        low_freq_factor: scaling.lowFrequencyFactor,
        high_freq_factor: scaling.highFrequencyFactor,
        original_max_position_embeddings: scaling.originalMaxPositions,
      }
