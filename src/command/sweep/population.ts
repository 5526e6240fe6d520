/** Parses the settings that a sweep varies (its population), and combines their values. These are pure functions. */
import { Effect } from "effect"
import { camelCase, snakeCase } from "../../base/config/Config.ts"
import { isNaming, settingValue } from "../cli/run/overrides.ts"
import { usageError } from "../cli/output/output.ts"

/** A setting that a sweep varies. */
interface Variable {
  /** The path of the setting in snake_case, such as `algorithm.learning_rate`. */
  readonly path: string
  readonly values: ReadonlyArray<SweptValue>
}

interface SweptValue {
  /** The value in YAML that the user typed. */
  readonly text: string
  readonly value: unknown
  /** The text that represents the value in paths and tables. */
  readonly shown: string
}

/** The value of one swept setting in one run. */
export interface SweptChoice extends SweptValue {
  readonly path: string
}

/**
 * Parses the arguments of `--population`, `key=v1,v2,…`. Values are YAML, so a comma in quotes or brackets belongs to
 * its value.
 */
export const parsePopulation = Effect.fnUntraced(function* (specs: ReadonlyArray<string>) {
  const variables = yield* Effect.forEach(specs, parseVariable)
  const twice = repeated(variables, ({ path }) => path)
  if (twice === undefined) return variables
  return yield* usageError(`--population ${twice.path}: this setting is listed twice; list each setting once`)
})

/** Returns the first item that has the same key as an earlier one. */
const repeated = <A>(items: ReadonlyArray<A>, keyOf: (item: A) => string): A | undefined =>
  items.find((item, index) => items.findIndex((other) => keyOf(other) === keyOf(item)) < index)

const parseVariable = Effect.fnUntraced(function* (spec: string) {
  const wrong = (text: string) => usageError(`--population ${spec}: ${text}`)
  const [, key, list] = /^([A-Za-z_]\w*(?:\.\w+)*)=([^]*)$/.exec(spec) ?? []
  if (key === undefined) return yield* wrong("expected key=value,value,…")
  const path = key
    .split(".")
    .map((part) => snakeCase(camelCase(part)))
    .join(".")
  if (path === "seed") return yield* wrong("use --seeds for seeds")
  const texts = splitValues(list)
  if (texts === undefined) return yield* wrong("a quote or a bracket is not closed")
  if (texts.includes(""))
    return yield* wrong('expected a value on both sides of every comma; write "" for an empty text')
  const values = yield* Effect.forEach(texts, (text) => {
    const value = Effect.try({ try: () => settingValue(text), catch: () => wrong(`${text} is not valid YAML`) })
    return Effect.map(value, (value): SweptValue => ({ text, value, shown: shownAs(value) }))
  })
  const twice = repeated(values, ({ shown }) => shown)
  if (twice !== undefined) return yield* wrong(`${twice.text} is listed twice`)
  return { path, values }
})

const partners: Readonly<Record<string, string>> = { "[": "]", "{": "}" }

/** Splits a list at the commas outside quotes and brackets; undefined if a quote or a bracket isn't closed. */
export const splitValues = (list: string): ReadonlyArray<string> | undefined => {
  const texts: Array<string> = []
  const open: Array<string> = []
  let from = 0
  // The last character so far that is not a space. A quote starts a quoted text only after one of `,[{:`, and not within a
  // word.
  let before = ","
  for (let at = 0; at < list.length; at++) {
    const here = list[at]
    if ((here === '"' || here === "'") && /[,[{:]/.test(before)) {
      const end = quoteEnd(list, at)
      if (end === undefined) return undefined
      at = end
    } else if (here === "," && open.length === 0) {
      texts.push(list.slice(from, at).trim())
      from = at + 1
    } else if (partners[here] !== undefined) open.push(partners[here])
    else if ((here === "]" || here === "}") && open.pop() !== here) return undefined
    if (here !== " ") before = here
  }
  return open.length > 0 ? undefined : [...texts, list.slice(from).trim()]
}

/** Returns the index of the closing quote of the quoted text that starts at `start`; undefined if the quote isn't closed. */
const quoteEnd = (list: string, start: number): number | undefined => {
  const [quoted] = /^(?:"(?:[^"\\]|\\[^])*"|'(?:[^']|'')*')/.exec(list.slice(start)) ?? []
  return quoted === undefined ? undefined : start + quoted.length - 1
}

const shownAs = (value: unknown): string =>
  typeof value === "string" ? value : typeof value === "object" ? JSON.stringify(value) : String(value)

/** Returns all combinations of one value per variable; the last variable's values change fastest. */
export const choicesOf = (variables: ReadonlyArray<Variable>): ReadonlyArray<ReadonlyArray<SweptChoice>> =>
  variables.reduce<ReadonlyArray<ReadonlyArray<SweptChoice>>>(
    (combinations, { path, values }) =>
      combinations.flatMap((choices) => values.map((value) => [...choices, { path, ...value }])),
    [[]],
  )

/** Returns a short name for each variable: the last part of its path, or the whole path if that part is ambiguous. */
export const shortNames = (variables: ReadonlyArray<{ readonly path: string }>): ReadonlyMap<string, string> => {
  const last = (path: string): string => path.slice(path.lastIndexOf(".") + 1)
  const taken = (path: string): boolean =>
    ["environment", "algorithm"].includes(last(path)) ||
    variables.some((other) => other.path !== path && last(other.path) === last(path))
  return new Map(variables.map(({ path }) => [path, taken(path) ? path : last(path)]))
}

/**
 * Returns the swept settings for a run's identifier, without the names of env and algorithm, which every identifier contains
 * anyway.
 */
export const populationOf = (
  variables: ReadonlyArray<Variable>,
  choices: ReadonlyArray<SweptChoice>,
): Readonly<Record<string, string>> => {
  const names = shortNames(variables)
  const isInName = (variable: Variable): boolean =>
    isNaming(variable) && variable.values.every(({ value }) => typeof value === "string")
  const inName = new Set(variables.filter(isInName).map(({ path }) => path))
  const others = choices.filter(({ path }) => !inName.has(path))
  return Object.fromEntries(others.map(({ path, shown }) => [names.get(path) ?? path, shown]))
}
