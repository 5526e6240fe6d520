import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { clippedValueLoss } from "../../../src/rl/losses/Losses.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { writeRollouts } from "../../../src/trainer/batches/rolloutFiles.ts"
import { type Chain, learned, makeCritic, valueSlope, valuesOf } from "../../../src/trainer/critic/critic.ts"
import { criticAfter, criticised, encodeCritic } from "../../../src/trainer/critic/criticised.ts"
import { type Rollout, terminated, truncatedBy } from "../../../src/agents/episode/Rollout.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { compileFeatures } from "../../../src/trainer/teacher/compileScorer.ts"
import { tinyConfig } from "../../decoder/networks/configs.ts"
import { disk } from "../../run/store/disk.ts"
import { temporaryRunFolder } from "../folders.ts"

const settings = { gamma: 1, lambda: 1, lr: 0.05, epochs: 4, clip: 0.2 }

/** Chains of two kinds, whose first feature tells the reward that will come. */
const chainsOf = (count: number): ReadonlyArray<Chain> =>
  Array.from({ length: count }, (_, at) => {
    const random = stream(3, "chain", at)
    const length = 1 + random.integer(4)
    const reward = at % 2
    const features = Float32Array.from({ length: 3 * length }, (_, number) =>
      number % 3 === 0 ? 2 * reward - 1 : 0.1 * random.normal(),
    )
    return { features, length, reward }
  })

const sampleOf = (id: string, tokens: ReadonlyArray<number>) => ({
  id,
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(tokens, (_, at) => (at < 2 ? 0 : 1)),
  logprobs: new Float32Array(tokens.length),
  advantages: new Float32Array(tokens.length),
  temperature: 1,
})
const samples = [sampleOf("a", [1, 2, 3, 4]), sampleOf("b", [1, 2, 3, 4, 5])]

/** The features of the samples, by a small model. */
const reading = Effect.gen(function* () {
  const weights = Decoder.initialValues(Decoder.parametersOf(tinyConfig), stream(1, "weights"))
  const model = { config: tinyConfig, weights, adapters: null }
  const { features } = yield* compileFeatures({ rows: 1, width: 16, block: 4 }, model)
  return yield* features(samples, undefined)
}).pipe(Effect.scoped, Effect.provide(Wasm.layer))

const episode: Rollout = {
  id: "e",
  meta: {
    envId: "e",
    envType: "e",
    agent: "a",
    model: null,
    envSeed: 0,
    samplingSeed: 0,
    groupId: null,
    parentRolloutId: null,
    depth: 0,
    player: null,
    tags: {},
  },
  steps: [],
  totalReward: 1,
  length: 1,
  ending: terminated,
}

