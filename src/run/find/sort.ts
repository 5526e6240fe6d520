import { Effect } from "effect"
import { RunsError } from "./RunsError.ts"
import { compareValues, type Value } from "./Value.ts"

export interface Sort {
  readonly key: string
  readonly descending: boolean
}

/** Parses a sort order: `KEY`, `KEY:asc` or `KEY:desc`. */
export const parseSort = (text: string): Effect.Effect<Sort, RunsError> => {
  const [, key = "", order = "asc"] = /^([^:].*?)(?::([^:]*))?$/.exec(text.trim()) ?? []
  return key !== "" && (order === "asc" || order === "desc")
    ? Effect.succeed({ key, descending: order === "desc" })
    : Effect.fail(new RunsError({ message: `${text}: expected KEY, KEY:asc or KEY:desc` }))
}

/** Sorts items by value. Items with equal values keep their order, and items without a value come last. */
export const sortBy = <A>(
  items: ReadonlyArray<A>,
  valueOf: (item: A) => Value | undefined,
  descending: boolean,
): ReadonlyArray<A> => {
  const isThere = (value: Value | undefined): boolean => value !== undefined && value !== null
  return items
    .map((item) => ({ item, value: valueOf(item) }))
    .sort((a, b) => {
      if (!isThere(a.value) || !isThere(b.value)) return Number(isThere(b.value)) - Number(isThere(a.value))
      return descending ? compareValues(b.value, a.value) : compareValues(a.value, b.value)
    })
    .map(({ item }) => item)
}
