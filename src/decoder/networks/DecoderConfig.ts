/** Defines the sizes and options of a decoder transformer, and the Schema that checks them. */
import { type Effect, Schema } from "effect"
import { type ConfigError, decode } from "../../base/config/Config.ts"
import { bounded, intBetween, positive } from "../../base/config/fields.ts"

/**
 * Defines how rotary frequencies are changed for sequences that are longer than in the original training. `linear` divides
 * all frequencies by a factor; `llama3` divides low ones, keeps high ones, and interpolates between them.
 */
export const RopeScaling = Schema.Union([
  Schema.TaggedStruct("linear", { factor: positive }),
  Schema.TaggedStruct("llama3", {
    factor: positive,
    lowFrequencyFactor: positive,
    highFrequencyFactor: positive,
    /** The largest number of positions in the original training. */
    originalMaxPositions: bounded("count"),
  }),
])
export type RopeScaling = typeof RopeScaling.Type

/** The families of models, by the names that transformers gives them in `model_type`. */
export const architectures = [
  "llama",
  "qwen2",
  "qwen3",
  "qwen3_moe",
  "mistral",
  "smollm3",
  "olmo2",
  "phi3",
  "gemma2",
  "gemma3_text",
  "gpt2",
] as const
export type Architecture = (typeof architectures)[number]

/** The base of the frequencies of rotary position embeddings, and their scaling. */
export interface Rope {
  readonly theta: number
  readonly scaling: RopeScaling | null
}

/** The attention of one layer. */
export interface LayerAttention {
  /** The number of tokens, with the token itself, to which a token attends; null for all tokens before it. */
  readonly window: number | null
  /** The rotary position embeddings of the layer; null for none. */
  readonly rope: Rope | null
}

/** Feed-forward networks of which a router chooses some for each token. */
export interface Experts {
  /** The number of experts of a layer. */
  readonly count: number
  /** The number of experts that compute a token. */
  readonly perToken: number
  /** The number of units in the hidden layer of an expert. */
  readonly units: number
  /** Whether the shares of the chosen experts are divided by their sum. */
  readonly normalised: boolean
}

/**
 * The sizes and options of a decoder transformer. The optional keys say how it differs from Llama; without them, it has the
 * architecture of Llama or Qwen2.
 */
export interface DecoderConfig {
  readonly architecture: Architecture
  readonly vocabSize: number
  readonly hiddenSize: number
  /** The number of units in the hidden layer of each feed-forward network. */
  readonly intermediateSize: number
  readonly layers: number
  /** The number of query heads. */
  readonly heads: number
  /** The number of heads for keys and values. Each of them serves `heads / keyValueHeads` query heads. */
  readonly keyValueHeads: number
  /** The size of a head, which need not be `hiddenSize / heads`. It is even, because rotary embeddings need pairs. */
  readonly headDim: number
  /** The largest number of positions for which the model was made. Graphs do not check it. */
  readonly maxPositions: number
  readonly rmsNormEpsilon: number
  /** Rotary position embeddings: the base of the frequencies, and their scaling. */
  readonly rope: { readonly theta: number; readonly scaling: RopeScaling | null }
  /**
   * The linear layers that have a bias: the projections to queries, keys and values, the output projection of attention, the
   * MLP's.
   */
  readonly biases: { readonly qkv: boolean; readonly output: boolean; readonly mlp: boolean }
  /** Whether the head that computes logits uses the weights of the token embedding. */
  readonly tiedEmbeddings: boolean
  /**
   * The kind of all norms: `rms`, the default, multiplies by the weight; `rmsPlusOne` by one more than the weight; `layer`
   * also subtracts the mean and adds a bias.
   */
  readonly norm?: "rms" | "rmsPlusOne" | "layer"
  /** The norms of attention and of the feed-forward network: of their inputs (the default), their outputs, or both. */
  readonly normPlaces?: "before" | "after" | "both"
  /** The norms of queries and keys before they rotate: of each head, or of all heads together. By default there are none. */
  readonly queryKeyNorm?: "head" | "all"
  /** The attention of each layer. By default all layers attend to all tokens, with the rotary embeddings of `rope`. */
  readonly attention?: ReadonlyArray<LayerAttention>
  /** The factor of the scores of attention, 1 / √headDim by default. */
  readonly scoreScale?: number
  /** The bound c of the scores of attention, which become c · tanh(score / c); by default there is none. */
  readonly scoreCap?: number
  /** The bound c of the logits, which become c · tanh(logit / c); by default there is none. */
  readonly logitCap?: number
  /** The factor of the token embeddings, 1 by default. */
  readonly embeddingScale?: number
  /** Whether each position has an embedding that is learned and added to the token's. */
  readonly learnedPositions?: boolean
  /** The activation of the feed-forward networks, `silu` by default. `gelu` is its approximation with tanh. */
  readonly activation?: "silu" | "gelu"
  /** Whether the activation of one product multiplies another product, as by default, or only one is computed. */
  readonly gated?: boolean
  /**
   * The type of the projections, the token embedding and the head: `int8` for bytes with a scale for each output, for a model
   * that is not trained as a whole. By default they are 32-bit floats.
   */
  readonly quantization?: "int8"
  /** The experts of each layer, in place of the feed-forward network. */
  readonly experts?: Experts
}

