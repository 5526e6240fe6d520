/**
 * Parses conditions on runs and tests runs by them, for `effect runs --where` and the filter on the page of `effect
 * ui`. This module and its imports are plain functions without Effect or Node, so that the page can load them as they
 * are.
 *
 * @example
 * ```ts
 * parseFilter("validation > 400") // { filter: { key: "validation", operator: ">", value: "400" } }
 * parseFilter("validation") // { problem: "validation: expected KEY=VALUE, or one of != < > <= >= between them" }
 * parseSearch('ppo algorithm.learning_rate<1e-3 name="my run"') // one word, two filters
 * ```
 */
import { isSameName } from "../identifier.ts"
import { compareText } from "./RunEntry.ts"
import { numberOf, type RunValue } from "./Value.ts"

/** One condition on runs: `seed=7`, `algorithm.learning_rate<1e-3`, `time>2026-02`. */
export interface RunFilter {
  readonly key: string
  readonly operator: Operator
  readonly value: string
}

/**
 * Maps each operator to its test of the result of `orderOf`: 0 if the values are equal, negative if the run's value is
 * smaller.
 */
const holds = {
  "=": (order: number) => order === 0,
  "!=": (order: number) => order !== 0,
  "<": (order: number) => order < 0,
  ">": (order: number) => order > 0,
  "<=": (order: number) => order <= 0,
  ">=": (order: number) => order >= 0,
}
export type Operator = keyof typeof holds

const isOperator = (text: string): text is Operator => Object.hasOwn(holds, text)

const operatorOf = (text: string): Operator | undefined => {
  const symbol = text === "==" ? "=" : text
  return isOperator(symbol) ? symbol : undefined
}

/** Parses `KEY OPERATOR VALUE`, divided at the first operator. Spaces around it are ignored; `==` means `=`. */
export const parseFilter = (text: string): { readonly filter: RunFilter } | { readonly problem: string } => {
  const [, key = "", symbol = "", value = ""] = /^(.*?)(!=|<=|>=|==?|<|>)(.*)$/s.exec(text) ?? []
  const operator = operatorOf(symbol)
  return key.trim() !== "" && operator !== undefined
    ? { filter: { key: key.trim(), operator, value: value.trim() } }
    : { problem: `${text}: expected KEY=VALUE, or one of != < > <= >= between them` }
}

/** The parsed text of a search field: words that a run's texts must contain, and filters that its values must pass. */
interface Search {
  /** The words in lower case. */
  readonly words: ReadonlyArray<string>
  readonly filters: ReadonlyArray<RunFilter>
  /** The error messages: one line for each incomplete condition, such as `validation>` without a value. */
  readonly problems: ReadonlyArray<string>
}

/** Matches a value: a quoted text, or a text without spaces. `part` matches a filter, a quoted text or a word. */
const term = String.raw`"[^"]*"|[^\s"]\S*`
const part = new RegExp(String.raw`([^\s=<>!"]+)\s*(!=|<=|>=|==?|<|>)\s*(${term}|$)|"([^"]*)"|(\S+)`, "g")

/**
 * Reads what people type into one search field: `ppo validation>400 name="my run"`. Parts are divided by spaces; spaces
 * around an operator don't count; quotes hold a value with spaces together. A part without an operator is a word.
 */
export const parseSearch = (text: string): Search => {
  const words: Array<string> = []
  const filters: Array<RunFilter> = []
  const problems: Array<string> = []
  for (const [whole, key, symbol, value, quoted, word] of text.matchAll(part)) {
    const operator = operatorOf(symbol)
    if (operator === undefined) {
      const plain = (quoted ?? word).toLowerCase()
      if (/[=<>]/.test(plain) && quoted === undefined) problems.push(`${whole}: expected a key before the operator`)
      else if (plain !== "") words.push(plain)
    } else if (value === "") problems.push(`${whole.trim()}: expected a value after ${operator}`)
    else filters.push({ key, operator, value: value.replace(/^"(.*)"$/, "$1") })
  }
  return { words, filters, problems }
}

export const formatFilter = ({ key, operator, value }: RunFilter): string => `${key}${operator}${value}`

/**
 * Tells whether a run passes a filter. `value` is the run's value of the filter's key (`valueIn` of `keys.ts` returns
 * it). Numbers are compared as numbers (`1e-3` is `0.001`), texts as texts. A run without the key passes only `!=`. In
 * a name, an environment and an algorithm, `_` equals `-`. `tag=x` holds if one of the run's tags is `x`.
 */
export const passes = ({ key, operator, value: wanted }: RunFilter, value: RunValue | undefined): boolean => {
  if (value === undefined) return operator === "!="
  if (key === "tag") return holds[operator](tagsIn(value).includes(wanted) ? 0 : NaN)
  const isName = names.has(key.replace(/^population\./, ""))
  const order = isName && isSameName(String(value), wanted) ? 0 : orderOf(value, wanted)
  return holds[operator](order)
}

/** Returns the tags in the value of the key `tag`: all tags of the run, divided by spaces, which no tag has. */
const tagsIn = (value: RunValue): ReadonlyArray<string> => String(value).split(" ")

/** The keys whose values may come from file names, in which `history_agent` equals `history-agent`. */
const names = new Set(["name", "environment", "algorithm"])

/** Compares a run's value with a filter's text: 0 if equal, below 0 if smaller, above 0 if larger; NaN if neither. */
const orderOf = (value: RunValue, wanted: string): number => {
  if (typeof value === "string") return compareText(value, wanted)
  if (typeof value !== "number") return String(value) === wanted ? 0 : NaN
  const number = numberOf(wanted)
  return number === undefined ? NaN : value - number
}
