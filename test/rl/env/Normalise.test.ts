import { assert, describe, it } from "vitest"
import * as Batch from "../../../src/rl/env/Batch.ts"
import type { AutoReset } from "../../../src/rl/env/BatchEnv.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as Normalise from "../../../src/rl/env/Normalise.ts"
import * as RunningMoments from "../../../src/rl/env/RunningMoments.ts"
import { box, dict, discrete, masked, tuple } from "../../../src/rl/env/Space.ts"
import { envError } from "./errors.ts"

/** Observes 10 × its steps, is paid 1, 2, 3, and ends with the third step. */
const env = Env.make({
  id: "climb",
  observationSpace: box(0, 100),
  actionSpace: discrete(1),
  reset: () => 0,
  observe: (count) => [10 * count],
  step: (count) => ({ state: count + 1, reward: count + 1, terminated: count === 2 }),
})

const start = (autoReset: AutoReset = "same-step") => Batch.make(env, 1, { autoReset })
const action = new Int32Array(1)

/** Mean and population variance, with a first row of mean 0, variance 1 that weighs a ten-thousandth. */
const momentsOf = (values: ReadonlyArray<number>) => {
  const count = values.length + 1e-4
  const mean = values.reduce((sum, value) => sum + value, 0) / count
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0)
  return { mean, variance: (squares + 1e-4 * (1 + mean * mean)) / count }
}

describe("the space of normalised observations", () => {
  it("has no bounds of bytes, which a network would scale, and keeps choices", () => {
    const space = Normalise.spaceOf(
      masked(dict({ camera: box(0, 255, [1, 2, 2]), arm: tuple(discrete(3), box(0, 1, [1])) }), discrete(2)),
    )
    const expected = masked(
      dict({ camera: box(-10, 10, [1, 2, 2]), arm: tuple(discrete(3), box(-10, 10, [1])) }),
      discrete(2),
    )
    assert.deepStrictEqual(space, expected)
  })
})

describe("observations", () => {
  it("are normalised by all observations so far, with resets, without final ones", () => {
    const envs = Normalise.observations(start(), { clip: 1000 })
    envs.reset(1)
    const seen = [0]
    for (const raw of [10, 20, 0, 10]) {
      envs.step(action)
      seen.push(raw)
      const { mean, variance } = momentsOf(seen)
      assert.approximately(envs.observations[0], (raw - mean) / Math.sqrt(variance), 1e-5)
      assert.approximately(envs.observationMoments.mean[0], mean, 1e-12)
      assert.approximately(envs.observationMoments.variance[0], variance, 1e-10)
      if (envs.terminated[0] === 1) {
        assert.approximately(envs.finalObservations[0], (30 - mean) / Math.sqrt(variance), 1e-5)
      }
    }
  })

  it("are clipped", () => {
    const envs = Normalise.observations(start(), { clip: 0.5 })
    envs.reset(1)
    envs.step(action)
    envs.step(action)
    assert.strictEqual(envs.observations[0], 0.5)
  })

  it("in validation use the training's statistics without changing them", () => {
    const train = Normalise.observations(start())
    train.reset(1)
    const validation = Normalise.observations(start(), { moments: train.observationMoments, frozen: true })
    train.step(action)
    const before = [...train.observationMoments.mean, ...train.observationMoments.variance]
    validation.reset(2)
    validation.step(action)
    assert.deepEqual([...train.observationMoments.mean, ...train.observationMoments.variance], before)
    assert.strictEqual(validation.observations[0], train.observations[0])
    assert.isUndefined(validation.snapshot()["observationMoments.mean"])
  })

  it("have statistics of each group of rows, equal to those of a batch with these rows alone", () => {
    const values = Float32Array.from({ length: 24 }, (_, at) => (at * at) % 17)
    const grouped = RunningMoments.make(2, undefined, [1, 0, 1])
    const mask = Uint8Array.of(1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1)
    grouped.update(values)
    grouped.update(values, mask)
    for (const group of [0, 1]) {
      const rows = Array.from({ length: 12 }, (_, row) => row).filter((row) => [1, 0, 1][row % 3] === group)
      const alone = RunningMoments.make(2)
      const own = Float32Array.from(rows.flatMap((row) => [values[2 * row], values[2 * row + 1]]))
      alone.update(own)
      alone.update(
        own,
        Uint8Array.from(rows, (row) => mask[row]),
      )
      const { mean, variance } = RunningMoments.groupIn(grouped, group)
      assert.deepStrictEqual([mean, variance], [alone.mean, alone.variance])
      assert.strictEqual(grouped.count[group], alone.count[0])
    }
    const seen = Normalise.observations(Batch.make(env, 6), { groups: [0, 1], clip: 1000 })
    seen.reset(1)
    seen.step(new Int32Array(6))
    const one = Normalise.observations(Batch.make(env, 3), { clip: 1000 })
    one.reset(1)
    one.step(new Int32Array(3))
    assert.deepStrictEqual([...seen.observations], [...one.observations, ...one.observations])
  })

  it("need statistics of their own size", () => {
    const error = envError(() => Normalise.observations(start(), { moments: RunningMoments.make(3) }))
    assert.include(error.message, "moments of 3 numbers for observations of 1")
  })

  it("continue after a restore as if nothing had happened", () => {
    const envs = Normalise.rewards(Normalise.observations(start()))
    envs.reset(1)
    envs.step(action)
    const saved = envs.snapshot()
    const rest = () =>
      [1, 2, 3, 4].map(() => {
        envs.step(action)
        return [envs.observations[0], envs.rewards[0], envs.finalObservations[0]]
      })
    const first = rest()
    envs.restore(saved)
    assert.deepEqual(rest(), first)
    const fresh = Normalise.rewards(Normalise.observations(start()))
    fresh.restore(saved)
    assert.deepEqual([...fresh.observations], [...saved["inner.normalised"]])
    assert.approximately(fresh.observationMoments.count[0], 2 + 1e-4, 1e-12)
  })
})

describe("rewards", () => {
  it("are divided by the standard deviation of the discounted returns so far", () => {
    const envs = Normalise.rewards(start(), { gamma: 0.5 })
    envs.reset(1)
    const returns: Array<number> = []
    // By hand: 1; 1/2 + 2; 2.5/2 + 3; then a new episode.
    for (const [reward, total] of [
      [1, 1],
      [2, 2.5],
      [3, 4.25],
      [1, 1],
      [2, 2.5],
    ]) {
      envs.step(action)
      returns.push(total)
      assert.approximately(envs.rewards[0], Math.min(10, reward / Math.sqrt(momentsOf(returns).variance + 1e-8)), 1e-4)
    }
  })

  it("don't count a step that only resets", () => {
    const envs = Normalise.rewards(start("next-step"), { gamma: 0.5 })
    envs.reset(1)
    for (let step = 0; step < 5; step++) envs.step(action)
    assert.approximately(envs.returnMoments.count[0], 4 + 1e-4, 1e-12)
    const { mean } = momentsOf([1, 2.5, 4.25, 1])
    assert.approximately(envs.returnMoments.mean[0], mean, 1e-12)
  })

  it("frozen change nothing", () => {
    const envs = Normalise.rewards(start(), { frozen: true })
    envs.reset(1)
    envs.step(action)
    envs.step(action)
    assert.approximately(envs.rewards[0], 2, 1e-6)
    assert.strictEqual(envs.returnMoments.count[0], 1e-4)
  })
})
