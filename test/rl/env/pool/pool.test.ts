import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../../src/rl/env/classic/CartPole.ts"
import { EnvPool } from "../../../../src/rl/env/EnvPool.ts"
import { rowSpaceOf } from "../../../../src/rl/env/Env.ts"
import { drawAllowed } from "../../../../src/rl/env/internal/rows.ts"
import * as pool from "../../../../src/rl/env/pool/pool-node.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { diverging, masked } from "./envs.ts"

describe("a pool of worker threads", () => {
  it.effect("equals the batch in process to the bit", () =>
    Effect.gen(function* () {
      const { make } = yield* EnvPool
      const threads = yield* make(CartPole.env, 3, { workers: 2 })
      const here = Batch.make(CartPole.env, 3)
      for (const batch of [threads, here]) batch.reset(4)
      for (let step = 0; step < 30; step++) {
        for (const batch of [threads, here]) batch.step(Int32Array.of(0, step % 2, 1))
        assert.deepStrictEqual(threads.observations, here.observations)
        assert.deepStrictEqual(threads.terminated, here.terminated)
      }
    }).pipe(Effect.provide(pool.layer), Effect.scoped),
  )

  it.effect("tells which simulations diverged", () =>
    Effect.gen(function* () {
      const { make } = yield* EnvPool
      const threads = yield* make(diverging, 3, { workers: 2 })
      const here = Batch.make(diverging, 3)
      let count = 0
      for (const batch of [threads, here]) batch.reset(4)
      for (let step = 0; step < 12; step++) {
        for (const batch of [threads, here]) batch.step(new Int32Array(3))
        assert.deepStrictEqual(threads.diverged, here.diverged)
        for (const flag of here.diverged ?? []) count += flag
      }
      assert.isAbove(count, 0)
    }).pipe(Effect.provide(pool.layer), Effect.scoped),
  )

  it.effect(
    "has the action masks of the batch in process, and refuses forbidden actions",
    () =>
      Effect.gen(function* () {
        const { make } = yield* EnvPool
        const threads = yield* make(masked, 3, { workers: 2 })
        const here = Batch.make(masked, 3)
        const actions = new Int32Array(3)
        const random = stream(1, "pool")
        for (const batch of [threads, here]) batch.reset(4)
        const space = rowSpaceOf(masked)
        assert.deepStrictEqual(threads.observationSpace, space)
        for (let step = 0; step < 40 && space._tag === "Masked"; step++) {
          drawAllowed(space, here.observations, random, actions)
          for (const batch of [threads, here]) batch.step(actions)
          assert.deepStrictEqual(threads.observations, here.observations)
        }
        const mask = here.observations.subarray(threads.observationSize - 4, threads.observationSize)
        actions[0] = mask.indexOf(0)
        if (actions[0] >= 0) assert.throws(() => threads.step(actions), `the action mask forbids ${actions[0]}`)
      }).pipe(Effect.provide(pool.layer), Effect.scoped),
    { tags: "slow" },
  )
})
