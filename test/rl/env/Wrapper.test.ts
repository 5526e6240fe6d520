import { assert, describe, it } from "vitest"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as Catch from "../../../src/rl/env/pixel/Catch.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { envError } from "./errors.ts"

/** Hands its actions back as its observation and, the first number, as its reward. */
const echo = Env.make({
  id: "echo",
  observationSpace: box(-100, 100, [2]),
  actionSpace: box([-2, 0], [2, 10]),
  reset: (): ReadonlyArray<number> => [0, 0],
  observe: (last) => last,
  step: (_, action) => ({ state: Array.from(action), reward: action[0], terminated: false }),
})

/** Counts its steps, and ends after `length` of them; action 1 counts twice. */
const counter = (length: number) =>
  Env.make({
    id: "counter",
    observationSpace: box(0, 100),
    actionSpace: discrete(2),
    reset: () => 0,
    observe: (count) => [count],
    step: (count, action) => ({ state: count + 1 + action, reward: count, terminated: count + 1 >= length }),
    renderText: (count) => `count ${count}`,
  })

const stepped = (env: Env.Env, ...actions: ReadonlyArray<number>) => {
  const envs = Batch.make(env, 1)
  envs.reset(1)
  envs.step(Float32Array.from(actions))
  return envs
}

describe("keepObservations", () => {
  it("calls the functions of the env's own batch as its methods", () => {
    const withMethods = Env.make({
      ...echo,
      batch: (numEnvs, options) => {
        const { step, ...inner } = Batch.oneByOne(echo, numEnvs, options)
        const batch = {
          ...inner,
          inner: { step },
          step(actions: Float32Array | Int32Array) {
            this.inner.step(actions)
          },
        }
        return batch
      },
    })
    const envs = stepped(Wrapper.keepObservations(withMethods, [1]), 1, 7)
    assert.deepStrictEqual([...envs.observations], [7])
  })
})

describe("timeLimit", () => {
  it("uses the lower of the two limits", () => {
    assert.strictEqual(Wrapper.timeLimit(counter(9), 5).maxSteps, 5)
    assert.strictEqual(Wrapper.timeLimit(Wrapper.timeLimit(counter(9), 5), 7).maxSteps, 5)
    assert.include(envError(() => Wrapper.timeLimit(echo, 0)).message, "timeLimit: 0 steps")
  })

  it("also limits the env's own batch", () => {
    const envs = Batch.make(Wrapper.timeLimit(CartPole.env, 2), 1)
    envs.reset(1)
    envs.step(new Int32Array(1))
    assert.strictEqual(envs.truncated[0], 0)
    envs.step(new Int32Array(1))
    assert.strictEqual(envs.truncated[0], 1)
  })
})

describe("clipAction", () => {
  it.each([
    [
      [5, -5],
      [2, 0],
    ],
    [
      [-5, 50],
      [-2, 10],
    ],
    [
      [0.5, 0.25],
      [0.5, 0.25],
    ],
  ])("%o is %o to the env", (action, expected) => {
    const env = Wrapper.clipAction(echo)
    assert.deepEqual([...stepped(env, ...action).observations], expected)
    assert.deepEqual(env.actionSpace.high, [Infinity, Infinity])
  })
})

describe("rescaleAction", () => {
  it.each([
    [
      [-1, -1],
      [-2, 0],
    ],
    [
      [1, 1],
      [2, 10],
    ],
    [
      [0, 0],
      [0, 5],
    ],
    [
      [0.5, -0.5],
      [1, 2.5],
    ],
  ])("%o is %o to the env", (action, expected) => {
    const env = Wrapper.rescaleAction(echo)
    assert.deepEqual([...stepped(env, ...action).observations], expected)
    assert.deepEqual(env.actionSpace, box(-1, 1, [2]))
  })

  it("needs finite bounds", () => {
    assert.include(envError(() => Wrapper.rescaleAction(Wrapper.clipAction(echo))).message, "no finite bounds")
    assert.include(envError(() => Wrapper.rescaleAction(echo, 1, 1)).message, "low 1 is not below high 1")
  })
})

