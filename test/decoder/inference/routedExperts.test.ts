import { assert, describe, it } from "@effect/vitest"
import { Effect, Record } from "effect"
import { decodeExperts, encodeExperts, type RoutedExperts } from "../../../src/base/formats/routedExperts.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { decoderModel } from "../../../src/decoder/inference/decoderModel.ts"
import { Engine } from "../../../src/decoder/inference/Engine.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"
import { feedSequences } from "../../../property-tests/support/decoders.ts"
import { tinyConfig } from "../networks/configs.ts"
import { backends, relativeError, write } from "../networks/fixture.ts"
import { plainLogits } from "../networks/plain.ts"

const config: Decoder.DecoderConfig = {
  ...tinyConfig,
  architecture: "qwen3_moe",
  queryKeyNorm: "head",
  experts: { count: 5, perToken: 2, units: 6, normalised: true },
}
const [layers, perToken, width] = [2, 2, 20]
const parameters = Decoder.parametersOf(config)

/** Random weights, large enough that the routers prefer some experts. */
const weightsOf = (seed: number) =>
  Record.map(Decoder.initialValues(parameters, stream(seed, "weights")), ({ shape, data }, name) => ({
    shape,
    data: name.endsWith("norm.weight") ? data : data.map((value) => 15 * value),
  }))

const weights = weightsOf(1)
/** The weights after some training. */
const moved = Record.map(weights, ({ shape, data }, name) => {
  const other = weightsOf(2)[name].data
  return { shape, data: data.map((value, at) => value + 0.2 * other[at]) }
})

const engineModel = {
  name: "base",
  config,
  weights,
  tokenizer: { decoder: () => ({ push: (id: number) => `[${id}]`, end: () => "" }) },
  reading: [1],
  pageSize: 4,
  maxLength: width,
  routedExperts: true,
}

/** The sizes of the programs: few, or several, between which sequences move. */
const sizesOn = { wasm: { generating: [2], firstSegment: width }, cpu: { generating: [1, 2], firstSegment: 8 } }

/** Lets an engine answer two prompts at once, and then the first one again, which it still has in its pages. */
const sampled = Effect.gen(function* () {
  const engine = yield* Engine
  const beginning = [3, 17, 4, 0, 9, 12]
  const ask = Effect.fnUntraced(function* (promptIds: ReadonlyArray<number>, maxTokens: number) {
    const sampling = { seed: promptIds.length, maxTokens }
    const { tokens, routedExperts } = yield* engine.generate({ model: "base", promptIds, sampling })
    return { ids: [...promptIds, ...tokens.map(({ id }) => id)], experts: routedExperts }
  })
  const prompts = [
    [...beginning, 5],
    [...beginning, 1, 2, 8],
  ]
  const both = yield* Effect.forEach(prompts, (prompt, at) => ask(prompt, 5 + 4 * at), { concurrency: 2 })
  return [...both, yield* ask(prompts[0], 3)]
})

const expertsOf = (experts: RoutedExperts | undefined, layer: number, token: number): ReadonlyArray<number> => {
  if (experts === undefined) return []
  const from = (token * layers + layer) * perToken
  return Array.from(experts.ids.subarray(from, from + perToken))
}

/** Computes the log-probability of each token of a sequence in loops, with the experts that were recorded. */
const forcedLogProbabilities = (values: typeof weights, ids: ReadonlyArray<number>, experts: RoutedExperts) => {
  const logits = plainLogits(config, values, ids, undefined, (layer, token) =>
    token < ids.length - 1 ? expertsOf(experts, layer, token) : undefined,
  )
  return ids.slice(1).map((id, at) => {
    const largest = Math.max(...logits[at])
    return logits[at][id] - largest - Math.log(logits[at].reduce((sum, logit) => sum + Math.exp(logit - largest), 0))
  })
}

