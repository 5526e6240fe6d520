import { assert, describe, it } from "vitest"
import * as Batch from "../../../src/rl/env/Batch.ts"
import { check } from "../../../src/rl/env/check.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { drawAllowed } from "../../../src/rl/env/internal/rows.ts"
import * as Normalise from "../../../src/rl/env/Normalise.ts"
import { box, discrete, masked, multiBinary, multiDiscrete, partsOf, tuple } from "../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { courier } from "./courier.ts"
import { envError } from "./errors.ts"

const env = courier(4)

/** Counts up to 5; its choices are [3, 2], and the mask is the one that is given. */
const masking = (actionMask: (count: number) => ArrayLike<number | boolean>) =>
  Env.make({
    id: "masking",
    observationSpace: box(0, 5),
    actionSpace: multiDiscrete([3, 2]),
    reset: () => 0,
    observe: (count) => [count],
    step: (count, [by]) => ({ state: count + by, reward: by, terminated: count + by >= 5 }),
    actionMask,
  })

describe("a batch of an env with action masks", () => {
  it("has the mask after each observation", () => {
    const batch = Batch.make(env, 2)
    batch.reset(1)
    assert.strictEqual(batch.observationSize, 3 * 16 + 1 + 1 + 4)
    assert.strictEqual(batch.observationSpace._tag, "Masked")
    const place = batch.observations.indexOf(1)
    const [x, y] = [place % 4, Math.floor(place / 4)]
    assert.deepEqual(Array.from(batch.observations.subarray(50, 54)), [y > 0, y < 3, x > 0, x < 3].map(Number))
  })

  it("refuses a forbidden action", () => {
    const batch = Batch.make(
      masking(() => [1, 0, 1, true, false]),
      2,
    )
    batch.reset(1)
    batch.step(Int32Array.of(2, 0, 0, 0))
    const error = envError(() => batch.step(Int32Array.of(2, 0, 1, 0)))
    assert.strictEqual(
      error.message,
      "masking: env 1, episode 0, step 2: the action mask forbids 1 as element 0 of the action",
    )
    assert.include(envError(() => batch.step(Int32Array.of(2, 0, 2, 2))).message, "element 1 of the action from 0 to 1")
  })

  it.each([
    [[0, 0, 0, 1, 1], "actionMask forbids all 3 choices of element 0; expected at least one that is allowed"],
    [[0, 1, 1, 0, false], "actionMask forbids all 2 choices of element 1"],
    [[1, 1], "actionMask returned 2 elements; expected 5, one for each choice"],
    [[1, 1, 0.5, 1, 1], "actionMask: element 2 is 0.5, not 0, 1, false or true"],
  ])("names env, step and problem of the mask %o", (mask, problem) => {
    const batch = Batch.make(
      masking((count) => (count < 2 ? [1, 1, 1, 1, 1] : mask)),
      2,
    )
    batch.reset(1)
    batch.step(Int32Array.of(1, 0, 0, 1))
    const error = envError(() => batch.step(Int32Array.of(1, 0, 0, 1)))
    assert.include(error.message, `masking: env 0, episode 0, step 2: ${problem}`)
    assert.deepEqual([error.index, error.step], [0, 2])
  })

  it("does not ask for the mask of a terminal state", () => {
    const asked: Array<number> = []
    const batch = Batch.make(
      masking((count) => {
        asked.push(count)
        return [1, 1, 1, 1, 1]
      }),
      1,
    )
    batch.reset(1)
    for (let step = 0; step < 4; step++) batch.step(Int32Array.of(2, 0))
    assert.deepEqual(asked, [0, 2, 4, 0, 2])
    assert.deepEqual([...batch.finalObservations], [6, 1, 1, 1, 1, 1])
  })

  it("continues from a snapshot", () => {
    const [one, other] = [Batch.make(env, 3), Batch.make(env, 3)]
    const random = stream(1, "snapshot")
    const actions = new Int32Array(3)
    const step = (batch: typeof one) => {
      if (batch.observationSpace._tag === "Masked") {
        drawAllowed(batch.observationSpace, batch.observations, random.child(0), actions)
      }
      batch.step(actions)
    }
    one.reset(1)
    for (let count = 0; count < 10; count++) step(one)
    other.restore(one.snapshot())
    for (let count = 0; count < 10; count++) {
      step(one)
      step(other)
      assert.deepEqual([...other.observations], [...one.observations])
    }
  })

  it("takes an own batch only with masks in its rows", () => {
    const wrong = { ...CartPole.env, actionMask: () => [1, 1] }
    assert.include(
      envError(() => Batch.make(wrong, 2)).message,
      "its own batch has rows of 4 numbers; expected 6 numbers",
    )
    assert.strictEqual(Batch.oneByOne(wrong, 2).observationSize, 6)
  })
})

