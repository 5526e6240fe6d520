import { assert, describe, it } from "vitest"
import * as Batch from "../../../src/rl/env/Batch.ts"
import type { AutoReset } from "../../../src/rl/env/BatchEnv.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"
import { envError } from "./errors.ts"

/** Counts its steps; an episode of env k ends by itself after `lengths` steps, in turn. */
const counter = (length: number, maxSteps?: number) =>
  Env.make({
    id: "counter",
    observationSpace: box(0, 100),
    actionSpace: discrete(3),
    ...(maxSteps === undefined ? {} : { maxSteps }),
    reset: () => 0,
    observe: (count) => [count],
    step: (count, action) => ({ state: count + 1, reward: action, terminated: count + 1 === length }),
  })

const table = (autoReset: AutoReset, steps: number, maxSteps?: number) => {
  const envs = Batch.make(counter(3, maxSteps), 1, { autoReset })
  envs.reset(1)
  const rows = [[envs.observations[0], 0, 0, 0]]
  for (let step = 0; step < steps; step++) {
    envs.step(Int32Array.of(2))
    rows.push([envs.observations[0], envs.rewards[0], envs.terminated[0], envs.truncated[0]])
  }
  return { rows, final: envs.finalObservations[0] }
}

describe("auto-reset (observation, reward, terminated, truncated)", () => {
  it("same-step returns the next episode's first observation with the last step, and the final one separately", () => {
    const { rows, final } = table("same-step", 5)
    assert.deepEqual(rows, [
      [0, 0, 0, 0],
      [1, 2, 0, 0],
      [2, 2, 0, 0],
      [0, 2, 1, 0],
      [1, 2, 0, 0],
      [2, 2, 0, 0],
    ])
    assert.strictEqual(final, 3)
  })

  it("next-step ignores the action after an end, and returns the reset with reward 0 and no flag", () => {
    const { rows, final } = table("next-step", 6)
    assert.deepEqual(rows, [
      [0, 0, 0, 0],
      [1, 2, 0, 0],
      [2, 2, 0, 0],
      [3, 2, 1, 0],
      [0, 0, 0, 0],
      [1, 2, 0, 0],
      [2, 2, 0, 0],
    ])
    assert.strictEqual(final, 3)
  })

  it("next-step ignores even an invalid action", () => {
    const envs = Batch.make(counter(1), 1, { autoReset: "next-step" })
    envs.reset(1)
    envs.step(Int32Array.of(0))
    envs.step(Int32Array.of(9))
    assert.strictEqual(envs.terminated[0], 0)
    assert.include(envError(() => envs.step(Int32Array.of(9))).message, "expected an action from 0 to 2, found 9")
  })

  it("disabled refuses to step an ended env until it is restarted", () => {
    const envs = Batch.make(counter(2), 3, { autoReset: "disabled" })
    envs.reset(1)
    envs.step(new Int32Array(3))
    envs.restart(Uint8Array.of(0, 1, 0))
    envs.step(new Int32Array(3))
    assert.deepEqual([...envs.terminated], [1, 0, 1])
    assert.deepEqual([...envs.observations], [2, 1, 2])
    const error = envError(() => envs.step(new Int32Array(3)))
    assert.strictEqual(error.index, 0)
    assert.include(error.message, "its episode has ended and auto-reset is disabled: restart it first")
    envs.restart(Uint8Array.of(1, 0, 1))
    assert.deepEqual([...envs.observations], [0, 1, 0])
    assert.deepEqual([...envs.terminated], [0, 0, 0])
    envs.step(new Int32Array(3))
    assert.deepEqual([...envs.terminated], [0, 1, 0])
  })
})

describe("the time limit", () => {
  it("truncates at the limit, not after it", () => {
    const { rows } = table("same-step", 3, 2)
    assert.deepEqual(rows, [
      [0, 0, 0, 0],
      [1, 2, 0, 0],
      [0, 2, 0, 1],
      [1, 2, 0, 0],
    ])
  })

  it("can coincide with a terminal state", () => {
    assert.deepEqual(table("same-step", 3, 3).rows[3], [0, 2, 1, 1])
  })

  it("also applies to an env that truncates itself", () => {
    const env = Env.make({
      id: "quits",
      observationSpace: box(0, 9),
      actionSpace: discrete(1),
      reset: () => 0,
      observe: (count) => [count],
      step: (count) => ({ state: count + 1, reward: 0, terminated: false, truncated: count === 1 }),
    })
    const envs = Batch.make(env, 1)
    envs.reset(1)
    envs.step(new Int32Array(1))
    assert.strictEqual(envs.truncated[0], 0)
    envs.step(new Int32Array(1))
    assert.strictEqual(envs.truncated[0], 1)
    envs.step(new Int32Array(1))
    assert.strictEqual(envs.truncated[0], 0)
  })
})

