import { Schema } from "effect"

/** The level of `run.log` and of the terminal; each level includes the ones after it. */
export const LogLevel = Schema.Literals(["DEBUG", "INFO", "WARN", "ERROR"])
export type LogLevel = typeof LogLevel.Type

/** Tells whether a log of level `log` shows messages of level `what`. */
export const includes = (log: LogLevel, what: LogLevel): boolean =>
  LogLevel.literals.indexOf(log) <= LogLevel.literals.indexOf(what)

/** Maps our names of levels to those of Effect. */
export const inEffect = { DEBUG: "Debug", INFO: "Info", WARN: "Warn", ERROR: "Error" } as const
