import { isPlain } from "../../config/plain.ts"
import { compareText } from "./RunEntry.ts"

/** The value of a run's key in filters, orders and cells; undefined if the run doesn't have the key. */
export type Value = string | number | boolean | null

const decimal = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i

/** Parses a number; undefined for other texts. */
export const numberOf = (text: string): number | undefined => {
  const value = decimal.test(text) ? Number(text) : NaN
  return Number.isFinite(value) ? value : undefined
}

/** Turns a text into a number if it is one: the values of a population are texts. */
export const valueOfText = (text: string): Value => numberOf(text) ?? text

/**
 * Returns the value of data. An object with a name (an algorithm, a strategy, an agent) becomes its name, other trees
 * their JSON.
 */
export const valueOfData = (data: unknown): Value | undefined => {
  if (data === undefined || data === null) return data
  if (typeof data === "string" || typeof data === "number" || typeof data === "boolean") return data
  if (isPlain(data)) {
    const name = data["name"] ?? data["_tag"] ?? data["type"]
    if (typeof name === "string") return name
  }
  return JSON.stringify(data)
}

/** Returns the value at a path of keys. */
export const dataAt = (data: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((tree, key) => (isPlain(tree) && Object.hasOwn(tree, key) ? tree[key] : undefined), data)

const rank = (value: Value | undefined): number =>
  value === undefined ? 4 : value === null ? 3 : typeof value === "string" ? 2 : typeof value === "boolean" ? 1 : 0

/** Sorts numbers before texts before missing values. */
export const compareValues = (a: Value | undefined, b: Value | undefined): number => {
  if (typeof a === "number" && typeof b === "number") return a - b
  return rank(a) - rank(b) || compareText(String(a), String(b))
}
