/**
 * A value as JSON that doesn't depend on the order of its keys: equal values, equal text.
 *
 * @example `canonical({ b: 1, a: [true] })` is `{"a":[true],"b":1}`.
 */
export const canonical = (value: unknown): string => JSON.stringify(sorted(value)) ?? "null"

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  // By code units: the same order wherever it runs.
  entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]))
}
