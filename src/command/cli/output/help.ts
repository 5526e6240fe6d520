/** Formats the help of the commands for the terminal, instead of Effect's own format. */
import { Console, Context, Effect, Option } from "effect"
import * as CliOutput from "effect/cli/CliOutput"
import type * as HelpDoc from "effect/cli/HelpDoc"
import * as TerminalCapabilities from "effect/cli/TerminalCapabilities"

/** Prints help and the version. It prints nothing after a usage error, for which `report` writes one line to stderr. */
export const presenter: CliOutput.Presenter = {
  present: Effect.fnUntraced(function* (event) {
    if (event._tag === "InvalidInvocation") return
    if (event._tag === "Version") return yield* CliOutput.defaultPresenter.present(event)
    const { canColor } = Context.get(yield* Effect.context<never>(), TerminalCapabilities.TerminalCapabilities)
    yield* Console.log(helpText(event.helpDoc, { width: process.stdout.columns || 80, colors: canColor }))
  }),
}

interface HelpOptions {
  /** The width of the terminal in columns. */
  readonly width: number
  readonly colors: boolean
}

/** The largest width of help lines in columns, since longer lines are hard to read. */
const widest = 100

/** The column at which the descriptions of arguments, flags and subcommands begin. */
const descriptionColumn = 30

/** Formats the help of a command: description, usage, arguments, flags, subcommands and examples. */
export const helpText = (doc: HelpDoc.HelpDoc, options: HelpOptions): string => {
  const width = Math.min(options.width, widest)
  const heading = (text: string): string => (options.colors ? `\u001b[1m${text}\u001b[0m` : text)
  const section = (title: string, lines: ReadonlyArray<string>): ReadonlyArray<string> =>
    lines.length === 0 ? [] : [[heading(title), ...lines].join("\n")]
  const globals = doc.globalFlags ?? []
  const isRoot = doc.commandPath === undefined || doc.commandPath.length < 2
  return [
    ...section("DESCRIPTION", wrap(doc.description, width, 2, 2)),
    ...section("USAGE", wrap(doc.usage, width, 2, 4)),
    ...section("ARGUMENTS", table((doc.args ?? []).map(argumentRow), width)),
    ...section("FLAGS", table([...doc.flags, ...(doc.inheritedFlags ?? [])].map(flagRow), width)),
    ...section("SUBCOMMANDS", table((doc.subcommands ?? []).flatMap(subcommandRows), width)),
    ...section("FLAGS OF EVERY COMMAND", isRoot ? table(globals.map(flagRow), width) : namesOnly(globals, width)),
    ...section(
      "EXAMPLES",
      (doc.examples ?? []).flatMap((example, at) => exampleLines(example, width, at === 0)),
    ),
  ].join("\n\n")
}

interface HelpRow {
  readonly term: string
  readonly description: string
}

const argumentRow = ({ name, required, variadic, description }: HelpDoc.ArgDoc): HelpRow => {
  const text = Option.getOrElse(description, () => "")
  // A default already shows that the argument is optional.
  const isOptional = !required && !text.includes("(default: ")
  return { term: `<${name}>${variadic ? "…" : ""}`, description: `${text}${isOptional ? " (optional)" : ""}` }
}

const flagRow = ({ name, aliases, type, description }: HelpDoc.FlagDoc): HelpRow => ({
  term: [[`--${name}`, ...aliases].join(", "), ...valueOf(type)].join(" "),
  description: Option.getOrElse(description, () => ""),
})

/** Returns the placeholder for a flag's value in the help: `<n>` for a number; none for a flag without a value. */
const valueOf = (type: string): ReadonlyArray<string> => {
  if (type === "boolean") return []
  if (type === "integer") return ["<n>"]
  return [type === "choice" || /^<.*\|/.test(type) ? "<name>" : `<${type}>`]
}

const subcommandRows = ({ commands }: HelpDoc.SubcommandGroupDoc): ReadonlyArray<HelpRow> =>
  commands.map(({ name, shortDescription, description }) => ({
    term: name,
    description: shortDescription ?? description,
  }))

/** Lists only the names of global flags; `effect --help` describes them. */
const namesOnly = (flags: ReadonlyArray<HelpDoc.FlagDoc>, width: number): ReadonlyArray<string> =>
  flags.length === 0 ? [] : wrap(`${flags.map(({ name }) => `--${name}`).join(", ")} (see effect --help)`, width, 2, 2)

/** Formats rows in two columns, terms and descriptions. A term that is too long for its column gets its own line. */
const table = (rows: ReadonlyArray<HelpRow>, width: number): ReadonlyArray<string> => {
  const longest = Math.max(0, ...rows.map(({ term }) => CliOutput.displayWidth(term)))
  // The column has two spaces before each term and two after it.
  const column = Math.min(descriptionColumn, longest + 4)
  return rows.flatMap(({ term, description }) => {
    const [first = "", ...rest] = wrap(description, width, column, column)
    const left = `  ${term}`
    return left.length <= column - 2
      ? [left + first.slice(left.length), ...rest]
      : [...wrap(term, width, 2, 4), first, ...rest]
  })
}

/** Formats an example: its description as a comment, and its command, broken into lines that end with a backslash. */
const exampleLines = (
  { command, description }: HelpDoc.ExampleDoc,
  width: number,
  isFirst: boolean,
): ReadonlyArray<string> => [
  ...(isFirst ? [] : [""]),
  ...(description === undefined ? [] : wrap(description, width - 2, 2, 2).map((line) => `  # ${line.trimStart()}`)),
  ...lines(command.match(/(?:'[^']*'|[^'\s])+/g) ?? [], width - 2, 2, 4).map((line, at, all) =>
    at < all.length - 1 ? `${line} \\` : line,
  ),
]

/** Breaks a text into lines of at most `width` columns; the first has `first` spaces before it, the others `rest`. */
const wrap = (text: string, width: number, first: number, rest: number): ReadonlyArray<string> =>
  lines(text.split(/\s+/), width, first, rest)

/** Joins words to lines, with the width and the spaces of `wrap`. A word that is longer than a line is not broken. */
const lines = (words: ReadonlyArray<string>, width: number, first: number, rest: number): ReadonlyArray<string> => {
  const finished: Array<string> = []
  let line = " ".repeat(first)
  let isEmpty = true
  for (const word of words) {
    if (!isEmpty && CliOutput.displayWidth(line) + 1 + CliOutput.displayWidth(word) > width) {
      finished.push(line)
      line = " ".repeat(rest)
      isEmpty = true
    }
    line += isEmpty ? word : ` ${word}`
    isEmpty = false
  }
  return isEmpty ? finished : [...finished, line]
}
