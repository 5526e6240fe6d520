/**
 * Checks the settings that people write (objects in code, YAML, `--set`). `applyOverrides` replaces settings of a
 * config, `decode` checks it against a Schema, and `ConfigError` is the error, with one part per wrong key. Keys are
 * spelled in camelCase in code, and in snake_case in YAML and on the command line; both spellings are accepted
 * everywhere. It reads no files. Every module that has settings uses it.
 */
import { Effect } from "effect"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Schema from "effect/Schema"
import { choiceProblem, tagAt, textsAt } from "./choices.ts"
import { closest } from "../text/closest.ts"
import { withNumbers } from "./numbers.ts"
import { camelCase, convertPath, holdsData, isPlain, type Plain, setIn, snakeCase } from "./plain.ts"
import { knownKeys, sectionsOf } from "./schemaKeys.ts"
import { jsonOf, shortened } from "../text/text.ts"

export { camelCase, convertPath, isPlain, type Plain, snakeCase } from "./plain.ts"
export { keysOf } from "./schemaKeys.ts"

/** The places where the settings of a config were written (`Ppo.make`, `conf.yaml:3`, `--set`), for error messages. */
export interface ConfigOrigin {
  /** The source of every key that `sources` doesn't list: `Ppo.make`, `conf.yaml`. */
  readonly source: string
  /** The path of the section, if only a section of the config is decoded: `["algorithm"]`. It precedes every key. */
  readonly prefix?: ReadonlyArray<string>
  /** The source of each key that was set elsewhere, by the key's full path in camelCase. */
  readonly sources?: ReadonlyMap<string, string>
}

/** Reports an unusable config. The message is one line: `train.yaml:12: algorithm.nsteps: expected …, found …`. */
export class ConfigError extends Schema.TaggedError<ConfigError>()("ConfigError", {
  /** The place where the setting was written: a file with its line, `--set`, or the name of the config in code. */
  source: Schema.String,
  /** The full path of the key in snake_case; empty if the config as a whole is wrong. */
  key: Schema.String,
  /** The problem and what was expected, without the place. */
  problem: Schema.String,
  message: Schema.String,
  /** Set if the config names something of this kind that is not built in, so that only a program can make it. */
  unknown: Schema.optionalKey(Schema.Literals(["env", "algorithm", "callback", "code"])),
}) {
  /**
   * Builds the error of one key. The message begins with the source of the key or of the nearest section around it.
   *
   * @example
   * ```ts
   * ConfigError.at({ source: "train.yaml:3" }, "algorithm.nsteps", "expected a positive number, found -1")
   * // message: train.yaml:3: algorithm.nsteps: expected a positive number, found -1
   * ```
   */
  static at(
    { source, prefix = [], sources }: ConfigOrigin,
    key: string,
    problem: string,
    more: Pick<ConfigError, "unknown"> = {},
  ): ConfigError {
    const path = [...prefix, ...(key === "" ? [] : key.split("."))]
    const blamed = nearestSource(sources, convertPath(path, camelCase)) ?? source
    const name = convertPath(path, spelledIn(blamed)).join(".")
    const message = [blamed, name, problem].filter((part) => part !== "").join(": ")
    return new ConfigError({ source: blamed, key: convertPath(path, snakeCase).join("."), problem, message, ...more })
  }

  /** Returns the same error with another message, such as one with a hint. */
  reworded(change: (message: string) => string): ConfigError {
    return new ConfigError({ ...this, message: change(this.message) })
  }
}

/** A setting from a flag, a YAML file or a sweep, which replaces the one in the config. */
export interface Override {
  /**
   * The path in camelCase or snake_case, such as `algorithm.learning_rate`. An item of a list has its number, or its name if
   * the items have names: `algorithm.policies.left.gamma`.
   */
  readonly path: string
  readonly value: unknown
  /** The source for messages, such as `--set` or `conf.yaml:3`. */
  readonly source: string
}

/** Renames the keys of a tree, which is the section of a config at a path. */
const mapKeys = (value: unknown, rename: (key: string) => string, path: ReadonlyArray<string> = []): unknown => {
  if (Array.isArray(value)) return value.map((item) => mapKeys(item, rename, [...path, ""]))
  if (!isPlain(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      const place = [...path, key]
      return [convertPath(place, rename)[path.length], holdsData(place) ? item : mapKeys(item, rename, place)]
    }),
  )
}

