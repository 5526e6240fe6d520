import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schema } from "effect"
import * as Dispatcher from "../../../src/spread/cluster/Dispatcher.ts"
import { layerUnreliable } from "../../../src/spread/cluster/unreliable.ts"

class Odd extends Schema.TaggedError<Odd>()("Odd", { of: Schema.Int, message: Schema.String }) {}

/** Halves even numbers, and refuses odd ones. */
const halve = Dispatcher.job({
  name: "halve",
  payload: Schema.Struct({ of: Schema.Int }),
  result: Schema.Struct({ half: Schema.Int, at: Schema.DateFromString }),
  failure: Odd,
  key: ({ of }) => String(of),
})

const half = (of: number) =>
  of % 2 === 0
    ? Effect.succeed({ half: of / 2, at: new Date(of) })
    : Effect.fail(new Odd({ of, message: `${of} is odd` }))

const handler = Dispatcher.handler(halve, ({ of }) => half(of))

const run = (of: number) =>
  Effect.flatMap(Dispatcher.Dispatcher, (dispatcher) => dispatcher.run(halve, { of }, half(of)))

describe("a dispatcher", () => {
  it.effect("does a job here by default, without encoding anything", () =>
    Effect.gen(function* () {
      const dispatcher = yield* Dispatcher.Dispatcher
      assert.isUndefined(dispatcher.inFlight)
      const result = { half: 2, at: new Date(4) }
      assert.strictEqual(yield* dispatcher.run(halve, { of: 4 }, Effect.succeed(result)), result)
      assert.strictEqual((yield* Effect.flip(run(3)))._tag, "Odd")
    }),
  )

  it.effect("does at most `concurrency` jobs at once when embedded", () =>
    Effect.gen(function* () {
      let running = 0
      let most = 0
      const open = yield* Deferred.make<void>()
      const dispatcher = yield* Dispatcher.Dispatcher
      const one = Effect.gen(function* () {
        most = Math.max(most, ++running)
        yield* Deferred.await(open)
        running--
        return { half: 0, at: new Date(0) }
      })
      const jobs = Array.from({ length: 9 }, (_, of) => dispatcher.run(halve, { of }, one))
      const fiber = yield* Effect.forkChild(Effect.all(jobs, { concurrency: "unbounded" }))
      yield* Effect.yieldNow
      assert.strictEqual(running, 3)
      yield* Deferred.succeed(open, undefined)
      yield* Fiber.join(fiber)
      assert.strictEqual(most, 3)
    }).pipe(Effect.provide(Dispatcher.layerEmbedded({ concurrency: 3 }))),
  )

  it.effect("gives results and failures as values of their Schemas, however the network behaves", () =>
    Effect.gen(function* () {
      for (let seed = 0; seed < 20; seed++) {
        yield* Effect.gen(function* () {
          const { half: quotient, at } = yield* run(6)
          assert.deepStrictEqual([quotient, at.getTime()], [3, 6])
          const failure = yield* Effect.flip(run(7))
          assert.instanceOf(failure, Odd)
          assert.deepInclude(failure, { of: 7, message: "7 is odd" })
        }).pipe(Effect.provide(layerUnreliable({ seed, handlers: [handler] })))
      }
    }),
  )

  it.effect("refuses a payload that is too large to be sent, and says how large it is", () =>
    Effect.gen(function* () {
      const count = Dispatcher.job({
        name: "count",
        payload: Schema.String,
        result: Schema.Int,
        failure: Schema.Never,
        key: (text) => text.slice(0, 4),
      })
      const counted = (length: number) =>
        Effect.flatMap(Dispatcher.Dispatcher, ({ run }) => run(count, "a".repeat(length), Effect.succeed(length)))
      assert.strictEqual(yield* counted(2 ** 23 - 2), 2 ** 23 - 2)
      assert.match(
        (yield* Effect.flip(counted(2 ** 23 + 2 ** 20))).message,
        /^job count: its payload has 9\.0 MiB; expected at most 8\.0 MiB; put large parts into files/,
      )
    }).pipe(Effect.provide(layerUnreliable({ seed: 1, handlers: [] }))),
  )

  it.effect("says which part of a job has the wrong form", () =>
    Effect.gen(function* () {
      const wrong = yield* Effect.flip(handler.perform({ of: "six" }))
      assert.match(wrong.message, /^job halve: its payload has the wrong form: .*\["of"\]/s)
      const answer = yield* Effect.flip(Dispatcher.settle(halve, { _tag: "Done", result: { half: 1 } }))
      assert.match(answer.message, /^job halve: its result has the wrong form: .*\["at"\]/s)
    }),
  )
})
