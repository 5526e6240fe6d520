import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, FileSystem, Layer, Schema } from "effect"
import * as RolloutEngine from "../src/agents/episode/rollouts/RolloutEngine.ts"
import * as RolloutRequest from "../src/agents/episode/rollouts/RolloutRequest.ts"
import * as SingleAgent from "../src/agents/episode/protocols/SingleAgent.ts"
import { batchOf, failing, newPath, parrot, textOf, written, yields } from "../test/agents/episode/rollouts/batch.ts"

const files = Layer.merge(NodeFileSystem.layer, NodePath.layer)
const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))
const natural = (most: number) => between(0, most)
const naturals = (most: number) => Schema.Array(natural(most)).check(Schema.isMinLength(1))

describe("batches of episodes", () => {
  it.effect.prop(
    "the file of a batch is the same however many are played at a time, and whichever is done first",
    [naturals(6), Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 }))],
    ([delays, concurrency]) =>
      Effect.gen(function* () {
        const wait = (episode: number) => yields(delays[episode % delays.length])
        const expected = yield* written(batchOf(7, { concurrency: 1 }))
        const one = yield* written(batchOf(7, { concurrency, protocol: SingleAgent.make(parrot(wait)) }))
        assert.strictEqual(one, expected)
      }).pipe(Effect.provide(files)),
    { tags: "slow" },
  )

  it.effect.prop(
    "the file of a batch is the same wherever it was interrupted, and however often",
    [naturals(12), naturals(5), Schema.Literals(["record", "drop"])],
    ([stops, delays, onFailure]) =>
      Effect.gen(function* () {
        const failures = (episode: number) => (episode % 3 === 0 ? Infinity : 0)
        const about = { onFailure, protocol: failing(SingleAgent.make(parrot()), failures) }
        const expected = yield* written(batchOf(7, about))
        const path = yield* newPath
        for (const stop of stops) {
          const stopped = yield* Deferred.make<void>()
          let finished = 0
          const wait = (episode: number) => yields(delays[episode % delays.length])
          const run = RolloutEngine.write(
            batchOf(7, {
              ...about,
              protocol: failing(SingleAgent.make(parrot(wait)), failures),
              onEvent: ({ _tag }) =>
                _tag === "Finished" && finished++ === stop ? Deferred.succeed(stopped, undefined) : Effect.void,
            }),
            path,
          )
          yield* Effect.raceFirst(run, Deferred.await(stopped))
          assert.isTrue(expected.startsWith(yield* textOf(path)))
        }
        const summary = yield* RolloutEngine.write(batchOf(7, about), path)
        assert.strictEqual(yield* textOf(path), expected)
        const [failed, dropped] = onFailure === "drop" ? [0, 4] : [4, 0]
        assert.deepInclude(summary, { requests: 14, rollouts: 10, failed, dropped })
      }).pipe(Effect.scoped, Effect.provide(files)),
    { tags: "slow" },
  )

  it.effect.prop(
    "the file of a batch is gone on with wherever it was cut",
    [Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))],
    ([share]) =>
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        const path = yield* newPath
        const expected = yield* written(batchOf(3))
        yield* fs.writeFileString(path, expected)
        yield* fs.truncate(path, Math.floor(share * expected.length))
        const lines = (yield* textOf(path)).split("\n").length - 1
        const played: Array<number> = []
        const summary = yield* RolloutEngine.write(
          batchOf(3, {
            onEvent: (event) => Effect.sync(() => void (event._tag === "Started" && played.push(event.index))),
          }),
          path,
        )
        assert.strictEqual(yield* textOf(path), expected)
        assert.deepStrictEqual(summary, { requests: 6, rollouts: 6, failed: 0, dropped: 0, resumed: lines })
        assert.deepStrictEqual(played, [0, 1, 2, 3, 4, 5].slice(lines))
      }).pipe(Effect.scoped, Effect.provide(files)),
  )
})

describe("requests", () => {
  it.prop(
    "requests have the same seeds and ids however many there are",
    [Schema.Int, natural(20), natural(20), natural(6), natural(6), Schema.Boolean],
    ([seed, size, more, n, others, varyEnv]) => {
      const few = [...RolloutRequest.forTasks({ size }, { seed })]
      const many = [...RolloutRequest.forTasks({ size: size + more }, { seed })]
      assert.deepStrictEqual(many.slice(0, size), few)
      for (const request of few) {
        const repeated = RolloutRequest.repeat(request, n, { varyEnv })
        assert.deepStrictEqual(RolloutRequest.repeat(request, n + others, { varyEnv }).slice(0, n), repeated)
      }
      assert.deepStrictEqual(
        [...RolloutRequest.expand(few, n)],
        few.flatMap((request) => RolloutRequest.repeat(request, n)),
      )
    },
  )

  it.prop("requests have different seeds and ids", [Schema.Int, natural(40), natural(12)], ([seed, size, n]) => {
    const all = [...RolloutRequest.expand(RolloutRequest.forTasks({ size }, { seed }), n, { varyEnv: true })]
    const seeds = all.flatMap(({ envSeed, samplingSeed }) => [envSeed, samplingSeed])
    assert.strictEqual(new Set(seeds).size, 2 * size * n)
    assert.strictEqual(new Set(all.map(({ id }) => id)).size, size * n)
    assert.isTrue(seeds.every((one) => Number.isSafeInteger(one) && one >= 0))
  })
})