/**
 * Converts all keys of a tree to camelCase, except the keys below `items` and `texts`, which are data, and the names of runs
 * (see `convertPath`). Values that are neither plain objects nor arrays are returned unchanged.
 */
export const toCamelCase = (value: unknown): unknown => mapKeys(value, camelCase)

/** Converts all keys of a tree to snake_case, with the same exceptions as `toCamelCase`. */
export const toSnakeCase = (value: unknown): unknown => mapKeys(value, snakeCase)

/**
 * Applies overrides to `input`, in order. Returns the new tree, and each override's source by its path in camelCase, in
 * which items of lists have their numbers. An override can add a section, which then has that override's source. Fails
 * if a path names an item that its list does not have.
 */
export const applyOverrides = Effect.fnUntraced(function* (
  input: Plain,
  overrides: ReadonlyArray<Override>,
): Effect.fn.Return<{ readonly value: Plain; readonly sources: ReadonlyMap<string, string> }, ConfigError> {
  const sources = new Map<string, string>()
  let value = input
  for (const override of overrides) {
    const path = yield* numbered(value, override)
    for (let length = 1; length <= path.length; length++) {
      const section = path.slice(0, length)
      const isMade = length === path.length || (valueAt(value, section) ?? null) === null
      if (isMade) sources.set(section.join("."), override.source)
    }
    const isData = path.some((_, at) => holdsData(path, at))
    value = setIn(value, path, isData ? override.value : mapKeys(override.value, camelCase, path))
  }
  return { value, sources }
})

/** Returns the path of an override in camelCase, with the items of lists by number instead of by name. */
const numbered = Effect.fnUntraced(function* (
  tree: Plain,
  { path: written, source }: Override,
): Effect.fn.Return<ReadonlyArray<string>, ConfigError> {
  const raw = written.split(".")
  const path = [...convertPath(raw, camelCase)]
  for (const [at, key] of raw.entries()) {
    const list = valueAt(tree, path.slice(0, at))
    if (!Array.isArray(list) || /^\d+$/.test(key)) continue
    const names = list.map(nameOf)
    if (names.every((name) => name === undefined)) continue
    const index = names.indexOf(key)
    if (index < 0 || names.includes(key, index + 1)) {
      const unique = names.filter((name) => name !== undefined && names.indexOf(name) === names.lastIndexOf(name))
      const expected = unique.length === 0 ? "" : `one of ${unique.join(", ")}, or `
      const problem = `${index < 0 ? "no item" : "more than one item"} is called "${key}"; expected ${expected}a number below ${list.length}`
      return yield* ConfigError.at({ source }, path.slice(0, at).join("."), problem)
    }
    path[at] = String(index)
  }
  return path
})

/**
 * Returns the name of an item of a list. For a policy of an agent that is the key `policy`, since its `name` is the
 * algorithm's.
 */
const nameOf = (item: unknown): string | undefined => {
  const name = isPlain(item) ? (item.policy ?? item.name) : undefined
  return typeof name === "string" ? name : undefined
}

/** A config as a person wrote it, for `overridden`. */
interface Written {
  /** The place of each key in its file: maps `agent.historyK` to `conf.yaml:7`. */
  readonly lines: ReadonlyMap<string, string>
  /** The settings that override those of the config, in order. */
  readonly overrides: ReadonlyArray<Override>
  /** The name of the config in messages, such as `conf.yaml`. */
  readonly source: string
  /** The Schema of the whole config. */
  readonly whole: Schema.Top
}

/** Prepares a config for `decode`: converts its keys, applies the overrides, and notes the source of each key. */
export const overridden = Effect.fnUntraced(function* (config: unknown, { lines, overrides, source, whole }: Written) {
  const tree = toCamelCase(config)
  const { value, sources } = yield* applyOverrides(isPlain(tree) ? tree : {}, overrides)
  const from: DecodeOptions = { source, sources: overLines(lines, sources), whole }
  return { value, from }
})

export interface DecodeOptions extends ConfigOrigin {
  /** The Schema of the whole config, in which messages look up the right section of a misplaced key. */
  readonly whole?: Schema.Top
  /**
   * Ignores keys that the Schema lacks, for files of other programs, such as the `config.json` of a model. By default,
   * an unknown key is an error.
   */
  readonly unknownKeys?: "error" | "ignore"
}

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/**
 * Decodes a config by a Schema. An unknown key is an error, too; its message suggests the most similar valid key.
 *
 * @example
 * ```ts
 * const Optimiser = Schema.Struct({ learningRate: Schema.Finite })
 * decode(Optimiser, { learningrate: 1 }, { source: "train.ts" })
 * // fails: train.ts: unknown key "learningrate"; did you mean "learningRate"?
 * ```
 */
