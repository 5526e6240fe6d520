import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Batch from "../../../src/rl/env/Batch.ts"
import { check } from "../../../src/rl/env/check.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { envConfigOf } from "../../../src/rl/env/Envs.ts"
import { fromConfig } from "../../../src/rl/env/fromConfig.ts"
import * as BitFlip from "../../../src/rl/env/games/BitFlip.ts"
import * as GoalEnv from "../../../src/rl/env/GoalEnv.ts"
import { box, dict, discrete } from "../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const place = box(0, 9)
const definition = {
  id: "corridor",
  observationSpace: dict({ observation: place, achieved_goal: place, desired_goal: place }),
  actionSpace: discrete(2),
  maxSteps: 20,
  reset: () => ({ at: 0, goal: 2 }),
  observe: ({ at, goal }: { readonly at: number; readonly goal: number }) => ({
    observation: [at],
    achieved_goal: [at],
    desired_goal: [goal],
  }),
  step: ({ at, goal }: { readonly at: number; readonly goal: number }, action: number) => ({ at: at + action, goal }),
  computeReward: (achieved: ArrayLike<number>, desired: ArrayLike<number>) => achieved[0] - desired[0],
}

describe("a goal env", () => {
  it("computes rewards and ends from its goals", () => {
    const endless = Batch.make(GoalEnv.make(definition), 1)
    const ending = Batch.make(
      GoalEnv.make({ ...definition, computeTerminated: (achieved, desired) => achieved[0] === desired[0] }),
      1,
    )
    for (const [envs, ends] of [
      [endless, [0, 0, 0]],
      [ending, [0, 0, 1]],
    ] as const) {
      envs.reset(1)
      const steps = [1, 0, 1].map((action) => {
        envs.step(Int32Array.of(action))
        return [envs.rewards[0], envs.terminated[0]]
      })
      assert.deepStrictEqual(steps, [
        [-1, ends[0]],
        [-1, ends[1]],
        [0, ends[2]],
      ])
    }
  })

  it("keeps its goals under a time limit, and not under wrappers that change rewards", () => {
    const env = GoalEnv.make(definition)
    assert.strictEqual(GoalEnv.goalsOf(Wrapper.timeLimit(env, 5)), GoalEnv.goalsOf(env))
    assert.isDefined(GoalEnv.goalsOf(env))
    assert.isUndefined(GoalEnv.goalsOf(Wrapper.scaleReward(env, 2)))
  })

  it("has observations with both goals, in one space", () => {
    const goals = { computeReward: () => 0 }
    assert.throws(
      () => GoalEnv.withGoals({ ...CartPole.env }, goals),
      /expected a dict with observation, achieved_goal/,
    )
    const observationSpace = dict({ observation: place, achieved_goal: place, desired_goal: box(0, 1, [2]) })
    assert.throws(
      () => GoalEnv.withGoals({ ...BitFlip.env, observationSpace }, goals),
      /expected achieved_goal and desired_goal in one space, found Box\(\[1\]\) and Box\(\[2\]\)/,
    )
  })

  it("knows the places of its goals in a row", () => {
    const { space: _, desired: __, ...places } = GoalEnv.layoutOf(definition.observationSpace) ?? {}
    assert.deepStrictEqual(places, { achievedAt: 1, desiredAt: 2 })
  })
})

describe("BitFlip", () => {
  it("is a valid env", () => {
    assert.deepStrictEqual(check(BitFlip.env), [])
  })

  it("rewards the goal alone, which ends the episode", () => {
    const env = BitFlip.make({ bits: 4 })
    const state = { bits: [0, 1, 1, 0], goal: [0, 1, 0, 0] }
    const reached = env.step(state, 2, stream(1))
    assert.deepStrictEqual([reached.reward, reached.terminated], [1, true])
    const other = env.step(state, 3, stream(1))
    assert.deepStrictEqual([other.state.bits, other.reward, other.terminated], [[0, 1, 1, 1], 0, false])
    assert.strictEqual(env.maxSteps, 4)
  })

  it.effect("is made from a config", () =>
    Effect.gen(function* () {
      const env = BitFlip.make({ bits: 5, maxSteps: 7 })
      const same = yield* fromConfig(envConfigOf(env), { source: "test" })
      assert.deepStrictEqual([same.id, same.maxSteps], ["BitFlip-5-v0", 7])
      assert.isDefined(GoalEnv.goalsOf(same))
    }),
  )
})
