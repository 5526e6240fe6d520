import { Cause, Effect, Exit, Logger, Option } from "effect"
import { CliError, CliOutput, Command } from "effect/cli"
import manifest from "../../package.json" with { type: "json" }
import { messageOf, oneLine } from "../config/text.ts"
import { colored } from "./output/colors.ts"
import { presenter } from "./output/help.ts"
import { writeError } from "./output/output.ts"
import { placeIn, type UserCodeError } from "./userCode/userCode.ts"

/** The code of each subcommand, in the order of the help; loaded when it is asked for, so that the command starts fast. */
const subcommands = {
  init: async () => (await import("./init/init.ts")).init,
  run: async () => (await import("./run/run.ts")).run,
  eval: async () => (await import("./evaluate/evaluate.ts")).evaluate,
  replay: async () => (await import("./replay/replay.ts")).replay,
  export: async () => (await import("./export.ts")).exporting,
  runs: async () => (await import("./runs.ts")).runs,
  ui: async () => (await import("./ui.ts")).ui,
}

type Name = keyof typeof subcommands

const isName = (word: string | undefined): word is Name => word !== undefined && Object.hasOwn(subcommands, word)

/** The subcommands that these words can be about: the named one, and all of them for help and for what is misspelt. */
const namesFor = ([first, ...more]: ReadonlyArray<string>): ReadonlyArray<Name> =>
  isName(first) ? [first] : first === "--version" && more.length === 0 ? [] : Object.keys(subcommands).filter(isName)

/** The command with the subcommands that these words can be about; with all of them for no words. */
export const root = async (words: ReadonlyArray<string> = []) =>
  Command.make("effect").pipe(
    Command.withDescription("Train and evaluate agents: reinforcement learning, and agents that ask a language model."),
    Command.withSubcommands(await Promise.all(namesFor(words).map((name) => subcommands[name]()))),
    Command.withExamples([
      { command: "effect init", description: "Write a commented file to start from" },
      { command: "effect run examples/cartpole.ts", description: "Train an agent to balance a pole" },
      { command: "effect runs --sort validation:desc", description: "List the runs, the best first" },
      { command: "effect run --help", description: "List the flags of a training" },
      {
        command: "effect eval latest --episodes 1000",
        description: "Play 1,000 episodes with the newest run's policy",
      },
      { command: "effect replay latest", description: "Train it again and check that the result is the same" },
      { command: "effect ui", description: "Look at the runs in a web page" },
    ]),
  )

/**
 * Runs the `effect` command with these words; a failure is reported on stderr, in one line for people. What fails beside it
 * interrupts it, so that it is saved.
 */
export const command = (
  words: ReadonlyArray<string>,
  beside: Effect.Effect<never, UserCodeError> = Effect.never,
): Effect.Effect<void, unknown, Command.Environment> =>
  Effect.promise(() => root(words)).pipe(
    Effect.flatMap((loaded) => Command.runWith(loaded, { version: manifest.version })(words)),
    Effect.raceFirst(beside),
    Effect.provide(CliOutput.layerPresenter(presenter)),
    Effect.onExit(report),
    // Standard output is for results: programs read it.
    Effect.provideService(Logger.LogToStderr, true),
  )

/** 0 finished, 1 failed, 2 used wrongly, 130 interrupted. */
export const exitCodeOf = (exit: Exit.Exit<unknown, unknown>): number => {
  if (Exit.isSuccess(exit)) return 0
  const error = Option.getOrUndefined(Cause.findErrorOption(exit.cause))
  if (error === undefined && Cause.hasInterrupts(exit.cause)) return 130
  if (CliError.isCliError(error) && error._tag === "ShowHelp" && error.errors.length === 0) return 0
  return CliError.isCliError(error) || hasTag(error, "UsageError") || hasTag(error, "ConfigError") ? 2 : 1
}

const hasTag = (error: unknown, tag: string): boolean =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === tag

/** One line for people. A defect is a bug of ours, whose stack is worth having. */
const lineOf = (cause: Cause.Cause<unknown>): string | undefined => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (error === undefined) return Cause.hasInterrupts(cause) ? undefined : Cause.pretty(cause)
  if (CliError.isCliError(error)) return usage(error)
  // Where in the user's code, when that is what threw.
  const stack = typeof error === "object" && error !== null && "userStack" in error ? error.userStack : undefined
  const place = typeof stack === "string" ? placeIn(stack) : undefined
  return `${messageOf(error)}${place === undefined ? "" : ` (${place})`}`
}

const usage = (error: CliError.CliError): string =>
  error._tag === "ShowHelp"
    ? error.errors.map((one) => mistake(one, error.commandPath)).join("; ")
    : oneLine(error.message)

/** What was wrong with the words of a command, and what to write instead. */
const mistake = (error: CliError.NonShowHelpErrors, path: ReadonlyArray<string>): string => {
  if (error._tag === "UnrecognizedOption") {
    const names = error.suggestions.join(" or ")
    return `unrecognized flag ${error.option}; ${names === "" ? `see \`${path.join(" ")} --help\`` : `did you mean ${names}?`}`
  }
  if (error._tag !== "MissingArgument") return oneLine(error.message)
  const example = path.at(-1) === "run" ? ", or try `effect run examples/cartpole.ts`" : ""
  return `${error.message}; see \`${path.join(" ")} --help\`${example}`
}

const report = (exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> => {
  if (Exit.isSuccess(exit)) return Effect.void
  const line = lineOf(exit.cause)
  return line === undefined || line === ""
    ? Effect.void
    : writeError(`${colored("red", "effect:", process.stderr)} ${line}\n`)
}
