import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema } from "effect"
import { TestClock } from "effect/testing"
import { CallContext } from "../../../../src/agents/lm/Lm.ts"
import { CallRecord, CallSink, logged } from "../../../../src/agents/lm/middleware/logged.ts"
import { answering, completion, failure, request } from "../support.ts"

const context: CallContext = {
  phase: { _tag: "validation", seenEpisodes: 50 },
  purpose: "reflection",
  episode: 7,
  step: 3,
}

const collecting = () => {
  const begun: Array<CallRecord> = []
  const ended: Array<CallRecord> = []
  const sink: CallSink = {
    begin: (record) =>
      Effect.sync(() => {
        begun.push(record)
        return (record) => Effect.sync(() => ended.push(record))
      }),
  }
  return { begun, ended, sink }
}

describe("logged", () => {
  it.effect("reports a call when it begins and when it ends", () =>
    Effect.gen(function* () {
      const { begun, ended, sink } = collecting()
      const { lm } = answering(() =>
        Effect.delay(Effect.succeed({ ...completion("yes", 9), attempts: 3 }), "200 millis"),
      )
      const fiber = yield* logged(lm)
        .complete(request("?"))
        .pipe(
          Effect.provideService(CallSink, sink),
          Effect.provideService(CallContext, context),
          Effect.forkChild({ startImmediately: true }),
        )
      yield* TestClock.adjust("100 millis")
      const beginning = {
        model: "m",
        context,
        request: request("?"),
        response: null,
        error: null,
        startedAtMillis: 0,
        endedAtMillis: null,
      }
      assert.deepStrictEqual(begun, [beginning])
      assert.deepStrictEqual(ended, [])
      yield* TestClock.adjust("100 millis")
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(ended, [
        { ...beginning, response: { ...completion("yes", 9), attempts: 3 }, endedAtMillis: 200 },
      ])
      assert.isTrue(Schema.is(CallRecord)(ended[0]))
    }),
  )

  it.effect("reports failures and interruptions", () =>
    Effect.gen(function* () {
      const { ended, sink } = collecting()
      const broken = logged(answering(() => Effect.fail(failure("exhausted", { attempts: 6 }))).lm)
      const error = yield* Effect.flip(broken.complete(request("?"))).pipe(Effect.provideService(CallSink, sink))
      assert.strictEqual(error.reason, "exhausted")
      const hung = logged(answering(() => Effect.never).lm)
      const fiber = yield* Effect.forkChild(hung.complete(request("?")).pipe(Effect.provideService(CallSink, sink)), {
        startImmediately: true,
      })
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(
        ended.map(({ error, response }) => [error?.reason, error?.message, error?.attempts, response]),
        [
          ["exhausted", "m: exhausted", 6, null],
          ["interrupted", "the call was interrupted", 0, null],
        ],
      )
    }),
  )

  it.effect("reports nothing without a sink", () =>
    Effect.gen(function* () {
      const { lm, asked } = answering(() => "yes")
      assert.strictEqual((yield* logged(lm).complete(request("?"))).content, "yes")
      const heard: Array<string> = []
      const sink = CallSink.whole(({ response }) => Effect.sync(() => heard.push(response?.content ?? "")))
      yield* logged(lm).complete(request("?")).pipe(Effect.provideService(CallSink, sink))
      assert.deepStrictEqual([heard, asked()], [["yes"], 2])
    }),
  )
})
