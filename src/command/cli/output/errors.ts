/** Determines the exit code of the command, and reports its failure on stderr. main.ts and command.ts call it. */
import { existsSync } from "node:fs"
import { Cause, Context, Effect, Exit, Option } from "effect"
import * as CliError from "effect/cli/CliError"
import { closest } from "../../../base/text/closest.ts"
import { isMachineFault } from "../../../base/files/files.ts"
import { messageOf, oneLine, visible } from "../../../base/text/text.ts"
import { CommandError } from "../../CommandError.ts"
import { placeIn } from "../userCode/userCode.ts"
import { colored } from "./colors.ts"
import { writeError } from "./output.ts"

/** Returns the exit code of the process: 0 success, 1 failure, 2 wrong flag, argument or setting, 130 interrupted. */
export const exitCodeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return 0
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (error === undefined && Cause.hasInterrupts(exit.cause)) return 130
  if (CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length === 0) return 0
  return CliError.isCliError(error) || isUsage(error) || hasTag(error, "ConfigError") ? 2 : 1
}

const isUsage = (error: unknown): boolean => error instanceof CommandError && error.reason === "usage"

const hasTag = (error: unknown, tag: string): boolean =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === tag

/** Advice for the user after a failure, as an annotation of the failure's cause. */
class Advice extends Context.Service<Advice, string>()("effect-rl/cli/Advice") {}

/** Adds advice for the user to a failure. `report` writes it after the error. */
export const advised = <E>(cause: Cause.Cause<E>, advice: string): Cause.Cause<E> =>
  Cause.annotate(cause, Context.make(Advice, advice))

/**
 * Writes to stderr why the command failed, and then the advice if there is any. The text is one line, except after a defect.
 */
export const report = (exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
  if (Exit.isSuccess(exit)) return Effect.void
  const line = lineOf(exit.cause)
  if (line === "") return Effect.void
  const advice = Context.getOrUndefined(Cause.annotations(exit.cause), Advice)
  const after = advice === undefined ? "" : `${line.includes("\n") ? "\n" : "; "}${advice}`
  return writeError(`${colored("red", "effect:", process.stderr)} ${line}${after}\n`)
}

/**
 * Returns the message for the user; empty after Ctrl-C. A defect is a bug of this library, so its message has the stack,
 * unless the machine is to blame (a full disk, for example).
 */
const lineOf = (cause: Cause.Cause<unknown>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause)) ?? machineFaultIn(cause)
  if (error === undefined) return Cause.hasInterrupts(cause) ? "" : Cause.pretty(cause)
  if (CliError.isCliError(error)) return usage(error)
  // An error that the user's code threw has a `userStack`, which names the line of that code.
  const stack = typeof error === "object" && error !== null && "userStack" in error ? error.userStack : undefined
  const place = typeof stack === "string" ? placeIn(stack) : undefined
  // Names and values of a file that somebody else wrote must not control the terminal.
  return visible(`${messageOf(error)}${place === undefined ? "" : ` (${place})`}`)
}

const machineFaultIn = (cause: Cause.Cause<unknown>): unknown =>
  cause.reasons.flatMap((reason) => (Cause.isDieReason(reason) ? [reason.defect] : [])).find(isMachineFault)

const usage = (error: CliError.CliError): string =>
  error._tag === "ShowHelp"
    ? error.errors.map((mistake) => usageOf(mistake, error.commandPath)).join("; ")
    : oneLine(error.message)

/** The subcommands of `effect runs`. */
const ofRuns: ReadonlyArray<string> = ["show", "diff", "compare", "best"]

/**
 * Tells the user how to start a training: with an example if the folder has one, otherwise with a file that `effect init`
 * writes.
 */
export const firstTraining = (): string => {
  const example = "examples/cartpole.ts"
  return existsSync(example)
    ? `try \`effect run ${example}\``
    : "write one with `effect init train.ts` and run it with `effect run train.ts`"
}

/** Describes a wrong flag or argument, and tells what to write instead. */
const usageOf = (error: CliError.NonShowHelpErrors, path: ReadonlyArray<string>): string => {
  if (error._tag === "UnrecognizedOption") {
    const names = error.suggestions.join(" or ")
    return `unrecognized flag ${error.option}; ${names === "" ? `see \`${path.join(" ")} --help\`` : `did you mean ${names}?`}`
  }
  if (error._tag === "UnknownSubcommand") {
    const parent = error.parent ?? path
    const names =
      parent.length === 1 && ofRuns.includes(error.subcommand) ? [`runs ${error.subcommand}`] : error.suggestions
    const meant = names.map((name) => `\`${[...parent, name].join(" ")}\``).join(" or ")
    return `unknown subcommand "${error.subcommand}"; ${meant === "" ? `see \`${parent.join(" ")} --help\`` : `did you mean ${meant}?`}`
  }
  if (error._tag === "InvalidValue") {
    const names = Array.from(error.expected.matchAll(/"([^"]*)"/g), ([, name]) => name)
    const near = closest(error.value, names)
    return `${oneLine(error.message)}${near === undefined ? "" : `; did you mean ${near}?`}`
  }
  if (error._tag !== "MissingArgument") return oneLine(error.message)
  const example = path.at(-1) === "run" ? `, or ${firstTraining()}` : ""
  return `${error.message}; see \`${path.join(" ")} --help\`${example}`
}
