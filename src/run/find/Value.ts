/** Parses and compares single values of runs, for `effect runs` and the page of `effect ui`. These are pure functions. */
import { isPlain } from "../../base/config/plain.ts"
import { compareText } from "./RunEntry.ts"

/** The value of one of a run's keys, such as `seed` or `algorithm.gamma`, for filters, sorting and table cells. */
export type RunValue = string | number | boolean | null

const decimal = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i

/** Parses a number; undefined for other texts. */
export const numberOf = (text: string): number | undefined => {
  const value = decimal.test(text) ? Number(text) : NaN
  return Number.isFinite(value) ? value : undefined
}

/**
 * Converts a text that is a number to the number, and returns other texts unchanged. All values in a run's path are texts.
 */
export const valueOfText = (text: string): RunValue => numberOf(text) ?? text

/**
 * Converts data to a single value. An object with a name (an algorithm, a strategy, an agent) becomes its name; other
 * objects and lists become their JSON.
 */
export const valueOfData = (data: unknown): RunValue | undefined => {
  if (data === undefined) return undefined
  if (data === null) return null
  if (typeof data === "string" || typeof data === "number" || typeof data === "boolean") return data
  if (isPlain(data)) {
    const name = data["name"] ?? data["_tag"] ?? data["type"]
    if (typeof name === "string") return name
  }
  return JSON.stringify(data)
}

/** Returns the value at a path of keys; undefined if a key is missing. */
export const dataAt = (data: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((tree, key) => (isPlain(tree) && Object.hasOwn(tree, key) ? tree[key] : undefined), data)

/** Returns the number at a path of keys; undefined if there is none. */
export const numberAt = (data: unknown, path: ReadonlyArray<string>): number | undefined => {
  const value = dataAt(data, path)
  return typeof value === "number" ? value : undefined
}

const ranks = ["number", "boolean", "string", "object", "undefined"]

/** Returns the position of a value's type in the sort order. The only value of the type "object" is null. */
const rank = (value: RunValue | undefined): number => ranks.indexOf(typeof value)

/** Compares two values for sorting: numbers come first, then booleans, texts, null, and missing values. */
export const compareValues = (a: RunValue | undefined, b: RunValue | undefined): number => {
  if (typeof a === "number" && typeof b === "number") return a - b
  return rank(a) - rank(b) || compareText(String(a), String(b))
}