export const decode = <S extends Schema.Codec<unknown, unknown>>(
  schema: S,
  input: unknown,
  options: DecodeOptions,
): Effect.Effect<S["Type"], ConfigError> =>
  Effect.suspend(() =>
    Schema.decodeUnknownEffect(schema, { errors: "all", onExcessProperty: options.unknownKeys ?? "error" })(
      withNumbers([SchemaAST.toEncoded(schema.ast)], input),
    ),
  ).pipe(Effect.mapError((error) => configError(schema, input, error.issue, options)))

/** Makes the `ConfigError` for the issues that Schema found; its message names each key's source and problem. */
const configError = (
  schema: Schema.Top,
  input: unknown,
  issue: SchemaIssue.Issue,
  options: DecodeOptions,
): ConfigError => {
  const issues = issuesOf(issue).issues.map(({ message, path = [] }) => ({
    message,
    keys: path.map((part) => String(typeof part === "object" ? part.key : part)),
  }))
  // If a setting can have several forms, and its text names one of them, the other forms report that text as wrong:
  // drop those issues.
  const encoded = SchemaAST.toEncoded(schema.ast)
  const own = issues.filter(
    ({ message, keys }) =>
      !message.startsWith('Expected "') || !textsAt(encoded, keys).some((text) => text === valueAt(input, keys)),
  )
  const problems = (own.length > 0 ? own : issues).map(({ message, keys }) => {
    const full = [...(options.prefix ?? []), ...keys]
    const source = nearestSource(options.sources, full) ?? options.source
    const spell = spelledIn(source)
    const text = explain(schema, input, { keys, message, full, whole: options.whole, spell })
    return { source, key: convertPath(full, snakeCase).join("."), text }
  })
  // If several checks of one key failed, report only the first problem. If a setting inside a section is wrong, drop
  // the problem of the section as a whole, which comes from its other forms.
  const perKey = problems.filter(
    ({ key }, index) =>
      problems.findIndex((other) => other.key === key) === index &&
      (key === "" || !problems.some((other) => other.key.startsWith(`${key}.`))),
  )
  return new ConfigError({
    source: perKey[0].source,
    key: perKey[0].key,
    problem: perKey[0].text,
    message: perKey.map((problem) => `${problem.source}: ${problem.text}`).join("; "),
  })
}

/** Runs several checks of a config. If some fail, fails with one error: the first one, with the messages of all. */
export const checkAll = Effect.fnUntraced(function* <R>(checks: ReadonlyArray<Effect.Effect<unknown, ConfigError, R>>) {
  const failures = yield* Effect.forEach(checks, (check) =>
    Effect.match(check, { onFailure: (error) => [error], onSuccess: (): ReadonlyArray<ConfigError> => [] }),
  )
  const errors = failures.flat()
  const joined = errors.map(({ message }) => message).join("; ")
  if (errors.length > 0) return yield* errors[0].reworded(() => joined)
})

/**
 * Merges two maps from a setting's path to its source: `lines` (of the file) and `sources` (of the overrides). The line
 * of a setting is dropped if an override replaced the setting or a section around it.
 */
