import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

describe("learnerOf", () => {
  it.effect("compiles a description, and takes a learner as it is, also one with a `use` of its own", () =>
    Effect.gen(function* () {
      const algorithm = A2c.make({ hidden: [4] })
      const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
      const task = { ...CartPole.env, numEnvs: 1, totalSteps: 100, seed: 1 }
      const learner = yield* learnerOf(configured, task)
      assert.isFunction(learner.rollout)
      const own = { ...learner, use: () => assert.fail("is the learner's own") }
      assert.strictEqual(yield* learnerOf({ setup: () => Effect.succeed(own) }, task), own)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )
})
