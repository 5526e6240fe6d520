import { Schema } from "effect"

/** The level of `run.log` and of the terminal; each level includes the ones after it. */
export const LogLevel = Schema.Literals(["DEBUG", "INFO", "WARN", "ERROR"])
export type LogLevel = typeof LogLevel.Type

/** Tells whether a log of this level includes messages of another level. */
export const includes = (log: LogLevel, what: LogLevel): boolean =>
  LogLevel.literals.indexOf(log) <= LogLevel.literals.indexOf(what)

/** The names of Effect's levels. */
export const inEffect = { DEBUG: "Debug", INFO: "Info", WARN: "Warn", ERROR: "Error" } as const
