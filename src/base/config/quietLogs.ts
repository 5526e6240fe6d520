/** Keeps the log of a library that this package uses off the terminal. The Layers of such libraries use it. */
import { Effect, Layer, References } from "effect"

/**
 * A Layer that drops all logs, unless the user asked for another level, as by `--log-level debug`. Use it where a library
 * logs warnings with stack traces although its errors are also reported in one line.
 *
 * @example
 * ```ts
 * const quiet = Layer.provide(Layer.effectDiscard(Effect.logWarning("lost the connection")), quietLogs)
 * ```
 */
export const quietLogs = Layer.effect(
  References.MinimumLogLevel,
  Effect.map(References.MinimumLogLevel, (level) => (level === "Info" ? ("None" as const) : level)),
)
