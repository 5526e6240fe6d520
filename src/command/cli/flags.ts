/** Makes the subcommands of `effect` and their flags, so that all of them have the same form. */
import { basename, extname } from "node:path"
import { Effect, Option } from "effect"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { type BackendName, backendNames } from "../../tensor/backend/names.ts"
import { allowed, type BoundName, boundProblem, bounds } from "../../base/config/bounds.ts"
import { isHostName } from "../../base/trust/hostGuard.ts"
import { isPlain } from "../../base/config/plain.ts"
import { derivedName } from "../../run/identifier.ts"
import { usageError } from "./output/output.ts"
import { TrustFlags } from "./trust/commandTrust.ts"
import { isName, short as shortOf } from "./subcommands.ts"

/** The values of a command's arguments and flags. */
export type FlagValues<Flags extends Command.Command.Config> = Command.Command.Config.Infer<Flags>

interface Help {
  readonly description: string
  /** The description in the list of subcommands below `effect runs`. Other subcommands have it in subcommands.ts. */
  readonly short?: string
  /** The description of each example, by its command line. */
  readonly examples: Readonly<Record<string, string>>
}

/** Makes a subcommand from its help texts, its arguments and flags, and the function that runs it. */
export const subcommand = <Name extends string, const Flags extends Command.Command.Config, R, E>(
  name: Name,
  { description, short, examples }: Help,
  flags: Flags,
  handler: (input: FlagValues<Flags>) => Effect.Effect<void, E, R>,
) =>
  Command.make(name, flags, (input) => Effect.provideService(handler(input), TrustFlags, trustFlagsOf(input))).pipe(
    Command.withDescription(description),
    Command.withShortDescription(short ?? (isName(name) ? shortOf[name] : description)),
    Command.withExamples(Object.entries(examples).map(([command, description]) => ({ command, description }))),
  )

/** Reads the flags `--trust`, `--quiet` and `--json` of a subcommand that has them. */
const trustFlagsOf = (input: unknown): TrustFlags => {
  const typed = isPlain(input) ? input : {}
  return { trusts: typed["trust"] === true, isSilent: typed["quiet"] === true || typed["json"] === true }
}

export const defaultResultsDir = "results"

/** The help text of an argument that names a run. */
export const runArgument = "A run's folder, latest for the newest run, or a part of its path that no other run has"

export const argument = (name: string, description: string) =>
  Argument.String(name).pipe(Argument.withDescription(description))

/** Makes a flag without a value; it is false by default. */
export const toggle = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDefault(false), Flag.withDescription(description))

/** The flag `--trust` of subcommands that read configs which may come from somebody else. */
export const trustFlag = toggle(
  "trust",
  "Permit the programs that the configs name, also if a config is not one of your own files; otherwise you are asked once",
)

/** Parses a text such as `2_000_000` or `2e6` as a whole number. */
const wholeNumber = (text: string): Option.Option<number> => {
  const value = /^[-+]?\d+(_\d+)*(e\+?\d+)?$/i.test(text) ? Number(text.replaceAll("_", "")) : NaN
  return Number.isSafeInteger(value) ? Option.some(value) : Option.none()
}

/** Makes a flag with a whole number within the given bounds. As in `--set`, there may be underscores between the digits. */
const whole = (name: string, bound: BoundName) =>
  Flag.String(name).pipe(
    Flag.withMetavar("integer"),
    Flag.filterMap(wholeNumber, () => "a whole number, such as 2000000 or 2_000_000"),
    Flag.filter(
      (value) => boundProblem(bound, value) === undefined,
      () => allowed(bounds[bound]),
    ),
  )

/** Makes an optional flag with a whole number within the given bounds. */
export const number = (name: string, bound: BoundName, description: string) =>
  whole(name, bound).pipe(Flag.optional, Flag.withDescription(description))

/** Makes the flag `--port` of a server. */
export const portFlag = (otherwise: number) =>
  whole("port", "port").pipe(
    Flag.withDefault(otherwise),
    Flag.withDescription(`The port to listen on; 0 picks a free one (default: ${otherwise})`),
  )

/** Makes an optional flag with a text. The help shows the placeholder as its value: `--out <file>`. */
export const text = (name: string, placeholder: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(placeholder), Flag.optional, Flag.withDescription(description))

