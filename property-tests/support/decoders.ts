/** Draws configs of decoders, their parameters and tokens, for the laws about them. */
import { assert } from "@effect/vitest"
import { Effect, Record } from "effect"
import * as fc from "fast-check"
import type { Program } from "../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../src/tensor/backend/onnx-node.ts"
import * as Wasm from "../../src/tensor/backend/wasm.ts"
import type { NamedArray } from "../../src/tensor/graph/Parameters.ts"
import * as Decoder from "../../src/decoder/networks/Decoder.ts"
import * as Rng from "../../src/base/rng/Rng.ts"

export const backends = { wasm: Wasm.layer, cpu: OnnxNode.layerCpu() }

const scaling = fc.oneof(
  fc.constant(null),
  fc.record({ _tag: fc.constant("linear" as const), factor: fc.constantFrom(2, 4.5) }),
  fc.record({
    _tag: fc.constant("llama3" as const),
    factor: fc.constantFrom(2, 8),
    lowFrequencyFactor: fc.constantFrom(0.5, 1),
    highFrequencyFactor: fc.constantFrom(2, 4),
    originalMaxPositions: fc.constantFrom(16, 64),
  }),
)

/** The largest number of layers that `configs` draws. */
const mostLayers = 2

const ropes = fc.record({ theta: fc.constantFrom(100, 10_000, 500_000), scaling })

/** The options of the families that differ from Llama, each drawn alone. A key that is undefined is left out. */
const variants = fc.record({
  norm: fc.constantFrom(undefined, "rms" as const, "rmsPlusOne" as const, "layer" as const),
  normPlaces: fc.constantFrom(undefined, "before" as const, "after" as const, "both" as const),
  queryKeyNorm: fc.constantFrom(undefined, "head" as const, "all" as const),
  // Windows of one token up to more than any sequence of the laws has, and layers without rotary embeddings.
  attention: fc.option(
    fc.array(fc.record({ window: fc.constantFrom(null, 1, 2, 3, 5, 40), rope: fc.option(ropes) }), {
      minLength: mostLayers,
      maxLength: mostLayers,
    }),
    { nil: undefined },
  ),
  scoreScale: fc.constantFrom(undefined, 0.25, 1),
  scoreCap: fc.constantFrom(undefined, 0.5, 20),
  logitCap: fc.constantFrom(undefined, 1, 30),
  embeddingScale: fc.constantFrom(undefined, 3),
  learnedPositions: fc.constantFrom(undefined, false, true),
  activation: fc.constantFrom(undefined, "silu" as const, "gelu" as const),
  gated: fc.constantFrom(undefined, true, false),
  experts: fc.option(
    fc
      .record({
        count: fc.integer({ min: 1, max: 4 }),
        perToken: fc.integer({ min: 1, max: 4 }),
        units: fc.integer({ min: 1, max: 5 }),
        normalised: fc.boolean(),
      })
      .map((experts) => ({ ...experts, perToken: Math.min(experts.perToken, experts.count) })),
    { nil: undefined },
  ),
})

export const configs: fc.Arbitrary<Decoder.DecoderConfig> = fc
  .record({
    architecture: fc.constantFrom("llama" as const, "qwen2" as const),
    vocabSize: fc.integer({ min: 2, max: 23 }),
    hiddenSize: fc.integer({ min: 1, max: 17 }),
    intermediateSize: fc.integer({ min: 1, max: 13 }),
    layers: fc.integer({ min: 1, max: mostLayers }),
    keyValueHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 3 }),
    headDim: fc.constantFrom(2, 4, 6, 8),
    maxPositions: fc.constant(64),
    rmsNormEpsilon: fc.constantFrom(1e-5, 1e-6),
    rope: ropes,
    biases: fc.record({ qkv: fc.boolean(), output: fc.boolean(), mlp: fc.boolean() }),
    tiedEmbeddings: fc.boolean(),
    variant: variants,
  })
  .map(({ group, variant, ...config }) => ({
    ...config,
    heads: group * config.keyValueHeads,
    ...variantOf(variant, config.layers),
  }))

type Variant = typeof variants extends fc.Arbitrary<infer A> ? A : never

/** Tells whether a norm divides by something that is often near zero, which makes the rounding before it larger. */
const isAmplifying = ({ norm, normPlaces = "before" }: Omit<Variant, "attention">): boolean =>
  norm === "layer" || normPlaces !== "before"

/** Leaves out the options that are undefined, and the attention of layers that the decoder lacks. */
const variantOf = ({ attention, ...rest }: Variant, layers: number): Partial<Decoder.DecoderConfig> => {
  const all = { ...rest, attention: attention?.slice(0, layers) }
  const used = Record.filter(all, (value) => value !== undefined)
  return isAmplifying(rest) ? { ...used, rmsNormEpsilon: 0.01 } : used
}

/** Parameters in single precision, as programs take them. */
export type NamedArrays = Readonly<Record<string, NamedArray>>

/** Draws all parameters, with norms and biases that matter. */
export const draw = (config: Decoder.DecoderConfig, seed: number): NamedArrays => {
  const random = Rng.stream(seed, "weights")
  return Record.map(Decoder.parametersOf(config), ({ shape }) => {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1))
    random.fillNormal(data)
    // A norm's scale is around 1; matrices keep the size of what they multiply.
    const size = shape.length === 1 ? 0.5 : 1 / Math.sqrt(shape[1])
    return { shape, data: data.map((value) => (shape.length === 1 ? 1 : 0) + size * value) }
  })
}

export const write = (program: Program, arrays: NamedArrays): void => {
  for (const [name, { data }] of Object.entries(arrays)) Effect.runSync(program.write(name, data))
}

/**
 * Fills the feeds of a packed program with sequences, window after window. The rest of a window is padding, whose tokens stay
 * as they are.
 */
export const feedSequences = (
  { feeds: { tokens, positions, contexts, ends } }: Program,
  width: number,
  windows: ReadonlyArray<ReadonlyArray<ReadonlyArray<number>>>,
): void => {
  positions.fill(0)
  contexts.fill(-1)
  ends.fill(0)
  windows.forEach((sequences, row) => {
    let at = row * width
    for (const sequence of sequences) {
      const first = at
      sequence.forEach((token, position) => {
        tokens[at] = token
        positions[at] = position
        contexts[at] = position === 0 ? -1 : at - 1
        ends[at] = first - row * width + sequence.length
        at++
      })
    }
  })
}

export const statesFor = (config: Decoder.DecoderConfig) => {
  const weights = Decoder.statesOf(Decoder.parametersOf(config))
  return { weights, state: Record.map(weights, (tensor) => ({ tensor })) }
}

export const assertClose = (found: ArrayLike<number>, wanted: ReadonlyArray<number>, message: string): void => {
  assert.strictEqual(found.length, wanted.length, message)
  const size = Math.max(1, ...wanted.map(Math.abs))
  wanted.forEach((value, at) => {
    if (!(Math.abs(found[at] - value) <= 1e-4 * size))
      assert.fail(`${message}: number ${at} is ${found[at]}, expected ${value}`)
  })
}

export const tokensOf = (config: Decoder.DecoderConfig, seed: number, ...path: ReadonlyArray<number>) => {
  const random = Rng.stream(seed, "tokens", ...path)
  return (length: number): ReadonlyArray<number> => Array.from({ length }, () => random.integer(config.vocabSize))
}
