/**
 * Returns the JSON of a value with sorted keys, so that equal values have equal texts. The keys of the cache and the
 * random numbers of retries are computed from such texts.
 *
 * @example `canonical({ b: 1, a: [true] })` is `{"a":[true],"b":1}`.
 */
export const canonical = (value: unknown): string => JSON.stringify(sorted(value)) ?? "null"

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).filter(([, item]) => item !== undefined)
  // Compare by code units: the order must not depend on the locale.
  entries.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]))
}
