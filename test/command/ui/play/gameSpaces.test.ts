import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import { makeGame } from "../../../../src/command/ui/play/game.ts"
import { type Env, rowSpaceOf } from "../../../../src/rl/env/Env.ts"
import { courier } from "../../../rl/env/courier.ts"
import { lock } from "../../../rl/env/locks.ts"
import { learnerOf } from "../../../../src/rl/learner/learnerOf.ts"

const gameOf = (env: Env) =>
  Effect.gen(function* () {
    const algorithm = Ppo.make({ hidden: [8] })
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const task = {
      observationSpace: rowSpaceOf(env),
      actionSpace: env.actionSpace,
      numEnvs: 1,
      totalSteps: 100,
      seed: 5,
    }
    const learner = yield* learnerOf(configured, task)
    const graph = yield* learner.policyGraph ?? Effect.die("no graph")
    return yield* makeGame(env, { ...graph, ...task, algorithm: "ppo", env: env.id, step: 0, normalisation: undefined })
  })

describe("a game in an env with parts, several choices and action masks", () => {
  it.effect("is played by the policy and by a person, who cannot take a forbidden action", () =>
    Effect.gen(function* () {
      const game = yield* gameOf(lock)
      for (let step = 0; step < 10; step++) assert.notStrictEqual((yield* game.step(null)).action[0], 1)
      assert.deepStrictEqual((yield* game.step([2, 1])).action, [2, 1])
      assert.strictEqual((yield* Effect.flip(game.step([1, 1]))).message, "lock: the action mask forbids [1, 1]")
      const outside = yield* Effect.flip(game.step([4, 0]))
      assert.strictEqual(outside.message, "lock: expected an action in MultiDiscrete([4, 2]), found [4, 0]")
      const walk = yield* gameOf(courier(4))
      for (let step = 0; step < 10; step++) assert.strictEqual((yield* walk.step(null)).action.length, 1)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )
})
