import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger } from "effect"
import { clippedValueLoss } from "../../../src/rl/losses/Losses.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { writeRollouts } from "../../../src/trainer/batches/rolloutFiles.ts"
import { type Chain, learned, makeCritic, valueSlope, valuesOf } from "../../../src/trainer/critic/critic.ts"
import { criticAfter, encodeCritic } from "../../../src/trainer/critic/criticised.ts"
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
