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

/** The sizes and options of a decoder transformer, with the architecture of Llama or Qwen2. */
export interface DecoderConfig {
  readonly architecture: "llama" | "qwen2"
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
}

const size = bounded("modelUnits")

/** The largest number of weights in a matrix, because the addresses of a program have 32 bits. */
const mostWeights = 2 ** 30

/** Checks conditions on several fields of a config together. Each problem names the key that a person would change. */
const together = Schema.makeFilter((config: DecoderConfig) => {
  const { heads, keyValueHeads, headDim, rope, vocabSize, hiddenSize, intermediateSize } = config
  const { scaling } = rope
  const widest = Math.max(vocabSize, intermediateSize, heads * headDim)
  const unless = (holds: boolean, path: ReadonlyArray<string>, issue: string) => (holds ? [] : [{ path, issue }])
  return [
    ...unless(heads % keyValueHeads === 0, ["keyValueHeads"], `Expected a divisor of the number of heads, ${heads}`),
    ...unless(headDim % 2 === 0, ["headDim"], "Expected an even number, as numbers rotate in pairs"),
    ...unless(
      widest * hiddenSize <= mostWeights,
      ["hiddenSize"],
      `Expected at most ${Math.floor(mostWeights / widest)}, as a matrix of ${widest} rows has at most 2^30 weights`,
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

/** The Schema of `DecoderConfig`. All graphs of this folder can be built from a value that it accepts. */
export const DecoderConfig = Schema.Struct({
  architecture: Schema.Literals(["llama", "qwen2"]),
  vocabSize: size,
  hiddenSize: size,
  intermediateSize: size,
  layers: bounded("modelLayers"),
  heads: bounded("heads"),
  keyValueHeads: bounded("heads"),
  headDim: intBetween(2, 65_536),
  maxPositions: bounded("count"),
  rmsNormEpsilon: positive,
  rope: Schema.Struct({ theta: positive, scaling: Schema.NullOr(RopeScaling) }),
  biases: Schema.Struct({ qkv: Schema.Boolean, output: Schema.Boolean, mlp: Schema.Boolean }),
  tiedEmbeddings: Schema.Boolean,
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
