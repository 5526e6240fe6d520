import { isPlain } from "../../config/plain.ts"
import { compareText } from "./RunEntry.ts"

/** What a key of a run can be, for filters, orders and cells; undefined stands for a key that the run doesn't have. */
export type Value = string | number | boolean | null

const decimal = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?$/i

/** The number that a text is, if it is one. */
export const numberOf = (text: string): number | undefined => {
  const value = decimal.test(text) ? Number(text) : NaN
  return Number.isFinite(value) ? value : undefined
}

/** Text that is a number as one: a population's values are texts, whatever they once were. */
export const valueOfText = (text: string): Value => numberOf(text) ?? text

/** A config's or a file's value. A thing with a name (an algorithm, a strategy, an agent) goes by it; other trees are their JSON. */
export const valueOfData = (data: unknown): Value | undefined => {
  if (data === undefined || data === null) return data
  if (typeof data === "string" || typeof data === "number" || typeof data === "boolean") return data
  if (isPlain(data)) {
    const name = data["name"] ?? data["_tag"] ?? data["type"]
    if (typeof name === "string") return name
  }
  return JSON.stringify(data)
}

/** The value at a path of keys. */
export const dataAt = (data: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>((tree, key) => (isPlain(tree) && Object.hasOwn(tree, key) ? tree[key] : undefined), data)

const rank = (value: Value | undefined): number =>
  value === undefined ? 4 : value === null ? 3 : typeof value === "string" ? 2 : typeof value === "boolean" ? 1 : 0

/** Numbers before texts before nothing. */
export const compareValues = (a: Value | undefined, b: Value | undefined): number => {
  if (typeof a === "number" && typeof b === "number") return a - b
  return rank(a) - rank(b) || compareText(String(a), String(b))
}
