/** Compares configs, key by key, for `effect runs diff` and the page of `effect ui`. */
import { isPlain } from "../../base/config/plain.ts"
import { compareText } from "./RunEntry.ts"

/** A key whose values differ between two configs. `left` or `right` is left out if that config lacks the key. */
interface KeyDifference {
  readonly key: string
  readonly left?: unknown
  readonly right?: unknown
}

/**
 * Maps the dotted paths in a tree, such as `algorithm.gamma`, to their values. Only a value without keys below it has
 * an entry, such as a number, a list or an empty object.
 */
export const leaves = (tree: unknown): ReadonlyMap<string, unknown> => {
  const all = new Map<string, unknown>()
  const walk = (value: unknown, path: ReadonlyArray<string>): void => {
    if (isPlain(value) && Object.keys(value).length > 0) {
      for (const [key, child] of Object.entries(value)) walk(child, [...path, key])
    } else if (path.length > 0) all.set(path.join("."), value)
  }
  walk(tree, [])
  return all
}

/**
 * Returns the differences between two configs: first the keys of the left one, in its order, then keys that only the right
 * one has.
 */
export const diff = (left: unknown, right: unknown): ReadonlyArray<KeyDifference> => {
  const [ours, theirs] = [leaves(left), leaves(right)]
  return [...new Set([...ours.keys(), ...theirs.keys()])].flatMap((key) => {
    const [one, other] = [ours.get(key), theirs.get(key)]
    if (textOf(one) === textOf(other)) return []
    return [{ key, ...(ours.has(key) ? { left: one } : {}), ...(theirs.has(key) ? { right: other } : {}) }]
  })
}

/**
 * Returns the differences of the configs of two runs. The config of a multi-run trainer's run has a section with the run's
 * name. This section is renamed to `runs.*`, so that runs with different names are compared key by key.
 *
 * @example
 * ```ts
 * const [left, right] = ["a", "b"].map((name) => ({ kind: "multirun", runs: { [name]: { maxSteps: 10 } } }))
 * diffOfRuns(left, right) // [{ key: "runs", left: "a", right: "b" }]
 * ```
 */
export const diffOfRuns = (left: unknown, right: unknown): ReadonlyArray<KeyDifference> => {
  const [one, other] = [onlyRunIn(left), onlyRunIn(right)]
  if (one === undefined || other === undefined || one === other) return diff(left, right)
  return [{ key: "runs", left: one, right: other }, ...diff(unnamed(left, one), unnamed(right, other))]
}

/** Returns the name of the only run in a trainer's config; undefined for other configs. */
const onlyRunIn = (config: unknown): string | undefined => {
  if (!isPlain(config) || config.kind !== "multirun" || !isPlain(config.runs)) return undefined
  const names = Object.keys(config.runs)
  return names.length === 1 ? names[0] : undefined
}

const unnamed = (config: unknown, name: string): unknown =>
  isPlain(config) && isPlain(config.runs) ? { ...config, runs: { "*": config.runs[name] } } : config

/**
 * Converts a value to a text. Equal values have equal texts, and unlike in JSON, NaN and infinities have texts of their own.
 */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === "number" && !Number.isFinite(inner)) return `number ${inner}`
    return isPlain(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => compareText(a, b))) : inner
  }) ?? "undefined"
