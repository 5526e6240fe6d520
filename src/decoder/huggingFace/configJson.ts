/**
 * Reads the keys of `config.json` that the families of models share, in the spelling of transformers 5 (`rope_parameters`,
 * `dtype`) or of older versions (`rope_theta` and `rope_scaling`, `torch_dtype`).
 */
import { Effect, Schema } from "effect"
import { ConfigError, display } from "../../base/config/Config.ts"
import { bounded, naturalInt, positive, positiveInt } from "../../base/config/fields.ts"
import type { Plain } from "../../base/config/plain.ts"
import type { Rope, RopeScaling } from "../networks/DecoderConfig.ts"

const maybe = <S extends Schema.Codec<unknown, unknown>>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** One id, or several. */
export const TokenIds = Schema.Union([naturalInt, Schema.Array(naturalInt)])
export const idsOf = (ids: typeof TokenIds.Type | null | undefined): ReadonlyArray<number> =>
  typeof ids === "number" ? [ids] : (ids ?? [])

const ropeKeys = {
  rope_type: maybe(Schema.String),
  /** The name of `rope_type` in older files. */
  type: maybe(Schema.String),
  rope_theta: maybe(positive),
  factor: maybe(positive),
  low_freq_factor: maybe(positive),
  high_freq_factor: maybe(positive),
  original_max_position_embeddings: maybe(positiveInt),
  partial_rotary_factor: maybe(positive),
}
const RopeKeys = Schema.Struct(ropeKeys)
type RopeKeys = typeof RopeKeys.Type

const RopeParameters = Schema.Struct({
  ...ropeKeys,
  /** Gemma 3 has rotary embeddings for each type of layers. */
  full_attention: maybe(RopeKeys),
  sliding_attention: maybe(RopeKeys),
})

export const ConfigJson = Schema.Struct({
  model_type: Schema.String,
  vocab_size: positiveInt,
  hidden_size: positiveInt,
  intermediate_size: positiveInt,
  num_hidden_layers: bounded("modelLayers"),
  num_attention_heads: positiveInt,
  num_key_value_heads: maybe(positiveInt),
  head_dim: maybe(positiveInt),
  hidden_act: maybe(Schema.String),
  hidden_activation: maybe(Schema.String),
  max_position_embeddings: maybe(positiveInt),
  rms_norm_eps: maybe(positive),
  rope_theta: maybe(positive),
  rope_local_base_freq: maybe(positive),
  rope_scaling: maybe(RopeKeys),
  rope_parameters: maybe(RopeParameters),
  partial_rotary_factor: maybe(positive),
  attention_bias: maybe(Schema.Boolean),
  mlp_bias: maybe(Schema.Boolean),
  tie_word_embeddings: maybe(Schema.Boolean),
  use_sliding_window: maybe(Schema.Boolean),
  sliding_window: maybe(positiveInt),
  sliding_window_pattern: maybe(positiveInt),
  _sliding_window_pattern: maybe(positiveInt),
  max_window_layers: maybe(naturalInt),
  layer_types: maybe(Schema.Array(Schema.String)),
  no_rope_layers: maybe(Schema.Array(Schema.Literals([0, 1]))),
  no_rope_layer_interval: maybe(positiveInt),
  query_pre_attn_scalar: maybe(positive),
  attn_logit_softcapping: maybe(positive),
  final_logit_softcapping: maybe(positive),
  moe_intermediate_size: maybe(positiveInt),
  num_experts: maybe(positiveInt),
  /** The name of `num_experts` in newer files. */
  num_local_experts: maybe(positiveInt),
  num_experts_per_tok: maybe(positiveInt),
  norm_topk_prob: maybe(Schema.Boolean),
  quantization_config: maybe(Schema.Unknown),
  dtype: maybe(Schema.String),
  torch_dtype: maybe(Schema.String),
  bos_token_id: maybe(TokenIds),
  eos_token_id: maybe(TokenIds),
  pad_token_id: maybe(naturalInt),
})
export type ConfigJson = typeof ConfigJson.Type

