/** The levels of a run's log, for its sinks and settings. */
import * as Schema from "effect/Schema"

/** The level of `run.log` and of the terminal. A log of one level also shows the levels after it in this list. */
export const LogLevel = Schema.Literals(["DEBUG", "INFO", "WARN", "ERROR"])
export type LogLevel = typeof LogLevel.Type

/** Tells whether a log of level `log` shows messages of level `what`. */
export const includes = (log: LogLevel, what: LogLevel): boolean =>
  LogLevel.literals.indexOf(log) <= LogLevel.literals.indexOf(what)

/** The names of these levels in Effect's own logger. */
export const effectLevels = { DEBUG: "Debug", INFO: "Info", WARN: "Warn", ERROR: "Error" } as const