const size = bounded("modelUnits")

/** The largest number of weights in a matrix, because the addresses of a program have 32 bits. */
const mostWeights = 2 ** 30

/** The most experts of all layers together, each with three tensors. The largest published models have about 12,000. */
const mostExperts = 2 ** 16

/** Checks conditions on several fields of a config together. Each problem names the key that a person would change. */
const together = Schema.makeFilter((config: DecoderConfig) => {
  const { heads, keyValueHeads, headDim, rope, vocabSize, hiddenSize, intermediateSize, experts, attention } = config
  const { scaling } = rope
  const units = experts === undefined ? intermediateSize : experts.count * experts.units
  const widest = Math.max(vocabSize, units, heads * headDim)
  const unless = (holds: boolean, path: ReadonlyArray<string>, issue: string) => (holds ? [] : [{ path, issue }])
  return [
    ...unless(heads % keyValueHeads === 0, ["keyValueHeads"], `Expected a divisor of the number of heads, ${heads}`),
    ...unless(headDim % 2 === 0, ["headDim"], "Expected an even number, as numbers rotate in pairs"),
    ...unless(
      widest * hiddenSize <= mostWeights,
      ["hiddenSize"],
      `Expected at most ${Math.floor(mostWeights / widest)}, as a matrix of ${widest} rows has at most 2^30 weights`,
    ),
    ...unless(
      attention === undefined || attention.length === config.layers,
      ["attention"],
      `Expected one element for each of the ${config.layers} layers, found ${attention?.length}`,
    ),
    ...unless(
      experts === undefined || experts.perToken <= experts.count,
      ["experts", "perToken"],
      `Expected at most the number of experts, ${experts?.count}`,
    ),
    ...unless(
      experts === undefined || experts.count * config.layers <= mostExperts,
      ["experts", "count"],
      `Expected at most ${Math.floor(mostExperts / config.layers)}, as ${config.layers} layers have at most ${mostExperts} experts`,
    ),
    ...unless(
      config.learnedPositions !== true || config.maxPositions * hiddenSize <= mostWeights,
      ["maxPositions"],
      `Expected at most ${Math.floor(mostWeights / hiddenSize)}, as the matrix of their embeddings has at most 2^30 weights`,
    ),
    ...(scaling?._tag === "llama3"
      ? unless(
          scaling.lowFrequencyFactor < scaling.highFrequencyFactor,
          ["rope", "scaling", "highFrequencyFactor"],
          `Expected more than the factor of low frequencies, ${scaling.lowFrequencyFactor}`,
        )
      : []),
  ]
})

const RopeSchema = Schema.Struct({ theta: positive, scaling: Schema.NullOr(RopeScaling) })
const key = Schema.optionalKey

/** The Schema of `DecoderConfig`. All graphs of this folder can be built from a value that it accepts. */
export const DecoderConfig = Schema.Struct({
  architecture: Schema.Literals(architectures),
  vocabSize: size,
  hiddenSize: size,
  intermediateSize: size,
  layers: bounded("modelLayers"),
  heads: bounded("heads"),
  keyValueHeads: bounded("heads"),
  headDim: intBetween(2, 65_536),
  maxPositions: bounded("count"),
  rmsNormEpsilon: positive,
  rope: RopeSchema,
  biases: Schema.Struct({ qkv: Schema.Boolean, output: Schema.Boolean, mlp: Schema.Boolean }),
  tiedEmbeddings: Schema.Boolean,
  norm: key(Schema.Literals(["rms", "rmsPlusOne", "layer"])),
  normPlaces: key(Schema.Literals(["before", "after", "both"])),
  queryKeyNorm: key(Schema.Literals(["head", "all"])),
  attention: key(
    Schema.Array(Schema.Struct({ window: Schema.NullOr(bounded("count")), rope: Schema.NullOr(RopeSchema) })),
  ),
  scoreScale: key(positive),
  scoreCap: key(positive),
  logitCap: key(positive),
  embeddingScale: key(positive),
  learnedPositions: key(Schema.Boolean),
  activation: key(Schema.Literals(["silu", "gelu"])),
  gated: key(Schema.Boolean),
  quantization: key(Schema.Literals(["int8"])),
  experts: key(
    Schema.Struct({
      count: bounded("modelUnits"),
      perToken: bounded("modelUnits"),
      units: size,
      normalised: Schema.Boolean,
    }),
  ),
}).check(together)

/**
 * Checks a config. Fails with a `ConfigError` of one line that names `source`, each wrong key and what was expected.
 *
 * @example
 * ```ts
 * Decoder.decodeConfig({ ...decoderConfig, keyValueHeads: 3 }, "config.json")
 * // fails: config.json: key_value_heads: expected a divisor of the number of heads, 4, found 3
 * ```
 */
export const decodeConfig = (value: unknown, source: string): Effect.Effect<DecoderConfig, ConfigError> =>
  decode(DecoderConfig, value, { source })
