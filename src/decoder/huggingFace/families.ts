/**
 * Lists the families of models: what the keys of each family's `config.json` mean for the decoder, with the defaults of
 * transformers for keys that a file lacks, and the keys that express it.
 */
import { Effect } from "effect"
import { ConfigError } from "../../base/config/Config.ts"
import type { Plain } from "../../base/config/plain.ts"
import type { Architecture, DecoderConfig, LayerAttention, Rope } from "../networks/DecoderConfig.ts"
import { type ConfigJson, encodeRope, encodeScaling, ropesOfTypes, unexpected } from "./configJson.ts"

/** How a family's decoder differs from Llama's: the optional keys of the decoder's config. */
type Variant = Partial<DecoderConfig>

export interface Family {
  /** The name of its class in transformers, which `architectures` lists. */
  readonly className: string
  readonly defaults: {
    readonly maxPositions: number
    readonly epsilon?: number
    readonly theta?: number
    readonly tied?: boolean
    /** The size of a head if the file lacks `head_dim`; hidden_size / num_attention_heads by default. */
    readonly headDim?: number
    /** The number of key heads if the file lacks it; num_attention_heads by default. */
    readonly keyValueHeads?: number
  }
  /** The linear layers that have a bias if the file's `attention_bias` or `mlp_bias` is true, or always. */
  readonly biases: {
    readonly attention: "never" | "attention_bias" | "query, key, value" | "always"
    readonly mlp: "never" | "mlp_bias" | "always"
  }
  /** The values of keys that are supported; null and a missing key always are. */
  readonly only: Readonly<Record<string, ReadonlyArray<unknown>>>
  /** Returns the differences from Llama. `rope` are the rotary embeddings that the file's keys describe for all layers. */
  readonly variant: (json: ConfigJson, at: { path: string; rope: Rope }) => Effect.Effect<Variant, ConfigError>
  /** Makes the keys of `config.json` that other families do not have, or name differently. */
  readonly encode: (decoder: DecoderConfig) => Plain
}

const sameAsLlama = () => Effect.succeed({})
const silu = { hidden_act: ["silu"] }
const fullLayers = { use_sliding_window: [false], layer_types: ["full_attention"] }
const gelu = { hidden_activation: ["gelu_pytorch_tanh"], use_bidirectional_attention: [false] }

const full = "full_attention"
const sliding = "sliding_attention"

/** Reads the type of each layer: whether it attends to all tokens or to those in a window. */
const layerTypesOf = Effect.fnUntraced(function* (
  json: ConfigJson,
  path: string,
  { usual, window }: { readonly usual: (layer: number) => boolean; readonly window: number | null },
) {
  const count = json.num_hidden_layers
  const types =
    json.layer_types ?? Array.from({ length: count }, (_, layer) => (window !== null && usual(layer) ? sliding : full))
  if (types.length !== count) {
    const problem = `expected a type for each of the ${count} layers, found ${types.length}`
    return yield* ConfigError.at({ source: path }, "layer_types", problem)
  }
  const other = types.find((type) => type !== full && type !== sliding)
  if (other !== undefined) return yield* unexpected(path, "layer_types", [full, sliding], other)
  if (window === null && types.includes(sliding)) {
    const problem = `expected the size of the window of the layers with ${sliding}, found none`
    return yield* ConfigError.at({ source: path }, "sliding_window", problem)
  }
  return types
})

const attentionWith = (types: ReadonlyArray<string>, window: number | null, rope: Rope): Variant =>
  types.every((type) => type === full)
    ? {}
    : { attention: types.map((type) => ({ window: type === sliding ? window : null, rope })) }

/** Gives all layers a window of the same size. */
const oneWindow = (json: ConfigJson, window: number | null, rope: Rope): Variant =>
  window === null ? {} : { attention: Array.from({ length: json.num_hidden_layers }, () => ({ window, rope })) }

const attentionsOf = ({ attention, layers, rope }: DecoderConfig): ReadonlyArray<LayerAttention> =>
  attention ?? Array.from({ length: layers }, () => ({ window: null, rope }))

/** Returns the size of the windows, which is the same in all layers that have one; null if none has. */
const windowOf = (decoder: DecoderConfig): number | null =>
  attentionsOf(decoder).find(({ window }) => window !== null)?.window ?? null

const encodeTypes = (decoder: DecoderConfig): Plain => ({
  sliding_window: windowOf(decoder),
  layer_types: attentionsOf(decoder).map(({ window }) => (window === null ? full : sliding)),
})

const biasKeys = ({ biases }: DecoderConfig): Plain => ({ attention_bias: biases.qkv })

const qwen3Window = ({ use_sliding_window, sliding_window }: ConfigJson): number | null => {
  if (use_sliding_window !== true) return null
  return sliding_window === undefined ? 4096 : sliding_window
}

