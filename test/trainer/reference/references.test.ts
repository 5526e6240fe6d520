import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { WorkerError } from "../../../src/spread/workers/WorkerError.ts"
import { makeMicroBatch, type MicroBatch } from "../../../src/trainer/batches/MicroBatch.ts"
import { makeReferences } from "../../../src/trainer/reference/references.ts"

/** A thread that answers with the first token of each micro-batch, and is lost from the `at`-th question on. */
const fakeThread = (at = Infinity) => {
  const asked: Array<number> = []
  return {
    asked,
    compute: (microBatch: MicroBatch) =>
      Effect.sync(() => {
        const [token] = microBatch.tokens
        asked.push(token)
        return asked.length > at
          ? Effect.fail(WorkerError.lost("the thread was lost"))
          : Effect.succeed(Float32Array.of(token))
      }),
  }
}

const shape = { rows: 1, width: 4, block: 4, maxRuns: 2 }

const starting = (token: number): MicroBatch => {
  const microBatch = makeMicroBatch(shape)
  microBatch.tokens[0] = token
  return microBatch
}

describe("the references of a trainer", () => {
  it.effect("are computed once for equal micro-batches, also if the arrays are overwritten meanwhile", () =>
    Effect.gen(function* () {
      const thread = fakeThread()
      const references = makeReferences(thread)
      const microBatch = starting(1)
      yield* references.prepare(microBatch)
      yield* references.prepare(starting(1))
      microBatch.tokens[0] = 2
      yield* references.prepare(microBatch)
      assert.deepStrictEqual(yield* references.of(starting(1)), Float32Array.of(1))
      assert.deepStrictEqual(yield* references.of(starting(2)), Float32Array.of(2))
      assert.deepStrictEqual(yield* references.of(starting(3)), Float32Array.of(3))
      assert.deepStrictEqual(thread.asked, [1, 2, 3])
    }),
  )

  it.effect("are not taken from a micro-batch that differs in any array", () =>
    Effect.gen(function* () {
      const thread = fakeThread()
      const references = makeReferences(thread)
      yield* references.prepare(starting(1))
      const warmer = starting(1)
      warmer.temperatures[3] = 2
      yield* references.of(warmer)
      assert.deepStrictEqual(thread.asked, [1, 1])
    }),
  )

  it.effect("drop those that were prepared first and never needed", () =>
    Effect.gen(function* () {
      const thread = fakeThread()
      const references = makeReferences(thread)
      for (const token of [1, 2, 3, 4, 5]) yield* references.prepare(starting(token))
      for (const token of [5, 2, 1]) yield* references.of(starting(token))
      assert.deepStrictEqual(thread.asked, [1, 2, 3, 4, 5, 1])
    }),
  )

  it.effect("are left to the trainer when the thread is lost", () =>
    Effect.gen(function* () {
      const thread = fakeThread(1)
      const references = makeReferences(thread)
      assert.deepStrictEqual(yield* references.of(starting(1)), Float32Array.of(1))
      assert.isUndefined(yield* references.of(starting(2)))
      yield* references.prepare(starting(3))
      assert.isUndefined(yield* references.of(starting(3)))
      assert.deepStrictEqual(thread.asked, [1, 2])
    }),
  )
})