/** Makes a flag with a text that has a default. */
export const textOr = (otherwise: string, name: string, placeholder: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(placeholder), Flag.withDefault(otherwise), Flag.withDescription(description))

/** Makes a flag with a text that can be repeated. */
export const texts = (name: string, placeholder: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(placeholder), Flag.atLeast(0), Flag.withDescription(description))

/** The address that a server listens on. `secret` is what clients of other machines need, such as `a key`. */
export const hostFlag = (secret: string) =>
  textOr(
    "127.0.0.1",
    "host",
    "address",
    `The address to listen on; others than this machine's own need ${secret} (default: 127.0.0.1)`,
  )

/** The flag `--allow-host` of commands that start a server. */
export const allowHostFlag = texts(
  "allow-host",
  "name",
  "Also answer requests that address this machine by this name, such as that of a proxy or a container; can be repeated",
)

export const checkAllowHost = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const wrong = names.find((name) => !isHostName(name))
  if (wrong === undefined) return
  return yield* usageError(`--allow-host: expected a name such as gpu.example.org, without a port, found "${wrong}"`)
})

export const backendFlag = (description: string) =>
  Flag.Literals("backend", backendNames).pipe(Flag.withDefault("auto" as const), Flag.withDescription(description))

export const threadsFlag = Flag.String("threads").pipe(
  Flag.withMetavar("n|auto"),
  Flag.filterMap(
    (typed): Option.Option<number | "auto"> =>
      typed === "auto"
        ? Option.some(typed)
        : Option.filter(wholeNumber(typed), (count) => count >= 1 && count <= bounds.threads.most),
    () => `a whole number between 1 and ${bounds.threads.most} (${bounds.threads.because}), or auto`,
  ),
  Flag.optional,
  Flag.withDescription(
    "How many threads compute (default: 1); more only help with large models and minibatches. auto uses all cores, at most 8, where this cannot change a result",
  ),
)

/** Returns the options of the backend; the backend `reference` has no threads. */
export const sessionOptions = Effect.fnUntraced(function* (input: {
  readonly backend: BackendName
  readonly threads: Option.Option<number | "auto">
}) {
  if (Option.isSome(input.threads) && input.backend === "reference")
    return yield* usageError("--threads does not work with --backend reference, which uses one thread")
  return { threads: Option.getOrElse(input.threads, () => 1) }
})

/**
 * Returns the number of threads for each of several processes, engines or runs that compute at the same time. With `auto` it
 * is 1, because together they already use all processors.
 */
export const threadsOfEach = (threads: number | "auto"): number => (threads === "auto" ? 1 : threads)

export const resultsDirFlag = (description: string) =>
  textOr(defaultResultsDir, "results-dir", "dir", description).pipe(
    Flag.filter(
      (place) => isBucket(place) || !/^[a-z][a-z0-9+.-]+:/i.test(place),
      (place) => `a folder, or s3://BUCKET/PREFIX; a folder of this name is ./${place}`,
    ),
  )

/** Tells whether the value of a flag such as `--results-dir` is the address of a bucket of S3. */
export const isBucket = (resultsDir: string): boolean => resultsDir.startsWith("s3://")

/** The flag `--results-dir` of commands that read a run and write nothing into a results folder. */
export const lookupDir = resultsDirFlag(
  "The folder in which latest and parts of paths are looked up, or s3://BUCKET/PREFIX (default: results)",
)

/** Returns the run's name: the value of `--name`, otherwise the name of the file. */
export const nameOf = ({ name, file }: { readonly name: Option.Option<string>; readonly file: string }): string =>
  Option.getOrElse(name, () => derivedName(basename(file, extname(file))))

/**
 * Converts flags to words of a command line. A flag with a list is repeated for each item; flags that are undefined, None or
 * false are left out.
 */
export const flagWords = (flags: Readonly<Record<string, unknown>>): ReadonlyArray<string> =>
  Object.entries(flags).flatMap(([name, option]) => {
    const value = Option.isOption(option) ? Option.getOrUndefined(option) : option
    if (value === undefined || value === false) return []
    if (value === true) return [`--${name}`]
    return (Array.isArray(value) ? value : [value]).flatMap((one) => [`--${name}`, String(one)])
  })

/** Joins words to a command line for a shell, and quotes the words that need it. */
export const quoted = (words: ReadonlyArray<string>): string =>
  words.map((word) => (/^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ")