/** Compiles the program of the log-probabilities of packed sequences. */
const packedProgram = (layer: (typeof backends)["wasm" | "cpu"], replays: boolean) => {
  const states = Decoder.statesOf(parameters)
  const inputs = Decoder.packedInputs(1, width, replays ? config : undefined)
  const hidden = Decoder.hiddenStates(config, states, inputs)
  const { logProbability_t } = Decoder.predictions(config, states, hidden, inputs)
  const state = Record.map(states, (tensor) => ({ tensor }))
  return compileWith(layer, { name: "packed", inputs: { ...inputs }, state, outputs: { logProbability_t } })
}

describe("the experts that an engine records", () => {
  for (const [name, tags] of [
    ["wasm", []],
    ["cpu", ["slow"]],
  ] as const) {
    it.effect(
      `make another program compute the same model after the weights moved, on ${name}`,
      () =>
        Effect.gen(function* () {
          const layer = backends[name]
          const answers = yield* sampled.pipe(
            Effect.provide(Engine.layer({ ...engineModel, ...sizesOn[name] })),
            Effect.provide(layer),
          )
          const programs = { plain: packedProgram(layer, false), replaying: packedProgram(layer, true) }
          /** Returns the log-probabilities after the first token. */
          const computed = (program: keyof typeof programs, values: typeof weights, ids: ReadonlyArray<number>) => {
            const { runSync, results } = programs[program]
            write(
              programs[program],
              Record.map(values, ({ data }) => data),
            )
            feedSequences(programs[program], width, [[[...ids]]])
            runSync?.()
            return Array.from(results["logProbability_t"].slice(1, ids.length))
          }
          let changed = 0
          for (const { ids, experts } of answers) {
            assert(experts !== undefined)
            assert.deepStrictEqual([experts.layers, experts.perToken], [layers, perToken])
            // The model has not read the last token.
            assert.strictEqual(experts.ids.length, (ids.length - 1) * layers * perToken)
            programs.replaying.feeds["experts"].fill(-1).set(experts.ids)
            const same = computed("replaying", weights, ids)
            assert.deepStrictEqual(same, computed("plain", weights, ids))
            const replayed = computed("replaying", moved, ids)
            assert.isBelow(relativeError(replayed, forcedLogProbabilities(moved, ids, experts)), 1e-5)
            const own = computed("plain", moved, ids)
            if (relativeError(replayed, own) > 1e-3) changed++
            programs.replaying.feeds["experts"].fill(-1)
            assert.deepStrictEqual(computed("replaying", moved, ids), own)
          }
          // The weights moved far enough that the routers would choose other experts.
          assert.isAbove(changed, 0)
          const [first, , again] = answers
          const read = 6 * layers * perToken
          assert.deepStrictEqual(again.experts?.ids.slice(0, read), first.experts?.ids.slice(0, read))
        }),
      { tags: [...tags] },
    )
  }

  it.effect("are refused for a model without experts", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(decoderModel(tinyConfig, { routedExperts: true }))
      assert.include(error.message, "routedExperts: expected false, because the model has no experts")
    }).pipe(Effect.scoped, Effect.provide(backends.wasm)),
  )

  it("are the same after JSON, with 8 or 16 bits", () => {
    for (const ids of [Uint8Array.of(1, 255, 0, 7), Uint16Array.of(1, 256, 0, 65_535)]) {
      const encoded = encodeExperts({ layers: 1, perToken: 2, ids })
      assert.deepStrictEqual(encoded.shape, [2, 1, 2])
      assert.deepStrictEqual(decodeExperts(encoded), { layers: 1, perToken: 2, ids })
      const shape = [3, 1, 2] as const
      const wrong = decodeExperts({ ...encoded, shape })
      assert.match(String(wrong), /^expected \d+ bytes for uint(8|16) of shape \[3, 1, 2\], found \d+$/)
      assert.strictEqual(decodeExperts({ ...encoded, data: "?" }), "expected base64")
    }
  })
})
