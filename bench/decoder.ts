/** Makes the programs of the benchmarks of a small language model: about ten million weights, in the architecture of Llama. */
import { Effect, Record } from "effect"
import { Backend, Decoder, type Program, Rng } from "effect-rl"
import { multiplyAddsOf } from "../src/tensor/backend/auto.ts"
import { gradients } from "../src/tensor/graph/gradients.ts"
import * as G from "../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { sizeOf, topologicalOrder } from "../src/tensor/graph/Tensor.ts"
import { rootsOf } from "../src/tensor/graph/validate.ts"

const config: Decoder.DecoderConfig = {
  architecture: "llama",
  vocabSize: 4096,
  hiddenSize: 320,
  intermediateSize: 864,
  layers: 6,
  heads: 5,
  keyValueHeads: 5,
  headDim: 64,
  maxPositions: 1024,
  rmsNormEpsilon: 1e-5,
  rope: { theta: 10_000, scaling: null },
  biases: { qkv: false, output: false, mlp: false },
  tiedEmbeddings: false,
}
const parameters = Decoder.parametersOf(config)

export const weightCount = Object.values(parameters).reduce((sum, { shape }) => sum + sizeOf(shape), 0)

/** Counts the multiply-adds of all products of a program. */
export const multiplyAdds = (spec: ProgramSpec): number =>
  topologicalOrder(rootsOf(spec)).reduce((sum, tensor) => sum + multiplyAddsOf(tensor), 0)

/** Forward pass over packed windows, a loss on the tokens' log-probabilities, backward pass, and a step of SGD. */
export const training = (rows: number, width: number): ProgramSpec => {
  const weights = Decoder.statesOf(parameters)
  const inputs = Decoder.packedInputs(rows, width)
  const advantage = G.input("advantage", [rows, width])
  const hidden = Decoder.hiddenStates(config, weights, inputs)
  const { logProbability_t } = Decoder.predictions(config, weights, hidden, inputs)
  const loss = G.neg(G.mean(G.mul(logProbability_t, advantage)))
  const names = Object.keys(weights)
  const slopes = gradients(loss, Object.values(weights))
  const next = names.map((name, i) => G.sub(weights[name], G.mul(slopes[i], 1e-3)))
  return {
    name: "decoder train",
    inputs: { ...inputs, advantage },
    state: Object.fromEntries(names.map((name, i) => [name, { tensor: weights[name], next: next[i] }])),
    outputs: { loss },
  }
}

/** The step that generates one token for each of some sequences, which have up to 128 tokens in the cache. */
export const step = (sequences: number): ProgramSpec => {
  const weights = Decoder.statesOf(parameters)
  const { inputs, outputs } = Decoder.rowStep(config, weights, { rows: sequences, segments: [128] })
  const state = Record.map(weights, (tensor) => ({ tensor, frozen: true }))
  return { name: `decoder step ${sequences}`, inputs, state, outputs: { ...outputs } }
}

/** Reads all weights that a step reads, once: all but the table of embeddings, of which a step reads a few rows. */
export const reading = (): ProgramSpec => {
  const { "model.embed_tokens.weight": _, ...weights } = Decoder.statesOf(parameters)
  // The input keeps a backend from computing the sums only once.
  const scale = G.input("scale", [])
  const sums = Object.values(weights).map((weight) => G.sum(G.add(weight, scale)))
  const state = Record.map(weights, (tensor) => ({ tensor }))
  return { name: "read weights", inputs: { scale }, state, outputs: { sums: G.stack(sums) } }
}

/** A product of large square matrices, whose speed is the limit for programs that consist of products. */
export const product = (size: number): ProgramSpec => {
  const inputs = { a: G.input("a", [size, size]), b: G.input("b", [size, size]) }
  return { name: "large product", inputs, state: {}, outputs: { c: G.matmul(inputs.a, inputs.b) } }
}

/** Compiles programs that share the model's weights, and fills weights and feeds. They live as long as the scope. */
export const compiled = <Name extends string>(specs: Readonly<Record<Name, ProgramSpec>>) =>
  Effect.gen(function* () {
    const group = yield* (yield* Backend).compileAll(specs)
    const programs = Object.entries<Program>(group)
    const values = Decoder.initialValues(parameters, Rng.stream(1, "weights"))
    const holders = Object.entries<ProgramSpec>(specs)
    for (const [weight, { data }] of Object.entries(values)) {
      const holder = holders.find(([, { state }]) => state[weight] !== undefined)
      for (const [name, program] of programs) if (name === holder?.[0]) yield* program.write(weight, data)
    }
    for (const [, { feeds }] of programs)
      for (const [name, feed] of Object.entries(feeds))
        feed.forEach((_, at) => (feed[at] = fillers[name]?.(at) ?? Math.sin(at)))
    return group
  })

/** The numbers of the feeds that have a meaning; the numbers of the others only look random. */
const fillers: Readonly<Record<string, (at: number) => number>> = {
  tokens: (at) => (at * 37) % config.vocabSize,
  positions: (at) => at % 256,
  contexts: (at) => (at % 256 === 0 ? -1 : at - 1),
  ends: () => 256,
  lengths: () => 127,
}
