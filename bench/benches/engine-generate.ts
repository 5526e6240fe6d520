/**
 * Measures an engine with a decoder transformer of 8.4 million random weights: the tokens that it generates in a second for
 * one request and for 32 at once, and the tokens of prompts that it reads. Each backend is measured by itself.
 */
import { Effect } from "effect"
import { Engine } from "../../src/decoder/inference/Engine.ts"
import { type DecoderConfig, initialValues, parametersOf } from "../../src/decoder/networks/Decoder.ts"
import { backend } from "../../src/node.ts"
import { stream } from "../../src/base/rng/Rng.ts"
import { defineBench } from "../Bench.ts"

const config: DecoderConfig = {
  architecture: "llama",
  vocabSize: 4096,
  hiddenSize: 256,
  intermediateSize: 768,
  layers: 8,
  heads: 8,
  keyValueHeads: 4,
  headDim: 32,
  maxPositions: 256,
  rmsNormEpsilon: 1e-5,
  rope: { theta: 10_000, scaling: null },
  biases: { qkv: false, output: false, mlp: false },
  tiedEmbeddings: false,
}
const weights = initialValues(parametersOf(config), stream(1, "bench", "engine-generate"))
const parameters = Object.values(weights).reduce((sum, { data }) => sum + data.length, 0)
const tokenizer = { decoder: () => ({ push: () => "", end: () => "" }) }

interface Load {
  readonly requests: number
  readonly prompt: number
  readonly answer: number
}

/** Returns the seconds that a number of requests at once take. Each has a prompt of its own, so that none is cached. */
const secondsOf = ({ requests, prompt, answer }: Load, round: number) =>
  Effect.gen(function* () {
    const engine = yield* Engine
    const random = stream(round, "prompts", requests, prompt)
    const all = Array.from({ length: requests }, (_, seed) => ({
      model: "base",
      promptIds: Array.from({ length: prompt }, () => random.integer(config.vocabSize)),
      sampling: { seed, maxTokens: answer },
    }))
    const start = performance.now()
    yield* Effect.forEach(all, engine.generate, { concurrency: "unbounded" })
    return (performance.now() - start) / 1000
  })

/** Returns the shortest time of three rounds, as tokens a second. */
const fastest = (load: Load, tokens: number) =>
  Effect.map(
    Effect.forEach([1, 2, 3], (round) => secondsOf(load, round)),
    (times) => tokens / Math.min(...times),
  )

const measure = (device: "wasm" | "cpu") =>
  Effect.gen(function* () {
    const one = yield* fastest({ requests: 1, prompt: 2, answer: 48 }, 48)
    const many = yield* fastest({ requests: 32, prompt: 2, answer: 24 }, 32 * 24)
    const prompts = yield* fastest({ requests: 8, prompt: 193, answer: 1 }, 8 * 193)
    return { one, many, prompts }
  }).pipe(
    Effect.provide(Engine.layer({ name: "base", config, weights, tokenizer })),
    Effect.provide(backend(device)),
    Effect.orDie,
    Effect.runPromise,
  )

export default defineBench({
  name: "engine-generate",
  unit: "tokens/s",
  higherIsBetter: true,
  about: "An engine with 8.4 million weights on wasm, 32 requests at once",
  run: async () => {
    const [wasm, cpu] = [await measure("wasm"), await measure("cpu")]
    return {
      value: wasm.many,
      details: {
        parameters,
        "wasm, one request, tokens/s": wasm.one,
        "wasm, gigabytes of weights/s for one request": (wasm.one * 4 * parameters) / 1e9,
        "wasm, prompts, tokens/s": wasm.prompts,
        "cpu, 32 requests, tokens/s": cpu.many,
        "cpu, one request, tokens/s": cpu.one,
        "cpu, prompts, tokens/s": cpu.prompts,
      },
    }
  },
})
