import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Logger } from "effect"
import type { Recording } from "../../../src/run/record/Recorder.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { withLogs } from "../../../src/run/record/logging.ts"
import type { LogLevel } from "../../../src/run/record/logLevel.ts"

const recorder = () => {
  const events: Array<RunEvent> = []
  const recording: Recording = {
    emit: (batch) => Effect.sync(() => void events.push(...batch)),
    flush: Effect.void,
  }
  return { events, recording }
}

const logged = Effect.gen(function* () {
  yield* Effect.logDebug("looked up")
  yield* Effect.logInfo("asked", { model: "m" })
  yield* Effect.logWarning("an answer\nwas cut off")
  yield* Effect.logError("a tool broke", new Error("no network"))
})

const told = (level: LogLevel) =>
  Effect.gen(function* () {
    const { events, recording } = recorder()
    yield* withLogs(recording, level, () => logged)
    return events.map((event) => (event._tag === "Note" || event._tag === "Warning" ? [event._tag, event.message] : []))
  })

describe("what is logged in a run", () => {
  it.effect("becomes events of the run, by the run's level", () =>
    Effect.gen(function* () {
      const [note, warning, error] = [
        ["Note", 'asked {"model":"m"}'],
        ["Warning", "an answer; was cut off"],
        ["Warning", "a tool broke no network"],
      ]
      assert.deepStrictEqual(yield* told("DEBUG"), [["Note", "looked up"], note, warning, error])
      assert.deepStrictEqual(yield* told("INFO"), [note, warning, error])
      assert.deepStrictEqual(yield* told("WARN"), [warning, error])
      assert.deepStrictEqual(yield* told("ERROR"), [error])
    }),
  )

  it.effect("is not written to standard output, and reaches the loggers that the caller has", () =>
    Effect.gen(function* () {
      const printed: Array<unknown> = []
      const seen: Array<unknown> = []
      const { recording } = recorder()
      const print = (...words: ReadonlyArray<unknown>) => void printed.push(...words)
      const console: Console.Console = { ...globalThis.console, log: print, info: print, error: print, warn: print }
      const own = Logger.make(({ message }) => void seen.push(message))
      yield* withLogs(recording, "WARN", () => logged).pipe(
        Effect.provideService(Logger.CurrentLoggers, new Set([Logger.defaultLogger, own])),
        Effect.provideService(Console.Console, console),
      )
      assert.deepStrictEqual(printed, [])
      assert.lengthOf(seen, 2)
    }),
  )

  it.effect("is told in its place among the other events", () =>
    Effect.gen(function* () {
      const { events, recording } = recorder()
      yield* withLogs(recording, "INFO", ({ emit }) =>
        Effect.gen(function* () {
          yield* emit([{ _tag: "Note", message: "first" }])
          yield* Effect.logWarning("second")
          yield* emit([{ _tag: "Note", message: "third" }])
          yield* Effect.logWarning("fourth")
        }),
      )
      assert.deepStrictEqual(
        events.map((event) => ("message" in event ? event.message : "")),
        ["first", "second", "third", "fourth"],
      )
    }),
  )

  it.effect("is there as soon as somebody looks, not only with the next event", () =>
    Effect.gen(function* () {
      const { events, recording } = recorder()
      yield* withLogs(recording, "INFO", () =>
        Effect.gen(function* () {
          yield* Effect.logWarning("now")
          yield* Effect.yieldNow
          yield* Effect.yieldNow
          assert.lengthOf(events, 1)
        }),
      )
    }),
  )
})
