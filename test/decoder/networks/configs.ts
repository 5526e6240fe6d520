/** Configs of decoders for tests. */
import type { DecoderConfig } from "../../../src/decoder/networks/Decoder.ts"

/** The config of the fixture's Llama: see `fixture.ts`. */
export const fixtureConfig: DecoderConfig = {
  architecture: "llama",
  vocabSize: 384,
  hiddenSize: 64,
  intermediateSize: 112,
  layers: 2,
  heads: 4,
  keyValueHeads: 2,
  headDim: 16,
  maxPositions: 256,
  rmsNormEpsilon: 1e-5,
  rope: { theta: 10_000, scaling: null },
  biases: { qkv: false, output: false, mlp: false },
  tiedEmbeddings: false,
}

/** The same architecture with as few numbers as possible. */
export const tinyConfig: DecoderConfig = {
  ...fixtureConfig,
  vocabSize: 19,
  hiddenSize: 16,
  intermediateSize: 24,
  heads: 2,
  keyValueHeads: 1,
  headDim: 8,
  maxPositions: 64,
}