/** Makes the error of a key whose value is not supported. */
export const unexpected = (path: string, key: string, expected: ReadonlyArray<string>, found: unknown): ConfigError =>
  ConfigError.at({ source: path }, key, `expected ${expected.join(" or ")}, found ${display(found)}`)

interface RopeDefaults {
  readonly theta: number
  readonly maxPositions: number
}

/** Returns the base and the scaling of the rotary embeddings, from the new or the old keys. */
export const ropeOf = (json: ConfigJson, path: string, defaults: RopeDefaults): Effect.Effect<Rope, ConfigError> =>
  json.rope_parameters === undefined || json.rope_parameters === null
    ? ropeIn(json.rope_scaling ?? {}, { key: "rope_scaling", json, path, defaults })
    : ropeIn(json.rope_parameters, { key: "rope_parameters", json, path, defaults })

/** Returns the rotary embeddings of the layers of Gemma 3: those that attend to all tokens, and those with a window. */
export const ropesOfTypes = Effect.fnUntraced(function* (
  json: ConfigJson,
  path: string,
  defaults: { readonly full: RopeDefaults; readonly sliding: RopeDefaults },
): Effect.fn.Return<{ readonly full: Rope; readonly sliding: Rope }, ConfigError> {
  const { rope_theta: _, ...rest } = json
  const place = (key: string) => ({ key, json: rest, path })
  const { full_attention: full, sliding_attention: sliding } = json.rope_parameters ?? {}
  return {
    full: yield* ropeIn(full ?? json.rope_scaling ?? {}, {
      ...place(full === undefined || full === null ? "rope_scaling" : "rope_parameters.full_attention"),
      defaults: { ...defaults.full, theta: json.rope_theta ?? defaults.full.theta },
    }),
    sliding: yield* ropeIn(sliding ?? {}, {
      ...place("rope_parameters.sliding_attention"),
      defaults: { ...defaults.sliding, theta: json.rope_local_base_freq ?? defaults.sliding.theta },
    }),
  }
})

interface RopePlace {
  readonly key: string
  readonly json: ConfigJson
  readonly path: string
  readonly defaults: RopeDefaults
}

const ropeIn = Effect.fnUntraced(function* (rope: RopeKeys, place: RopePlace): Effect.fn.Return<Rope, ConfigError> {
  const { key, json, path, defaults } = place
  const partial = rope.partial_rotary_factor ?? json.partial_rotary_factor ?? 1
  if (partial !== 1) return yield* unexpected(path, `${key}.partial_rotary_factor`, ["1"], partial)
  return {
    theta: rope.rope_theta ?? json.rope_theta ?? defaults.theta,
    scaling: yield* scalingOf(rope, place),
  }
})

const scalingOf = Effect.fnUntraced(function* (
  rope: RopeKeys,
  { key, json, path, defaults }: RopePlace,
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
          rope.original_max_position_embeddings ?? json.max_position_embeddings ?? defaults.maxPositions,
      }
    }
    default:
      return yield* unexpected(path, `${key}.rope_type`, ["default", "linear", "llama3"], type)
  }
})

/** Makes the keys of rotary embeddings without their base. */
export const encodeScaling = (scaling: RopeScaling | null): Plain => {
  if (scaling === null) return { rope_type: "default" }
  if (scaling._tag === "linear") return { rope_type: "linear", factor: scaling.factor }
  return {
    rope_type: "llama3",
    factor: scaling.factor,
    low_freq_factor: scaling.lowFrequencyFactor,
    high_freq_factor: scaling.highFrequencyFactor,
    original_max_position_embeddings: scaling.originalMaxPositions,
  }
}

/** Makes the keys of rotary embeddings that are the same in all layers. */
export const encodeRope = ({ theta, scaling }: Rope): Plain => ({
  // Transformers 5 reads `rope_parameters`; older versions and most other programs read the other two.
  rope_theta: theta,
  rope_scaling: scaling === null ? null : encodeScaling(scaling),
  rope_parameters: { ...encodeScaling(scaling), rope_theta: theta },
})