describe("an env's mistakes", () => {
  const broken = (changes: Partial<Env.EnvDefinition<number, { readonly _tag: "Discrete"; readonly n: number }>>) => {
    const envs = Batch.make(Env.make({ ...counter(1000), ...changes }), 2)
    envs.reset(1)
    return envs
  }
  const never: Env.EnvTransition<number> = { state: 0, reward: 0, terminated: false }

  it("name the place of an exception, and keep its stack", () => {
    let calls = 0
    const envs = broken({
      step: () => {
        calls++
        if (calls === 2000) throw new RangeError("out of\n  range")
        return never
      },
    })
    for (let step = 1; step < 1000; step++) envs.step(new Int32Array(2))
    const error = envError(() => envs.step(new Int32Array(2)))
    assert.strictEqual(error.message, "counter: env 1, episode 0, step 1000: step threw RangeError: out of; range")
    assert.deepInclude({ ...error }, { env: "counter", index: 1, episode: 0, step: 1000 })
    assert.include(error.userStack ?? "", "Batch.test.ts")
  })

  it("count episodes", () => {
    const envs = broken({
      reset: (random) => (random.uniform() < 2 ? 0 : 1),
      step: (count, action) => ({ state: count + 1, reward: action === 2 ? Number.NaN : 0, terminated: count === 1 }),
    })
    for (let step = 0; step < 7; step++) envs.step(new Int32Array(2))
    assert.strictEqual(
      envError(() => envs.step(Int32Array.of(0, 2))).message,
      "counter: env 1, episode 3, step 2: reward is NaN, not a finite number",
    )
  })

  const undefinedReturn = (): Env.EnvTransition<number> => JSON.parse("null")
  it.each<[string, Partial<Env.EnvDefinition<number, { readonly _tag: "Discrete"; readonly n: number }>>, string]>([
    [
      "observes NaN",
      { observe: (count) => [count === 1 ? Number.NaN : 0] },
      "step 1: observation element 0 is NaN, not a finite number",
    ],
    [
      "observes what is too large for float32",
      { observe: (count) => [count * 1e39] },
      "observation element 0 is 1e+39",
    ],
    [
      "observes too much",
      { observe: (count) => (count === 1 ? [1, 2] : [1]) },
      "observe returned 2 numbers, the observation space wants an array of 1",
    ],
    [
      "observes nothing",
      { observe: (count) => (count === 1 ? JSON.parse("null") : [1]) },
      "observe returned null, the observation space wants an array of 1",
    ],
    [
      "observes a bare number",
      { observe: (count) => (count === 1 ? JSON.parse("3") : [1]) },
      "observe returned 3, the observation space wants an array of 1",
    ],
    ["returns nothing", { step: undefinedReturn }, "step returned null, not { state, reward, terminated }"],
    [
      "rewards with Infinity",
      { step: () => ({ ...never, reward: Infinity }) },
      "reward is Infinity, not a finite number",
    ],
    [
      "rewards with text",
      { step: () => ({ ...never, reward: JSON.parse('"1"') }) },
      'reward is "1", not a finite number',
    ],
    [
      "is async",
      { step: () => Object.assign(Promise.resolve(), never) },
      "step returned a promise (it must not be async), not { state, reward, terminated }",
    ],
    [
      "observes later",
      { observe: (count) => (count === 1 ? Object.assign(Promise.resolve(), [1]) : [1]) },
      "observe returned a promise (it must not be async), the observation space wants an array of 1",
    ],
    [
      "forgets to say whether it ended",
      { step: () => ({ ...never, terminated: JSON.parse("0") }) },
      "terminated is 0, not a boolean",
    ],
  ])("%s", (_, changes, expected) => {
    const envs = broken(changes)
    assert.include(envError(() => envs.step(new Int32Array(2))).message, expected)
  })

  it("are reported at a reset too", () => {
    const throws = () => {
      throw new Error("no such level")
    }
    assert.strictEqual(
      envError(() => broken({ reset: throws })).message,
      "counter: env 0, episode 0, reset: reset threw Error: no such level",
    )
    const later = () => JSON.parse("0")
    assert.strictEqual(
      envError(() => broken({ reset: () => Object.assign(Promise.resolve(0), later()) })).message,
      "counter: env 0, episode 0, reset: reset returned a promise (it must not be async)",
    )
    assert.include(
      envError(() => broken({ observe: () => [Number.NaN] })).message,
      "episode 0, reset: observation element 0",
    )
  })
})

