import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Batch from "../../../src/env/Batch.ts"
import * as CartPole from "../../../src/env/classic/CartPole.ts"
import { EnvPool } from "../../../src/env/EnvPool.ts"
import * as pool from "../../../src/env/pool/pool-node.ts"

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
})