describe("clipReward and scaleReward", () => {
  it.each([
    [2, 1],
    [-2, -1],
    [0.25, 0.25],
  ])("%s is cut to %s", (reward, expected) => {
    assert.strictEqual(stepped(Wrapper.clipReward(echo), reward, 0).rewards[0], expected)
  })

  it("scales", () => {
    assert.strictEqual(stepped(Wrapper.scaleReward(echo, 8), 0.25, 0).rewards[0], 2)
    assert.strictEqual(stepped(Wrapper.clipReward(Wrapper.scaleReward(echo, 8), 0, 1.5), 0.25, 0).rewards[0], 1.5)
  })

  it("keeps the env's own batch, with the same results", () => {
    const env = Wrapper.scaleReward(Wrapper.rescaleAction(Pendulum.env), 0.1)
    const fast = Batch.make(env, 4)
    const slow = Batch.oneByOne(env, 4)
    for (const envs of [fast, slow]) envs.reset(7)
    for (let step = 0; step < 300; step++) {
      const actions = Float32Array.from([0, 1, 2, 3], (index) => ((step * 37 + index * 11) % 41) / 20 - 1)
      fast.step(actions)
      slow.step(actions)
      assert.deepEqual(fast.rewards, slow.rewards)
      assert.deepEqual(fast.observations, slow.observations)
    }
  })

  it("gives reward 0 for a step that only resets", () => {
    const envs = Batch.make(Wrapper.clipReward(Wrapper.timeLimit(CartPole.env, 1), 5, 6), 1, { autoReset: "next-step" })
    envs.reset(1)
    envs.step(new Int32Array(1))
    assert.strictEqual(envs.rewards[0], 5)
    envs.step(new Int32Array(1))
    assert.strictEqual(envs.rewards[0], 0)
    envs.step(new Int32Array(1))
    assert.strictEqual(envs.rewards[0], 5)
  })
})

describe("frameStack", () => {
  it("holds the last frames, oldest first, the first one repeated at the start", () => {
    const env = Wrapper.frameStack(counter(4), 3)
    assert.deepEqual(env.observationSpace.shape, [3, 1])
    const envs = Batch.make(env, 1)
    envs.reset(1)
    const rows = [[...envs.observations]]
    for (let step = 0; step < 4; step++) {
      envs.step(new Int32Array(1))
      rows.push([...envs.observations])
    }
    assert.deepEqual(rows, [
      [0, 0, 0],
      [0, 0, 1],
      [0, 1, 2],
      [1, 2, 3],
      [0, 0, 0],
    ])
    assert.deepEqual([...envs.finalObservations], [2, 3, 4])
    assert.strictEqual(envs.renderText?.(0), "count 0")
  })

  it("stacks images along their channels", () => {
    const [channels, ...size] = Catch.env.observationSpace.shape
    assert.deepEqual(Wrapper.frameStack(Catch.env, 4).observationSpace.shape, [4 * channels, ...size])
  })
})

describe("stickyActions", () => {
  it("repeats the last action with about the given probability", () => {
    const steps = 8000
    const env = Wrapper.stickyActions(echo, 0.25)
    const envs = Batch.make(env, 1)
    envs.reset(1)
    let repeated = 0
    let last = Number.NaN
    for (let step = 0; step < steps; step++) {
      envs.step(Float32Array.of(step % 50, 0))
      if (envs.rewards[0] === last) repeated++
      else assert.strictEqual(envs.rewards[0], step % 50)
      last = envs.rewards[0]
    }
    assert.approximately(repeated / steps, 0.25, 0.02)
    assert.include(envError(() => Wrapper.stickyActions(echo, 1)).message, "probability 1 is not in [0, 1)")
  })

  it("with probability 0 is the env itself", () => {
    assert.deepEqual([...stepped(Wrapper.stickyActions(echo, 0), 1, 2).observations], [1, 2])
  })
})

describe("noopStarts", () => {
  it("begins after 1 to 5 steps", () => {
    const envs = Batch.make(Wrapper.noopStarts(counter(100), 0, 5), 200)
    envs.reset(3)
    assert.deepEqual([...new Set(envs.observations)].sort(), [1, 2, 3, 4, 5])
  })

  it("needs a no-op action of the env", () => {
    assert.include(
      envError(() => Wrapper.noopStarts(counter(9), 2)).message,
      "noopStarts: 2 is no action of Discrete(2)",
    )
    assert.include(envError(() => Wrapper.noopStarts(counter(9), 0.5)).message, "noopStarts: 0.5 is no action")
    const outside = envError(() => Wrapper.noopStarts(echo, [0, 11]))
    assert.strictEqual(outside.message, "echo: noopStarts: [0,11] is no action of Box([2])")
    assert.include(envError(() => Wrapper.noopStarts(echo, [0])).message, "[0] is no action of Box([2])")
    assert.strictEqual(Wrapper.noopStarts(echo, [0, 1]).id, "echo")
  })

  it("resets if an episode ends during the no-op steps", () => {
    const envs = Batch.make(Wrapper.noopStarts(counter(2), 0, 5), 200)
    envs.reset(3)
    assert.deepEqual([...new Set(envs.observations)].sort(), [0, 1])
  })
})
