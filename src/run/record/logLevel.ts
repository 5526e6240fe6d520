import { Schema } from "effect"

/** How much of a run is written into `run.log` and told in the terminal; each level has what those behind it have. */
export const LogLevel = Schema.Literals(["DEBUG", "INFO", "WARN", "ERROR"])
export type LogLevel = typeof LogLevel.Type

/** Whether a log of a level has what is of another. */
export const includes = (log: LogLevel, what: LogLevel): boolean =>
  LogLevel.literals.indexOf(log) <= LogLevel.literals.indexOf(what)

/** The same in Effect's words. */
export const inEffect = { DEBUG: "Debug", INFO: "Info", WARN: "Warn", ERROR: "Error" } as const
