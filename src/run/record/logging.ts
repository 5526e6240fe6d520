/**
 * Turns messages that a run logs with `Effect.log…` into events of the run, so that they appear only in `run.log` and on the
 * terminal, but not on standard output, which other programs may parse.
 */
import { Cause, Effect, Latch, Logger, LogLevel as Levels, References } from "effect"
import { display } from "../../base/config/Config.ts"
import { oneLine } from "../../base/text/text.ts"
import { effectLevels, type LogLevel } from "./logLevel.ts"
import type { Recording } from "./Recorder.ts"
import type { RunEvent } from "./RunEvent.ts"

const wordsOf = (message: unknown): string =>
  typeof message === "string" ? message : message instanceof Error ? message.message : display(message)

/** Formats a logged message in one line. */
export const lineOf = ({ message, cause }: Logger.Options<unknown>): string => {
  const parts = Array.isArray(message) ? message.map(wordsOf) : [wordsOf(message)]
  if (cause.reasons.length > 0) parts.push(Cause.pretty(cause))
  return oneLine(parts.join(" "))
}

const eventOf = (logged: Logger.Options<unknown>): RunEvent => {
  const message = lineOf(logged)
  if (Levels.isLessThan(logged.logLevel, "Warn")) return { _tag: "Note", message }
  const isError = Levels.isGreaterThanOrEqualTo(logged.logLevel, "Error")
  return { _tag: "Warning", message, ...(isError ? { isError } : {}) }
}

/**
 * Runs `use`, and passes to `recording` the events that `use` emits and the messages that it logs at `level` or above, in
 * order. Meanwhile, Effect's default logger, which writes to standard output, is off; other loggers stay on.
 */
export const withLogs = <A, E, R>(
  recording: Recording,
  level: LogLevel,
  use: (recording: Recording) => Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R> =>
  Effect.gen(function* () {
    let waiting: Array<RunEvent> = []
    const hasWaiting = Latch.makeUnsafe(false)
    const taken = (): ReadonlyArray<RunEvent> => {
      const all = waiting
      waiting = []
      hasWaiting.closeUnsafe()
      return all
    }
    const emitWaiting = Effect.suspend(() => (waiting.length === 0 ? Effect.void : recording.emit(taken()))).pipe(
      Effect.uninterruptible,
      // If recording the message fails (the disk is full), the run's own events will fail too and end the run.
      Effect.ignore,
    )
    const logger = Logger.make((logged) => {
      waiting.push(eventOf(logged))
      hasWaiting.openUnsafe()
    })
    const others = [...(yield* Logger.CurrentLoggers)].filter((one) => one !== Logger.defaultLogger)
    yield* Effect.addFinalizer(() => emitWaiting)
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(hasWaiting.await, emitWaiting)))
    const recordingWithLogs: Recording = {
      emit: (events) => Effect.suspend(() => recording.emit(waiting.length === 0 ? events : [...taken(), ...events])),
      flush: Effect.andThen(emitWaiting, recording.flush),
    }
    return yield* use(recordingWithLogs).pipe(
      Effect.provideService(Logger.CurrentLoggers, new Set([...others, logger])),
      Effect.provideService(References.MinimumLogLevel, effectLevels[level]),
    )
  }).pipe(Effect.scoped)