describe("random actions", () => {
  it("are allowed, each equally often", () => {
    const space = masked(box(0, 1), multiDiscrete([3, 2]))
    const actions = new Int32Array(2)
    const random = stream(1, "allowed")
    const counts = [0, 0, 0, 0, 0]
    for (let draw = 0; draw < 3000; draw++) {
      drawAllowed(space, [0.3, 1, 0, 1, 0, 1], random, actions)
      counts[actions[0]]++
      counts[3 + actions[1]]++
    }
    assert.deepEqual([counts[1], counts[3], counts[4]], [0, 0, 3000])
    assert.approximately(counts[0], 1500, 150)
  })

  it("are those without a mask if everything is allowed", () => {
    const space = masked(box(0, 1), discrete(5))
    const [random, same] = [stream(1, "same"), stream(1, "same")]
    const actions = new Int32Array(1)
    for (let draw = 0; draw < 100; draw++) {
      drawAllowed(space, [0, 1, 1, 1, 1, 1], random, actions)
      assert.strictEqual(actions[0], same.integer(5))
    }
  })
})

describe("checkEnv", () => {
  it("plays only allowed actions, and finds no fault", () => {
    assert.deepEqual(check(env), [])
  })

  it("finds wrong masks and wrong parts", () => {
    const faults = check({ ...env, actionMask: () => [0, 0, 0, 0] })
    assert.include(
      faults.map(({ rule }) => rule),
      "mask",
    )
    const [fault] = check({
      ...env,
      observe: (state: Parameters<typeof env.observe>[0]) => ({ ...env.observe(state), letter: 2 }),
    })
    assert.strictEqual(fault.rule, "observation")
    assert.include(fault.message, "observation.letter is 2; expected a whole number from 0 to 1")
  })
})

describe("wrappers", () => {
  it("normalise only real numbers", () => {
    const batch = Normalise.observations(Batch.make(env, 4))
    batch.reset(1)
    const raw = Batch.make(env, 4)
    raw.reset(1)
    for (let row = 0; row < 4; row++) {
      for (let column = 49; column < 54; column++) {
        assert.strictEqual(batch.observations[row * 54 + column], raw.observations[row * 54 + column])
      }
    }
    assert.notStrictEqual(batch.observations[48], raw.observations[48])
  })

  it("stack the real parts of observations, and keep masks", () => {
    const stacked = Wrapper.frameStack(env, 3)
    assert.deepEqual(
      partsOf(stacked.observationSpace).map(({ path, space, size }) => [path, space._tag, size]),
      [
        ["map", "Box", 144],
        ["fuel", "Box", 3],
        ["letter", "Discrete", 1],
      ],
    )
    assert.deepEqual(check(stacked), [])
    const batch = Batch.make(stacked, 1)
    batch.reset(1)
    assert.strictEqual(batch.observationSize, 152)
  })

  it("do not repeat an action that is forbidden now", () => {
    assert.deepEqual(check(Wrapper.stickyActions(env, 0.9)), [])
    const error = envError(() => Batch.make(Wrapper.noopStarts(env, 0, 5), 8).reset(1))
    assert.include(error.message, "noopStarts: the action mask forbids 0")
  })

  it("keep elements of boxes together with the mask", () => {
    const { batch: _, ...cartPole } = CartPole.env
    const kept = Wrapper.keepObservations({ ...cartPole, actionMask: () => [1, 0] }, [2])
    const batch = Batch.make(kept, 1)
    batch.reset(1)
    assert.deepEqual([...batch.observations].slice(1), [1, 0])
  })
})

describe("a batch of an env with switches", () => {
  it("takes zeros and ones", () => {
    const switches = Env.make({
      id: "switches",
      observationSpace: tuple(multiBinary(2), discrete(3)),
      actionSpace: multiBinary(2),
      reset: () => [0, 0],
      observe: (state) => [state, 2] as const,
      step: (_state, action) => ({ state: [...action], reward: action[0], terminated: false }),
    })
    assert.deepEqual(check(switches), [])
    const batch = Batch.make(switches, 2)
    batch.reset(1)
    batch.step(Int32Array.of(1, 0, 0, 1))
    assert.deepEqual([...batch.observations], [1, 0, 2, 0, 1, 2])
    assert.include(envError(() => batch.step(Int32Array.of(2, 0, 0, 1))).message, "from 0 to 1, found 2")
  })
})
