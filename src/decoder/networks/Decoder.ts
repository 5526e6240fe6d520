/**
 * Builds decoder transformers (the families that `architectures` lists) as graphs: the forward pass over packed sequences
 * for training, a step with a key-value cache for generating, and adapters (LoRA) for many runs in one graph. Weights
 * have the names and shapes of Hugging Face's files.
 *
 * @example
 * ```ts
 * import { Decoder, Rng } from "effect-rl"
 *
 * const config: Decoder.DecoderConfig = {
 *   architecture: "llama",
 *   vocabSize: 384,
 *   hiddenSize: 64,
 *   intermediateSize: 112,
 *   layers: 2,
 *   heads: 4,
 *   keyValueHeads: 2,
 *   headDim: 16,
 *   maxPositions: 256,
 *   rmsNormEpsilon: 1e-5,
 *   rope: { theta: 10_000, scaling: null },
 *   biases: { qkv: false, output: false, mlp: false },
 *   tiedEmbeddings: false,
 * }
 * const parameters = Decoder.parametersOf(config)
 * const values = Decoder.initialValues(parameters, Rng.stream(1, "weights"))
 * const inputs = Decoder.packedInputs(4, 128)
 * const logits = Decoder.packedLogits(config, Decoder.statesOf(parameters), inputs) // [4, 128, 384]
 * ```
 */
export * from "./adapters.ts"
export * from "./cachedStep.ts"
export * from "./DecoderConfig.ts"
export { type Adapt, logitsOf } from "./layers.ts"
export * from "./logProbabilities.ts"
export * from "./MultiLoRA.ts"
export * from "./rowStep.ts"
export * from "./selectedAdapters.ts"
export { hiddenStates, packedInputs, type PackedInputs, packedLogits } from "./packed.ts"
export {
  headOf,
  initialValues,
  parametersOf,
  type Projection,
  projectionName,
  projections,
  projectionsOf,
  projectionSizes,
  statesOf,
  usualInitializerRange,
} from "./parameters.ts"
export { rotaryFrequencies } from "./rope.ts"