/** Returns the differences of both generations of Gemma. `caps` has the caps of a file without these keys. */
const gemma = (json: ConfigJson, caps: { readonly score: number | null; readonly logit: number | null }): Variant => {
  const scoreCap = json.attn_logit_softcapping === undefined ? caps.score : json.attn_logit_softcapping
  const logitCap = json.final_logit_softcapping === undefined ? caps.logit : json.final_logit_softcapping
  return {
    norm: "rmsPlusOne",
    normPlaces: "both",
    activation: "gelu",
    embeddingScale: Math.fround(Math.sqrt(json.hidden_size)),
    scoreScale: (json.query_pre_attn_scalar ?? 256) ** -0.5,
    ...(scoreCap === null ? {} : { scoreCap }),
    ...(logitCap === null ? {} : { logitCap }),
  }
}

const encodeGemma = (decoder: DecoderConfig): Plain => ({
  ...biasKeys(decoder),
  hidden_act: "gelu_pytorch_tanh",
  hidden_activation: "gelu_pytorch_tanh",
  query_pre_attn_scalar: nearInteger((decoder.scoreScale ?? 1) ** -2),
  attn_logit_softcapping: decoder.scoreCap ?? null,
  final_logit_softcapping: decoder.logitCap ?? null,
  ...encodeTypes(decoder),
})

/** Undoes the rounding of a number that was an integer before. */
const nearInteger = (number: number): number =>
  Math.abs(number - Math.round(number)) < 1e-9 * number ? Math.round(number) : number

