import { isPlain } from "../../config/plain.ts"
import { compareText } from "./RunEntry.ts"

/** One key that differs; a side without the key has none here either. */
export interface Difference {
  readonly key: string
  readonly left?: unknown
  readonly right?: unknown
}

/** A tree's leaves by their dotted paths. Lists are leaves, and so is a tree without keys. */
export const leaves = (tree: unknown): ReadonlyMap<string, unknown> => {
  const found = new Map<string, unknown>()
  const walk = (value: unknown, path: ReadonlyArray<string>): void => {
    if (isPlain(value) && Object.keys(value).length > 0) {
      for (const [key, child] of Object.entries(value)) walk(child, [...path, key])
    } else if (path.length > 0) found.set(path.join("."), value)
  }
  walk(tree, [])
  return found
}

/** What differs between two configs, key by key: those of the left in its order, then those that only the right has. */
export const diff = (left: unknown, right: unknown): ReadonlyArray<Difference> => {
  const [ours, theirs] = [leaves(left), leaves(right)]
  return [...new Set([...ours.keys(), ...theirs.keys()])].flatMap((key) => {
    const [one, other] = [ours.get(key), theirs.get(key)]
    if (textOf(one) === textOf(other)) return []
    return [{ key, ...(ours.has(key) ? { left: one } : {}), ...(theirs.has(key) ? { right: other } : {}) }]
  })
}

/** Equal values have equal texts, in whatever order their keys were written. YAML has numbers that JSON has not. */
const textOf = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => {
    if (typeof inner === "number" && !Number.isFinite(inner)) return `number ${inner}`
    return isPlain(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => compareText(a, b))) : inner
  }) ?? "undefined"