export const overLines = (
  lines: ReadonlyMap<string, string>,
  sources: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> => {
  const isReplaced = (key: string): boolean =>
    key.split(".").some((_, index, parts) => sources.has(parts.slice(0, index + 1).join(".")))
  return new Map([...[...lines].filter(([key]) => !isReplaced(key)), ...sources])
}

/** Returns the source that set a key or the nearest section around it; the config's own source if none is recorded. */
export const sourceOf = ({ source, sources }: ConfigOrigin, key: string): string =>
  nearestSource(sources, convertPath(key.split("."), camelCase)) ?? source

/** Returns the place of a key for messages, such as `conf.yaml:3: train_dataset.items`. */
export const placeOf = (from: ConfigOrigin, key: string): string => {
  const path = convertPath([...(from.prefix ?? []), ...(key === "" ? [] : [key])], snakeCase).join(".")
  return [sourceOf(from, path), path].filter((part) => part !== "").join(": ")
}

const nearestSource = (
  sources: ReadonlyMap<string, string> | undefined,
  path: ReadonlyArray<string>,
): string | undefined => {
  for (let length = path.length; length > 0; length--) {
    const source = sources?.get(path.slice(0, length).join("."))
    if (source !== undefined) return source
  }
  return undefined
}

/** The messages with which Effect's Schema reports an unknown and a missing key. `explain` replaces only these two. */
const unknownKey = "Expected no excess property"
const missingKey = "Missing key"

/** One issue that Schema found, for `explain`. */
interface ConfigProblem {
  /** The path of the key from the root of the Schema that decoded it. */
  readonly keys: ReadonlyArray<string>
  /** The path of the key from the root of the whole config. */
  readonly full: ReadonlyArray<string>
  readonly message: string
  readonly whole: Schema.Top | undefined
  /** Spells keys as their source does. */
  readonly spell: (key: string) => string
}

/** Returns the function that spells keys as a source does: in camelCase for a file of code, or else in snake_case. */
const spelledIn = (source: string): ((key: string) => string) => (/\.[mc]?[jt]s$/.test(source) ? camelCase : snakeCase)

/** Describes one problem for the message: an unknown key with a suggestion, a missing key, or an unexpected value. */
const explain = (schema: Schema.Top, input: unknown, { keys, message, full, whole, spell }: ConfigProblem): string => {
  const name = convertPath(full, spell).join(".")
  if (message === unknownKey) {
    const validKeys = knownKeys(SchemaAST.toEncoded(schema.ast), keys.slice(0, -1))
    const key = keys[keys.length - 1]
    // The key exists, but only in another form of this section.
    if (validKeys.includes(key)) return `unknown key "${name}" for this type`
    const suggestion = closest(key, validKeys)
    if (suggestion !== undefined) {
      // In code, a snake_case key is unknown: show it as it was written, since converted it would equal the suggestion.
      const section = convertPath(full.slice(0, -1), spell)
      const written = spell(key) === suggestion ? [...section, key].join(".") : name
      return `unknown key "${written}"; did you mean "${[...section, spell(suggestion)].join(".")}"?`
    }
    const belongs = whole === undefined ? undefined : sectionsOf(whole, key, { full, spell })
    // The keys that an item of a list may have are not known here.
    if (belongs === undefined && validKeys.length === 0) return `unknown key "${name}"`
    return `unknown key "${name}"; ${belongs ?? `known keys are ${validKeys.map(spell).join(", ")}`}`
  }
  const place = name === "" ? "config" : name
  if (message === missingKey) return `${place}: missing key`
  const value = valueAt(input, keys)
  const found = keys.some(isSecret) ? shownSecret : display(value)
  const encoded = SchemaAST.toEncoded(schema.ast)
  const choices = /^Expected "[^"]*"(?: \| "[^"]*")*$/.test(message) ? textsAt(encoded, keys) : []
  if (choices.length > 0) return `${place}: ${choiceProblem(choices, value, found)}`
  const tag = message.startsWith("Expected { ") && isPlain(value) ? tagAt(encoded, keys) : undefined
  if (isPlain(value) && tag !== undefined) {
    const texts = textsAt(encoded, [...keys, tag])
    if (!texts.some((text) => text === value[tag]))
      return `${place}.${spell(tag)}: ${choiceProblem(texts, value[tag], display(value[tag]))}`
  }
  const expected = message.charAt(0).toLowerCase() + message.slice(1)
  return `${place}: ${expected.replaceAll(/\{ readonly "(\w+)": ("[^"]*"), \.\.\. \}/g, "{ $1: $2, … }")}, found ${found}`
}

const valueAt = (input: unknown, keys: ReadonlyArray<string>): unknown =>
  keys.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
    input,
  )

/** This text replaces secrets in messages and files. */
export const shownSecret = "<redacted>"

/** Gives the name of the environment variable from a key that is written as `${NAME}`; undefined for any other key. */
export const variableIn = (key: string): string | undefined => /^\$\{(\w+)\}$/.exec(key.trim())?.[1]

/** Tells whether the setting with this key is an API key. */
export const isSecret = (key: string): boolean => /^api_?key$/i.test(key)

/** Formats a value for a message: as JSON, cut to 60 characters, with API keys replaced by `<redacted>`. */
export const display = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (typeof value === "number") return String(value)
  if (typeof value === "function") return "a function"
  if (value instanceof Promise) return "a promise"
  return shortened(jsonOf(value, (key, item) => (isSecret(key) ? shownSecret : item)) ?? String(value))
}
