/**
 * Converts the `config.json` of a Hugging Face model to a `DecoderConfig` and back. `families.ts`
 * lists the families of models that it reads. A feature that our decoder does not support is an error that names its key.
 *
 * @example
 * ```ts
 * const { decoder, eosIds } = yield* decodeModelConfig(yield* files.read("llama/config.json"), "llama/config.json")
 * decoder.hiddenSize // 64
 * ```
 */
import { Effect, Schema } from "effect"
import { ConfigError, display } from "../../base/config/Config.ts"
import { positive, positiveInt } from "../../base/config/fields.ts"
import { checkJson, parseJson } from "../../base/config/jsonFile.ts"
import { canonical } from "../../base/text/canonical.ts"
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { modelFiles } from "../../base/formats/modelFiles.ts"
import { architectures, type DecoderConfig, decodeConfig } from "../networks/DecoderConfig.ts"
import { ConfigJson, encodeRope, idsOf, ropeOf, unexpected } from "./configJson.ts"
import { families, type Family } from "./families.ts"

export { idsOf, TokenIds } from "./configJson.ts"

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

/** The keys of GPT-2, whose names differ from those of all other families. */
const Gpt2Json = Schema.Struct({
  n_embd: positiveInt,
  n_layer: positiveInt,
  n_head: positiveInt,
  n_positions: Schema.optionalKey(positiveInt),
  n_inner: Schema.optionalKey(Schema.NullOr(positiveInt)),
  layer_norm_epsilon: Schema.optionalKey(positive),
})

/** Returns the keys of GPT-2 by the names of the other families. */
const gpt2Keys = (parsed: unknown, path: string): Effect.Effect<Plain, ConfigError> =>
  Effect.map(checkJson(Gpt2Json, parsed, path), (json) => ({
    hidden_size: json.n_embd,
    num_hidden_layers: json.n_layer,
    num_attention_heads: json.n_head,
    max_position_embeddings: json.n_positions,
    intermediate_size: json.n_inner ?? 4 * json.n_embd,
    rms_norm_eps: json.layer_norm_epsilon,
  }))

/** Decodes the contents of `config.json`; `path` names the file in errors. */
export const decodeModelConfig = Effect.fnUntraced(function* (
  bytes: Uint8Array,
  path: string,
): Effect.fn.Return<ModelConfig, ConfigError> {
  const parsed = yield* parseJson(bytes, path)
  const named = yield* checkJson(Schema.Struct({ model_type: Schema.String }), parsed, path)
  const architecture = architectures.find((name) => name === named.model_type)
  if (architecture === undefined) return yield* unexpected(path, "model_type", architectures, named.model_type)
  const family = families[architecture]
  const file = isPlain(parsed) ? parsed : {}
  const names = architecture === "gpt2" ? yield* gpt2Keys(parsed, path) : {}
  const json = yield* checkJson(ConfigJson, defined({ ...file, ...names }), path)
  yield* refuseOthers(json, file, family, path)
  const { defaults } = family
  const { heads, keyValueHeads, headDim } = yield* headsOf(json, family, path)
  const theta = defaults.theta ?? 10_000
  const rope = yield* ropeOf(json, path, { theta, maxPositions: defaults.maxPositions })
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
      maxPositions: json.max_position_embeddings ?? defaults.maxPositions,
      rmsNormEpsilon: json.rms_norm_eps ?? defaults.epsilon ?? 1e-6,
      rope,
      biases: biasesOf(json, family),
      tiedEmbeddings: json.tie_word_embeddings ?? defaults.tied ?? false,
      ...(yield* family.variant(json, { path, rope })),
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
    json: file,
  }
})

/** Leaves out keys without a value. */
const defined = (json: Plain): Plain =>
  Object.fromEntries(Object.entries(json).filter(([, value]) => value !== undefined))