describe("a caller's mistakes", () => {
  const envs = Batch.make(CartPole.env, 2)
  const fresh = () => {
    envs.reset(1)
    return envs
  }

  it.each([
    [Int32Array.of(0), "CartPole-v1: step: expected 2 numbers as actions (2 envs × 1), found 1"],
    [Int32Array.of(0, 2), "CartPole-v1: env 1, episode 0, step 1: expected an action from 0 to 1, found 2"],
    [Int32Array.of(-1, 0), "expected an action from 0 to 1, found -1"],
    [Float32Array.of(0.5, 0), "expected an action from 0 to 1, found 0.5"],
    [Float32Array.of(0, Number.NaN), "env 1, episode 0, step 1: expected an action from 0 to 1, found NaN"],
  ])("actions %o", (actions, expected) => {
    assert.include(envError(() => fresh().step(actions)).message, expected)
  })

  it("leave the envs as they were", () => {
    const before = fresh().snapshot()
    envError(() => envs.step(Int32Array.of(0, 2)))
    assert.deepEqual(envs.snapshot(), before)
  })

  it("numbers of a box must be finite", () => {
    const env = Env.make({
      id: "arm",
      observationSpace: box(0, 1),
      actionSpace: box(-1, 1, [2]),
      reset: () => 0,
      observe: (state) => [state],
      step: (state) => ({ state, reward: 0, terminated: false }),
    })
    const arms = Batch.make(env, 2)
    arms.reset(1)
    arms.step(Float32Array.of(5, 5, 5, 5))
    const message = envError(() => arms.step(Float32Array.of(0, 0, 0, Number.NaN))).message
    assert.strictEqual(message, "arm: env 1, episode 0, step 2: action element 1 is NaN; expected a finite number")
  })

  it("a batch must be reset before it is stepped, and hold envs", () => {
    assert.strictEqual(
      envError(() => Batch.make(CartPole.env, 1).step(new Int32Array(1))).message,
      "CartPole-v1: step before reset",
    )
    for (const count of [0, -1, 1.5, Number.NaN])
      assert.include(
        envError(() => Batch.make(CartPole.env, count)).message,
        `numEnvs: expected a whole number from 1, found ${count}`,
      )
  })
})

describe("snapshots", () => {
  it("hold only typed arrays that the batch no longer writes to", () => {
    const envs = Batch.make(counter(5), 2)
    envs.reset(1)
    const before = envs.snapshot()
    for (const column of Object.values(before)) assert.isTrue(ArrayBuffer.isView(column))
    const copy = structuredClone(before)
    envs.step(new Int32Array(2))
    assert.deepEqual(before, copy)
  })

  it("of a state that isn't plain data are refused", () => {
    const env = Env.make({
      id: "counter",
      observationSpace: box(0, 1),
      actionSpace: discrete(1),
      reset: () => ({ level: { seen: new Map() } }),
      observe: () => [0],
      step: (state) => ({ state, reward: 0, terminated: false }),
    })
    const envs = Batch.make(env, 1)
    envs.reset(1)
    const message = "counter: a snapshot needs a state of plain data, but state[0].level.seen is an instance of Map"
    assert.strictEqual(envError(() => envs.snapshot()).message, message)
  })

  it("of another batch don't fit", () => {
    const envs = Batch.make(CartPole.env, 2)
    envs.reset(1)
    const other = Batch.make(CartPole.env, 3)
    assert.include(
      envError(() => other.restore(envs.snapshot())).message,
      'the snapshot doesn\'t fit: "observations" should be 12 × Float32Array',
    )
    assert.include(envError(() => other.restore({})).message, '"origin" is missing')
  })

  it("taken before the first reset restore that state", () => {
    const envs = Batch.make(counter(5), 1)
    const before = envs.snapshot()
    envs.reset(1)
    envs.restore(before)
    assert.include(envError(() => envs.step(new Int32Array(1))).message, "step before reset")
  })
})

describe("drawings", () => {
  it("of one env of a batch show its state", () => {
    for (const make of [Batch.make, Batch.oneByOne]) {
      const envs = make(CartPole.env, 3)
      envs.reset(1)
      assert.include(envs.renderText?.(2) ?? "", "█")
      assert.include(envs.renderSvg?.(2) ?? "", "<svg")
    }
    assert.isUndefined(Batch.make(counter(5), 1).renderText)
  })
})
