import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Dispatcher from "../src/spread/cluster/Dispatcher.ts"
import { layerUnreliable } from "../src/spread/cluster/unreliable.ts"
import { stream } from "../src/base/rng/Rng.ts"

/** Draws numbers by the seed and the index of the job, as rollouts do; some jobs fail. */
const draw = Dispatcher.job({
  name: "draw",
  payload: Schema.Struct({ seed: Schema.Int, index: Schema.Int }),
  result: Schema.Array(Schema.Finite),
  failure: Schema.String,
  key: ({ seed, index }) => `${seed}/${index}`,
})

const drawn = ({ seed, index }: { readonly seed: number; readonly index: number }) => {
  const random = stream(seed, "draw", index)
  const numbers = Array.from({ length: random.integer(4) }, () => random.uniform())
  return index % 5 === 4 ? Effect.fail(`job ${index}`) : Effect.succeed(numbers)
}

const all = (seed: number, count: number, concurrency: number) =>
  Effect.gen(function* () {
    const dispatcher = yield* Dispatcher.Dispatcher
    const indices = Array.from({ length: count }, (_, index) => ({ seed, index }))
    return yield* Effect.forEach(indices, (payload) => Effect.result(dispatcher.run(draw, payload, drawn(payload))), {
      concurrency,
    })
  })

describe("a dispatcher", () => {
  it("gives the results of one machine, though jobs and answers are lost, repeated, late and out of order", () =>
    fc.assert(
      fc.asyncProperty(
        fc.record({ seed: fc.nat(), faults: fc.nat(), count: fc.nat(30), concurrency: fc.integer({ min: 1, max: 9 }) }),
        async ({ seed, faults, count, concurrency }) => {
          const here = await Effect.runPromise(all(seed, count, 1))
          let performed = 0
          const handler = Dispatcher.handler(draw, (payload) => Effect.suspend(() => (performed++, drawn(payload))))
          const layer = layerUnreliable({ seed: faults, handlers: [handler] })
          const spread = await Effect.runPromise(Effect.provide(all(seed, count, concurrency), layer))
          assert.deepStrictEqual(spread, here)
          assert.isAtLeast(performed, count)
          // With thirty jobs, it would take a broken network that never fails to do each of them once.
          if (count === 30) assert.isAbove(performed, count)
        },
      ),
      { numRuns: 100 },
    ))
})