/** Returns the numbers of heads and their size. */
const headsOf = Effect.fnUntraced(function* (json: ConfigJson, { defaults }: Family, path: string) {
  const heads = json.num_attention_heads
  const usual = json.num_key_value_heads === undefined ? defaults.keyValueHeads : undefined
  const keyValueHeads = json.num_key_value_heads ?? usual ?? heads
  if (heads % keyValueHeads !== 0) {
    const problem = `expected a divisor of num_attention_heads (${heads}), found ${keyValueHeads}`
    return yield* ConfigError.at({ source: path }, "num_key_value_heads", problem)
  }
  const given = json.head_dim ?? (json.head_dim === undefined ? defaults.headDim : undefined)
  const headDim = given ?? json.hidden_size / heads
  if (!Number.isInteger(headDim) || headDim % 2 !== 0) {
    const problem = `expected heads of an even size, found ${headDim} numbers per head`
    return yield* ConfigError.at({ source: path }, given === undefined ? "hidden_size" : "head_dim", problem)
  }
  return { heads, keyValueHeads, headDim }
})

const biasesOf = (json: ConfigJson, { biases }: Family): DecoderConfig["biases"] => {
  const mlp = biases.mlp === "always" || (biases.mlp === "mlp_bias" && json.mlp_bias === true)
  if (biases.attention === "query, key, value") return { qkv: true, output: false, mlp }
  const attention =
    biases.attention === "always" || (biases.attention === "attention_bias" && json.attention_bias === true)
  return { qkv: attention, output: attention, mlp }
}

/** Fails if the config needs a feature that our decoder does not support. */
const refuseOthers = Effect.fnUntraced(function* (json: ConfigJson, file: Plain, { only }: Family, path: string) {
  if (json.quantization_config !== undefined && json.quantization_config !== null) {
    const problem = "expected weights that are not quantized; save the model in float32, bfloat16 or float16"
    return yield* ConfigError.at({ source: path }, "quantization_config", problem)
  }
  for (const [key, values] of Object.entries(only)) {
    const value = file[key]
    const other = (Array.isArray(value) ? value : [value]).find((one) => !isMissing(one) && !values.includes(one))
    if (other !== undefined)
      return yield* unexpected(path, key, values.length === 0 ? ["[]"] : values.map(String), other)
  }
})

const isMissing = (value: unknown): boolean => value === undefined || value === null

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
  const isLlama = decoder.architecture === "llama"
  if ((isQwen && (!qkv || output || mlp)) || (isLlama && qkv !== output)) {
    const expected = isQwen ? "biases of q, k and v, and no others" : "biases of q, k, v and the output, or of none"
    const problem = `expected ${expected}, as all models of ${decoder.architecture} have; found ${display(decoder.biases)}`
    return yield* ConfigError.at({ source: modelFiles.config }, "biases", problem)
  }
  const family = families[decoder.architecture]
  const type = weightType ?? "float32"
  const encoded: Plain = {
    ...json,
    architectures: [family.className],
    model_type: decoder.architecture,
    vocab_size: decoder.vocabSize,
    ...(decoder.architecture === "gpt2" ? {} : sharedKeys(decoder)),
    ...family.encode(decoder),
    tie_word_embeddings: decoder.tiedEmbeddings,
    torch_dtype: type,
    dtype: type,
    bos_token_id: bosId,
    eos_token_id: eosIds.length === 1 ? eosIds[0] : eosIds.length === 0 ? null : eosIds,
    pad_token_id: padId,
  }
  const again = yield* decodeModelConfig(utf8.encode(JSON.stringify(encoded)), modelFiles.config)
  const lost = Object.entries(decoder).find(
    ([key, value]) => canonical(value) !== canonical(Object.entries(again.decoder).find(([name]) => name === key)?.[1]),
  )
  if (lost === undefined) return encoded
  const problem = `expected a value that models of ${decoder.architecture} can have, found ${display(lost[1])}`
  return yield* ConfigError.at({ source: modelFiles.config }, lost[0], problem)
})

/** Makes the keys that have the same names in all families except GPT-2. */
const sharedKeys = (decoder: DecoderConfig): Plain => ({
  hidden_size: decoder.hiddenSize,
  intermediate_size: decoder.intermediateSize,
  num_hidden_layers: decoder.layers,
  num_attention_heads: decoder.heads,
  num_key_value_heads: decoder.keyValueHeads,
  head_dim: decoder.headDim,
  hidden_act: "silu",
  max_position_embeddings: decoder.maxPositions,
  rms_norm_eps: decoder.rmsNormEpsilon,
  ...encodeRope(decoder.rope),
})