describe("the critic", () => {
  it("has the slope of PPO's clipped value loss, half of it", () => {
    const random = stream(1, "values")
    for (let at = 0; at < 60; at++) {
      const [value, old, target] = [random.normal(), random.normal(), random.normal()]
      const v_t = G.input("v", [1])
      const loss = clippedValueLoss({ v_t, vOld_t: G.constant([old]), target_t: G.constant([target]), epsilon: 0.4 })
      const [[slope]] = evaluate(gradients(loss, [v_t]), new Map([[v_t, [value]]]))
      assert.closeTo(valueSlope(value, old, target, 0.4), slope / 2, 1e-6)
      assert.strictEqual(valueSlope(value, old, target, null), value - target)
    }
  })

  it("computes advantages by GAE, and scales them to mean 0 and deviation 1 over all tokens", () => {
    const weights = Float64Array.of(2, 0, 0.5)
    const state = { ...makeCritic(2), weights }
    const scale = Math.SQRT1_2
    const chain = { features: Float32Array.of(1, 0, -1, 0), length: 2, reward: 1 }
    const [first, second] = valuesOf(state, chain)
    assert.closeTo(first, 2 * scale + 0.5, 1e-12)
    assert.closeTo(second, -2 * scale + 0.5, 1e-12)
    const { advantages, valueLoss } = learned(state, [chain], { ...settings, gamma: 0.9, lambda: 0.5 })
    const last = 1 - second
    const before = 0.9 * second - first + 0.9 * 0.5 * last
    assert.closeTo(valueLoss, (last ** 2 + before ** 2) / 2, 1e-12)
    // Two numbers become −1 and 1 when they are scaled.
    assert.closeTo(advantages[0][0], Math.sign(before - last), 1e-6)
    assert.closeTo(advantages[0][1], Math.sign(last - before), 1e-6)
  })

  it("counts the value after the last token of an episode that a limit cut off, if the config asks for it", () => {
    const state = { ...makeCritic(2), weights: Float64Array.of(2, 0, 0.5) }
    const config = { ...settings, gamma: 0.9, lambda: 0.5 }
    const chain = { features: Float32Array.of(1, 0, -1, 0), length: 2, reward: 1 }
    const after = Float32Array.of(3, 1)
    const [first, second] = valuesOf(state, chain)
    const last = 1 + 0.9 * (3 * 2 * Math.SQRT1_2 + 0.5) - second
    const before = 0.9 * second - first + 0.9 * 0.5 * last
    const { valueLoss } = learned(state, [{ ...chain, after }], config)
    assert.closeTo(valueLoss, (last ** 2 + before ** 2) / 2, 1e-12)
  })

  it.effect("gets the hidden states before each token and after the last one, and bootstraps by the latter", () =>
    Effect.gen(function* () {
      const read = yield* reading
      const features = read.get("a") ?? assert.fail("no features")
      // The first sample is the second one without its last token.
      const beforeLast = read.get("b")?.before.slice(-tinyConfig.hiddenSize) ?? []
      features.after.forEach((value, at) => assert.closeTo(value, beforeLast[at], 1e-5))
      const reader = { size: tinyConfig.hiddenSize, features: () => Effect.succeed(read) }
      const state = { ...makeCritic(reader.size), weights: new Float64Array(reader.size + 1).fill(0.1) }
      const step = { run: "run_a", step: 0, reader, state, positiveOnly: false, own: undefined }
      const lossOf = (truncated: "end" | "bootstrap", ending: Rollout["ending"]) => {
        const usable = [{ rollout: { ...episode, ending }, samples: [samples[0]], refused: [] }]
        const config = { ...settings, truncated }
        return Effect.map(criticised([samples[0]], usable, { ...step, config }), ({ metrics }) => metrics)
      }
      const cutOff = truncatedBy("max_steps")
      const [ended, kept, bootstrapped] = [
        yield* lossOf("bootstrap", terminated),
        yield* lossOf("end", cutOff),
        yield* lossOf("bootstrap", cutOff),
      ]
      assert.deepStrictEqual(kept, ended)
      const { before, after } = features
      const chain = { features: before, length: before.length / reader.size, reward: episode.totalReward, after }
      assert.strictEqual(bootstrapped["sampling/value_loss"], learned(state, [chain], settings).valueLoss)
      assert.notStrictEqual(bootstrapped["sampling/value_loss"], ended["sampling/value_loss"])
    }),
  )

  it("learns values that explain the rewards, in small steps if they are clipped", () => {
    const chains = chainsOf(40)
    let state = makeCritic(3)
    const start = learned(state, chains, settings)
    assert.isAtMost(start.explainedVariance, 1e-12)
    for (let step = 0; step < 40; step++) state = learned(state, chains, settings).state
    const end = learned(state, chains, settings)
    assert.isAbove(end.explainedVariance, 0.95)
    assert.isBelow(end.valueLoss, 0.05 * start.valueLoss)
    assert.strictEqual(end.state.updates, 41 * settings.epochs)
    // A value that has moved by more than the clip does not move on: with many passes, it stays near.
    const clipped = learned(makeCritic(3), chains, { ...settings, epochs: 200, clip: 0.01 }).state
    const free = learned(makeCritic(3), chains, { ...settings, epochs: 200, clip: null }).state
    const furthest = (one: typeof state) =>
      Math.max(...chains.flatMap((chain) => [...valuesOf(one, chain)].map(Math.abs)))
    assert.isBelow(furthest(clipped), 0.5 * furthest(free))
  })

  it.effect(
    "is saved with the samples of a step; without its file it begins again, and a damaged one is an error",
    () =>
      Effect.gen(function* () {
        const folder = yield* temporaryRunFolder
        const { state } = learned(makeCritic(3), chainsOf(4), settings)
        const [tokens, numbers] = [Int32Array.of(1, 2), Float32Array.of(0, 1)]
        const sample = {
          id: "a",
          tokens,
          mask: Uint8Array.of(0, 1),
          logprobs: numbers,
          advantages: numbers,
          temperature: 1,
        }
        yield* writeRollouts(folder, { step: 4, samples: [sample], critic: encodeCritic(state) })
        assert.deepStrictEqual(yield* criticAfter(folder, 4, 3), state)
        assert.deepStrictEqual(yield* criticAfter(folder, 3, 3), makeCritic(3))
        const { message } = yield* Effect.flip(criticAfter(folder, 4, 5))
        assert.match(message, /step_4\/critic\.safetensors: expected the 6 weights of a critic/)
        yield* folder.tree.write("rollouts/step_4/critic.safetensors", new Uint8Array(20))
        assert.match((yield* Effect.flip(criticAfter(folder, 4, 3))).message, /critic\.safetensors/)
      }).pipe(Effect.provide(disk), Effect.provide(Logger.layer([]))),
  )
})
