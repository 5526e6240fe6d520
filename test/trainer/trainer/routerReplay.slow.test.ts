import { Effect, Record, Schema } from "effect"
import { assert, describe, it } from "vitest"
import type { RoutedExperts } from "../../../src/base/formats/routedExperts.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import * as Losses from "../../../src/rl/losses/Losses.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { makePacker } from "../../../src/trainer/batches/Packer.ts"
import { decodeTurn, encodeTurn } from "../../../src/trainer/batches/Turn.ts"
import type { TrainingSample } from "../../../src/trainer/batches/TrainingSample.ts"
import { compileReference } from "../../../src/trainer/reference/compileReference.ts"
import { compileGradient } from "../../../src/trainer/trainer/gradientProgram.ts"
import { tinyConfig } from "../../decoder/networks/configs.ts"
import { relativeError } from "../../decoder/networks/fixture.ts"
import { plainLogits } from "../../decoder/networks/plain.ts"

const experts = { count: 5, perToken: 2, units: 6, normalised: true }
const layers = 1
const config: Decoder.DecoderConfig = {
  ...tinyConfig,
  layers,
  architecture: "qwen3_moe",
  queryKeyNorm: "head",
  experts,
}
const replayed = { layers, count: experts.count, perToken: experts.perToken }
const weights = Record.map(
  Decoder.initialValues(Decoder.parametersOf(config), stream(1, "weights")),
  ({ shape, data }, name) => ({ shape, data: name.endsWith("norm.weight") ? data : data.map((value) => 15 * value) }),
)

/** Draws two different experts for each token in each layer. */
const drawnExperts = (tokens: number, at: number): RoutedExperts => {
  const random = stream(5, "experts", at)
  const pairs = Array.from({ length: tokens * layers }, () => {
    const first = random.integer(experts.count)
    return [first, (first + 1 + random.integer(experts.count - 1)) % experts.count]
  })
  return { layers, perToken: experts.perToken, ids: Uint8Array.from(pairs.flat()) }
}

/** Three answers to one prompt. The first two have the same experts in the prompt, and the third has others. */
const samplesOf = (): ReadonlyArray<TrainingSample> => {
  const prompt = [3, 1, 4, 1]
  const size = layers * experts.perToken
  return [0, 1, 2].map((at) => {
    const tokens = Int32Array.from([...prompt, 7 + at, 2, 9 - at])
    const { length } = tokens
    const routedExperts = drawnExperts(length - 1, at)
    if (at === 1) routedExperts.ids.set(drawnExperts(length - 1, 0).ids.subarray(0, prompt.length * size))
    const ones = Array.from({ length }, (_, token) => (token < prompt.length ? 0 : 1))
    return {
      id: `${at}`,
      tokens,
      mask: Uint8Array.from(ones),
      logprobs: new Float32Array(length),
      advantages: Float32Array.from(ones),
      temperature: 1,
      group: 0,
      routedExperts,
    }
  })
}

const sizes = { rows: 1, width: 32, block: 4, maxRuns: 1 }

const packed = (samples: ReadonlyArray<TrainingSample>, options: { readonly replayed?: typeof replayed }) => {
  const packer = makePacker({ ...sizes, ...options, ranks: 1, mixing: "one-run" })
  packer.open(0, { id: "run_0", step: 0, rulesAt: () => ({ normalisation: { type: "token_mean" } }) })
  packer.offer(0, { step: 0, samples })
  const pack = packer.pack()
  assert(pack !== undefined)
  return pack
}

/** Computes the mean log-probability of the answers in loops, with the experts of the samples. */
const plainMean = (samples: ReadonlyArray<TrainingSample>): number => {
  const all = samples.flatMap(({ tokens, mask, routedExperts }) => {
    const logits = plainLogits(config, weights, [...tokens], undefined, (layer, token) => {
      const from = (token * layers + layer) * experts.perToken
      const own = routedExperts?.ids.subarray(from, from + experts.perToken)
      return own === undefined || own.length === 0 ? undefined : [...own]
    })
    return [...tokens.keys()]
      .filter((token) => mask[token] === 1)
      .map((token) => {
        const before = logits[token - 1]
        return before[tokens[token]] - Math.log(before.reduce((sum, logit) => sum + Math.exp(logit), 0))
      })
  })
  return all.reduce((sum, one) => sum + one, 0) / all.length
}

describe("a gradient program that replays routers", () => {
  it("uses the experts of the samples, as loops over them do, and its gradient reaches the routers", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const objective = Schema.decodeSync(Losses.TokenObjective)({ type: "sft" })
        const shape = { config, ...sizes, mixing: "one-run", adapters: null } as const
        const replaying = yield* compileGradient({ ...shape, replayed }, objective)
        const plain = yield* compileGradient(shape, objective)
        for (const program of [replaying, plain]) yield* program.writeBase(weights)
        const samples = samplesOf()
        const pack = packed(samples, { replayed })
        const [microBatch] = pack.microBatches
        // Samples share the tokens of their prompt only if their experts are the same.
        assert.strictEqual(microBatch.positions.filter((position) => position === 3).length, 2)
        assert.deepStrictEqual(decodeTurn(encodeTurn({ ...pack, microBatch }))?.microBatch, microBatch)
        yield* replaying.run(microBatch)
        assert.isBelow(relativeError([-replaying.lossOf(0)], [plainMean(samples)]), 1e-5)
        const bare = samples.map((sample) => {
          const { routedExperts: _, ...others } = sample
          return others
        })
        assert.isAbove(relativeError([plainMean(bare)], [plainMean(samples)]), 1e-3)
        const slopes = replaying.gradientOf(0)
        const names = Object.keys(weights)
        const router = names.indexOf("model.layers.0.mlp.gate.weight")
        const start = names.slice(0, router).reduce((sum, name) => sum + weights[name].data.length, 0)
        const own = slopes.subarray(start, start + weights[names[router]].data.length)
        assert.isTrue(own.some((slope) => Math.abs(slope) > 1e-6))

        // Without records, the routers choose, as in a program that replays nothing.
        const [unrecorded] = packed(bare, { replayed }).microBatches
        yield* replaying.run(unrecorded)
        yield* plain.run(packed(bare, {}).microBatches[0])
        assert.strictEqual(replaying.lossOf(0), plain.lossOf(0))
        assert.deepStrictEqual(replaying.gradientOf(0), plain.gradientOf(0))

        const reference = yield* compileReference({ ...sizes, replayed }, { decoder: config, weights })
        const logProbabilities = yield* reference(packed(samples, { replayed }).microBatches[0])
        const masked = logProbabilities.filter((_, at) => microBatch.mask[at] === 1)
        const mean = masked.reduce((sum, one) => sum + one, 0) / masked.length
        assert.isBelow(relativeError([mean], [plainMean(samples)]), 1e-5)
      }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
    ))
})
