import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Bc from "../../../../src/rl/algorithms/demonstrations/Bc.ts"
import * as Gail from "../../../../src/rl/algorithms/demonstrations/Gail.ts"
import * as Iql from "../../../../src/rl/algorithms/demonstrations/Iql.ts"
import { CartPole, Transitions } from "../../../../src/index.ts"
import type { Algorithm } from "../../../../src/rl/learner/Algorithm.ts"
import { lock } from "../../env/locks.ts"
import { keep } from "../../train/inMemory.ts"

const data = Transitions.record(CartPole.env, { episodes: 2, policy: "random", seed: 1 })
const [first] = data.lengths

const problemOf = (algorithm: Algorithm) =>
  Effect.map(Effect.flip(keep({ env: CartPole.env, algorithm, totalSteps: 64 })), ({ message }) => message)

describe("data that an algorithm can't learn from", () => {
  const steps: Readonly<Record<string, readonly [Partial<Transitions.Transitions>, string]>> = {
    "another action": [
      { actions: Int32Array.from(data.actions).with(3, 7) },
      "actions: step 3: expected a whole number from 0 to 1, found 7",
    ],
    "an observation that is no number": [
      { observations: data.observations.with(9, NaN) },
      "observations: step 2: expected finite numbers, found NaN",
    ],
  }
  for (const [what, [fields, message]] of Object.entries(steps)) {
    it.effect(`is refused: ${what}`, () =>
      Effect.gen(function* () {
        assert.include(yield* problemOf(Bc.make({ ...data, ...fields })), `bc: ${message}`)
        assert.include(yield* problemOf(Iql.make({ ...data, ...fields })), `iql: ${message}`)
        assert.include(yield* problemOf(Gail.make({ ...data, ...fields })), `gail: ${message}`)
      }),
    )
  }

  it.effect("is refused: an action that the mask forbids", () =>
    Effect.gen(function* () {
      const unlocked = Transitions.record(lock, { episodes: 1, policy: "random" })
      // The second step chooses the second number of the first wheel.
      const forbidden = { ...unlocked, actions: Int32Array.from(unlocked.actions).with(2, 1) }
      for (const algorithm of [Bc.make(forbidden), Iql.make(forbidden), Gail.make(forbidden)]) {
        const { message } = yield* Effect.flip(keep({ env: lock, algorithm, totalSteps: 64 }))
        assert.include(message, "actions: step 1: the action mask forbids 1")
      }
    }),
  )

  const episodes: Readonly<Record<string, readonly [Partial<Transitions.Transitions>, string]>> = {
    "a reward that is no number": [
      { rewards: data.rewards.with(5, NaN) },
      "rewards: expected finite numbers, found NaN at 5",
    ],
    "an infinite last observation": [
      { finalObservations: data.finalObservations.with(6, Infinity) },
      "finalObservations: expected finite numbers, found Infinity at 6",
    ],
    "no episodes": [
      { lengths: new Int32Array(0) },
      `lengths: expected those of the episodes of ${data.rows} steps, found []`,
    ],
    "a negative length": [
      { lengths: Int32Array.of(data.rows + 1, -1) },
      `lengths: expected those of the episodes of ${data.rows} steps, found [${data.rows + 1},-1]`,
    ],
    "too few rewards": [
      { rewards: data.rewards.subarray(0, first) },
      `rewards: expected ${data.rows} numbers, found ${first}`,
    ],
    "too few endings": [{ terminated: Uint8Array.of(1) }, "terminated: expected 2 numbers, found 1"],
    "too few last observations": [
      { finalObservations: data.finalObservations.subarray(0, 4) },
      "finalObservations: expected 8 numbers, found 4",
    ],
  }
  for (const [what, [fields, message]] of Object.entries(episodes)) {
    it.effect(`is refused: ${what}`, () =>
      Effect.gen(function* () {
        assert.include(yield* problemOf(Iql.make({ ...data, ...fields })), `iql: ${message}`)
      }),
    )
  }
})
