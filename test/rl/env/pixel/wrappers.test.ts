import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import { check } from "../../../../src/rl/env/check.ts"
import * as Env from "../../../../src/rl/env/Env.ts"
import { envConfigOf } from "../../../../src/rl/env/Envs.ts"
import { fromConfig } from "../../../../src/rl/env/fromConfig.ts"
import * as Breakout from "../../../../src/rl/env/pixel/Breakout.ts"
import * as Catch from "../../../../src/rl/env/pixel/Catch.ts"
import { box, discrete } from "../../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../../src/rl/env/Wrapper.ts"
import { envError } from "../errors.ts"

/** Shows a light that blinks: it stands at element `at`, and is only drawn in even steps. Loses a life every 5 steps. */
const blinking = Env.make({
  id: "blinking",
  observationSpace: box(0, 1, [1, 1, 8]),
  actionSpace: discrete(2),
  maxSteps: 30,
  reset: () => ({ at: 0, steps: 0 }),
  observe: ({ at, steps }) => Array.from({ length: 8 }, (_, element) => (element === at && steps % 2 === 0 ? 1 : 0)),
  step: ({ at, steps }, action) => ({
    state: { at: Math.min(7, at + action), steps: steps + 1 },
    reward: 1,
    terminated: steps === 9,
  }),
})

/** An env that shows one image of this shape. */
const showing = (shape: ReadonlyArray<number>, image: ReadonlyArray<number>) =>
  Env.make({
    id: "showing",
    observationSpace: box(0, 255, shape),
    actionSpace: discrete(1),
    reset: () => 0,
    observe: () => image,
    step: (state) => ({ state, reward: 0, terminated: false }),
  })

const firstOf = (env: Env.Env): ReadonlyArray<number> => {
  const batch = Batch.make(env, 1)
  batch.reset(1)
  return Array.from(batch.observations)
}

describe("wrappers for games with images", () => {
  it("maxAndSkip repeats an action, adds rewards, joins two frames and ends with the episode", () => {
    const env = Wrapper.maxAndSkip(blinking, 3)
    assert.strictEqual(env.maxSteps, 10)
    const batch = Batch.make(env, 1)
    batch.reset(1)
    batch.step(Int32Array.of(1))
    // After 3 steps the light is at 3 and not drawn; at 2, one step before, it was.
    assert.deepStrictEqual(Array.from(batch.observations), [0, 0, 1, 0, 0, 0, 0, 0])
    assert.strictEqual(batch.rewards[0], 3)
    batch.step(Int32Array.of(0))
    batch.step(Int32Array.of(0))
    assert.deepStrictEqual([batch.rewards[0], batch.terminated[0]], [3, 0])
    batch.step(Int32Array.of(0))
    assert.deepStrictEqual([batch.rewards[0], batch.terminated[0]], [1, 1])
  })

  it("maxAndSkip and fireStarts take no action that the mask forbids", () => {
    // The light cannot move once it stands at 2.
    const ending = { ...blinking, actionMask: ({ at }: { at: number }) => [1, at < 2 ? 1 : 0] }
    const batch = Batch.make(Wrapper.maxAndSkip(ending, 4), 1)
    batch.reset(1)
    batch.step(Int32Array.of(1))
    assert.deepStrictEqual([batch.rewards[0], ...batch.observations.subarray(8)], [2, 1, 0])
    assert.strictEqual(batch.observations[2], 1)
    assert.include(
      envError(() => firstOf(Wrapper.fireStarts(ending, 1, 1, 1))).message,
      "fireStarts: the action mask forbids 1 at the start of an episode",
    )
  })

  it("fireStarts begins with actions, and endOnLifeLoss ends with the first life", () => {
    assert.deepStrictEqual(firstOf(Wrapper.fireStarts(blinking, 1, 1)), [0, 0, 1, 0, 0, 0, 0, 0])
    assert.match(envError(() => Wrapper.fireStarts(blinking, 2)).message, /fireStarts: 2 is no action of Discrete\(2\)/)
    const batch = Batch.make(
      Wrapper.endOnLifeLoss(blinking, ({ steps }) => 3 - Math.floor(steps / 5)),
      1,
    )
    batch.reset(1)
    for (let step = 1; step <= 4; step++) batch.step(Int32Array.of(0))
    assert.strictEqual(batch.terminated[0], 0)
    batch.step(Int32Array.of(0))
    assert.strictEqual(batch.terminated[0], 1)
  })

  it("grey weighs the three channels, and resize takes the mean of areas", () => {
    const [red, green, blue] = [100, 200, 50]
    assert.closeTo(firstOf(Wrapper.grey(showing([3, 1, 1], [red, green, blue])))[0], 153, 1e-4)
    const image = [0, 10, 20, 30, 40, 50, 60, 70, 80]
    const two = Wrapper.resize(showing([1, 3, 3], image), 2, 2)
    assert.deepStrictEqual(two.observationSpace.shape, [1, 2, 2])
    // Each new element covers one old one, halves of two, and a quarter of the middle one.
    const expected = [
      [0, 10, 30, 40],
      [20, 10, 50, 40],
      [60, 30, 70, 40],
      [80, 70, 50, 40],
    ].map(([one, half, other, quarter]) => (one + half / 2 + other / 2 + quarter / 4) / 2.25)
    for (const [at, value] of firstOf(two).entries()) assert.closeTo(value, expected[at], 1e-4)
    assert.deepStrictEqual(firstOf(Wrapper.resize(showing([2, 1, 2], [1, 2, 3, 4]), 1, 1)), [1.5, 3.5])
    assert.deepStrictEqual(firstOf(Wrapper.resize(showing([1, 1, 2], [1, 2]), 1, 4)), [1, 1, 2, 2])
    assert.match(envError(() => Wrapper.grey(Catch.env)).message, /expected images of 3 channels/)
    const flat = showing([3], [1, 2, 3])
    assert.match(envError(() => Wrapper.resize(flat, 1, 1)).message, /expected images of the shape/)
  })

  it("keep the rules of envs", () => {
    for (const env of [
      Wrapper.maxAndSkip(Breakout.env, 4),
      Wrapper.fireStarts(Breakout.env, 1),
      Wrapper.resize(Breakout.env, 5, 5),
      Wrapper.frameStack(Wrapper.resize(Wrapper.maxAndSkip(Catch.env, 2), 3, 4), 2),
    ])
      assert.deepStrictEqual(check(env), [])
  })

  it.effect("can be made from a config", () =>
    Effect.gen(function* () {
      const env = Wrapper.resize(Wrapper.maxAndSkip(Wrapper.fireStarts(Breakout.env, 1), 4), 5, 5)
      const config = envConfigOf(env)
      const again = yield* fromConfig(config, { source: "train.yaml" })
      assert.deepStrictEqual(envConfigOf(again), config)
      assert.deepStrictEqual(firstOf(again), firstOf(env))
    }),
  )
})