export const families: Readonly<Record<Architecture, Family>> = {
  llama: {
    className: "LlamaForCausalLM",
    defaults: { maxPositions: 2048 },
    biases: { attention: "attention_bias", mlp: "mlp_bias" },
    only: { ...silu, ...fullLayers },
    variant: sameAsLlama,
    encode: ({ biases }) => ({ attention_bias: biases.qkv, mlp_bias: biases.mlp }),
  },
  qwen2: {
    className: "Qwen2ForCausalLM",
    defaults: { maxPositions: 32_768 },
    biases: { attention: "query, key, value", mlp: "never" },
    only: { ...silu, ...fullLayers },
    variant: sameAsLlama,
    encode: () => ({ use_sliding_window: false }),
  },
  qwen3: {
    className: "Qwen3ForCausalLM",
    defaults: { maxPositions: 32_768, headDim: 128, keyValueHeads: 32 },
    biases: { attention: "attention_bias", mlp: "never" },
    only: silu,
    variant: Effect.fnUntraced(function* (json, { path, rope }) {
      const window = qwen3Window(json)
      const from = json.max_window_layers ?? 28
      const types = yield* layerTypesOf(json, path, { usual: (layer) => layer >= from, window })
      return { queryKeyNorm: "head", ...attentionWith(types, window, rope) }
    }),
    encode: (decoder) => ({
      ...biasKeys(decoder),
      ...encodeTypes(decoder),
      use_sliding_window: windowOf(decoder) !== null,
    }),
  },
  qwen3_moe: {
    className: "Qwen3MoeForCausalLM",
    defaults: { maxPositions: 32_768, keyValueHeads: 4 },
    biases: { attention: "attention_bias", mlp: "never" },
    only: { ...silu, decoder_sparse_step: [1], mlp_only_layers: [] },
    variant: (json, { rope }) =>
      Effect.succeed({
        queryKeyNorm: "head",
        experts: {
          count: json.num_experts ?? json.num_local_experts ?? 128,
          perToken: json.num_experts_per_tok ?? 8,
          units: json.moe_intermediate_size ?? 768,
          normalised: json.norm_topk_prob ?? false,
        },
        ...oneWindow(json, qwen3Window(json), rope),
      }),
    encode: (decoder) => ({
      ...biasKeys(decoder),
      sliding_window: windowOf(decoder),
      use_sliding_window: windowOf(decoder) !== null,
      num_experts: decoder.experts?.count,
      num_local_experts: decoder.experts?.count,
      num_experts_per_tok: decoder.experts?.perToken,
      moe_intermediate_size: decoder.experts?.units,
      norm_topk_prob: decoder.experts?.normalised,
      decoder_sparse_step: 1,
      mlp_only_layers: [],
    }),
  },
  mistral: {
    className: "MistralForCausalLM",
    defaults: { maxPositions: 131_072, keyValueHeads: 8 },
    biases: { attention: "never", mlp: "never" },
    only: silu,
    variant: (json, { rope }) =>
      Effect.succeed(oneWindow(json, json.sliding_window === undefined ? 4096 : json.sliding_window, rope)),
    encode: (decoder) => ({ sliding_window: windowOf(decoder) }),
  },
  smollm3: {
    className: "SmolLM3ForCausalLM",
    defaults: { maxPositions: 32_768, theta: 2_000_000, tied: true, keyValueHeads: 4 },
    biases: { attention: "attention_bias", mlp: "mlp_bias" },
    only: silu,
    variant: Effect.fnUntraced(function* (json, { path, rope }) {
      const count = json.num_hidden_layers
      const interval = json.no_rope_layer_interval ?? 4
      const turned =
        json.no_rope_layers ?? Array.from({ length: count }, (_, layer) => ((layer + 1) % interval === 0 ? 0 : 1))
      if (turned.length !== count) {
        const problem = `expected 0 or 1 for each of the ${count} layers, found ${turned.length} numbers`
        return yield* ConfigError.at({ source: path }, "no_rope_layers", problem)
      }
      const window = json.use_sliding_window === true ? (json.sliding_window ?? null) : null
      const types = yield* layerTypesOf(json, path, { usual: (layer) => turned[layer] === 0, window })
      const attention = types.map((type, layer) => ({
        window: type === sliding ? window : null,
        rope: turned[layer] === 1 ? rope : null,
      }))
      return { attention }
    }),
    encode: (decoder) => ({
      ...biasKeys(decoder),
      mlp_bias: decoder.biases.mlp,
      no_rope_layers: attentionsOf(decoder).map(({ rope }) => (rope === null ? 0 : 1)),
      ...encodeTypes(decoder),
      use_sliding_window: windowOf(decoder) !== null,
    }),
  },
  olmo2: {
    className: "Olmo2ForCausalLM",
    defaults: { maxPositions: 2048, epsilon: 1e-5 },
    biases: { attention: "attention_bias", mlp: "never" },
    only: silu,
    variant: () => Effect.succeed({ normPlaces: "after", queryKeyNorm: "all" }),
    encode: biasKeys,
  },
  phi3: {
    className: "Phi3ForCausalLM",
    defaults: { maxPositions: 4096, epsilon: 1e-5 },
    biases: { attention: "never", mlp: "never" },
    only: silu,
    variant: (json, { rope }) => Effect.succeed(oneWindow(json, json.sliding_window ?? null, rope)),
    encode: (decoder) => ({ sliding_window: windowOf(decoder) }),
  },
  gemma2: {
    className: "Gemma2ForCausalLM",
    defaults: { maxPositions: 8192, tied: true, headDim: 256, keyValueHeads: 4 },
    biases: { attention: "attention_bias", mlp: "never" },
    only: gelu,
    variant: Effect.fnUntraced(function* (json, { path, rope }) {
      const window = json.sliding_window === undefined ? 4096 : json.sliding_window
      const types = yield* layerTypesOf(json, path, { usual: (layer) => layer % 2 === 0, window })
      return { ...gemma(json, { score: 50, logit: 30 }), ...attentionWith(types, window, rope) }
    }),
    encode: encodeGemma,
  },
  gemma3_text: {
    className: "Gemma3ForCausalLM",
    defaults: { maxPositions: 131_072, theta: 1_000_000, tied: true, headDim: 256, keyValueHeads: 4 },
    biases: { attention: "attention_bias", mlp: "never" },
    only: gelu,
    variant: Effect.fnUntraced(function* (json, { path }) {
      const window = json.sliding_window === undefined ? 4096 : json.sliding_window
      const pattern = json.sliding_window_pattern ?? json._sliding_window_pattern ?? 6
      const types = yield* layerTypesOf(json, path, { usual: (layer) => (layer + 1) % pattern !== 0, window })
      const maxPositions = 131_072
      const ropes = yield* ropesOfTypes(json, path, {
        full: { theta: 1_000_000, maxPositions },
        sliding: { theta: 10_000, maxPositions },
      })
      const attention = types.map((type) =>
        type === sliding ? { window, rope: ropes.sliding } : { window: null, rope: ropes.full },
      )
      return { ...gemma(json, { score: null, logit: null }), queryKeyNorm: "head", rope: ropes.full, attention }
    }),
    encode: (decoder) => {
      const keys = ({ theta, scaling }: Rope): Plain => ({ ...encodeScaling(scaling), rope_theta: theta })
      const local = attentionsOf(decoder).find(({ window }) => window !== null)?.rope ?? decoder.rope
      return {
        ...encodeGemma(decoder),
        ...encodeRope(decoder.rope),
        rope_local_base_freq: local.theta,
        rope_parameters: { full_attention: keys(decoder.rope), sliding_attention: keys(local) },
      }
    },
  },
  gpt2: {
    className: "GPT2LMHeadModel",
    defaults: { maxPositions: 1024, epsilon: 1e-5, tied: true },
    biases: { attention: "always", mlp: "always" },
    only: {
      activation_function: ["gelu_new", "gelu_pytorch_tanh"],
      scale_attn_weights: [true],
      scale_attn_by_inverse_layer_idx: [false],
      add_cross_attention: [false],
    },
    variant: (json) =>
      Effect.succeed({
        norm: "layer",
        learnedPositions: true,
        activation: "gelu",
        gated: false,
        attention: Array.from({ length: json.num_hidden_layers }, () => ({ window: null, rope: null })),
      }),
    encode: (decoder) => ({
      n_embd: decoder.hiddenSize,
      n_inner: decoder.intermediateSize,
      n_layer: decoder.layers,
      n_head: decoder.heads,
      n_positions: decoder.maxPositions,
      layer_norm_epsilon: decoder.rmsNormEpsilon,
      activation_function: "gelu_new",
    }),
  },
}
