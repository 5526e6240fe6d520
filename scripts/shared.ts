/**
 * Makes JSON Schemas short: a part that occurs twice or more becomes one of the document's `$defs`, to which all its places
 * refer. A place whose description or default is its own keeps them beside the reference, where editors show them.
 */
import { isPlain, type Plain } from "../src/base/config/Config.ts"

/** Tells whether a part is long enough to be shared: a short one is easier to read in its place. */
const isLong = (tree: Plain): boolean => {
  const lines = JSON.stringify(tree, undefined, 2).split("\n").length
  // Without a description, some lines are equal by chance: an integer from 1 says nothing by itself.
  return lines >= (tree.description === undefined ? 10 : 5)
}

type Visit = (tree: Plain, name: string) => Plain

/** Returns a schema with `visit` applied to all schemas directly in it, with the key under which each stands. */
const mapped = (tree: Plain, name: string, visit: Visit): Plain => {
  const one = (item: unknown, key: string): unknown => (isPlain(item) ? visit(item, key) : item)
  const entries = Object.entries(tree).map(([key, item]): [string, unknown] => {
    if (["properties", "patternProperties"].includes(key) && isPlain(item))
      return [key, Object.fromEntries(Object.entries(item).map(([at, part]) => [at, one(part, at)]))]
    if (["anyOf", "prefixItems"].includes(key) && Array.isArray(item)) return [key, item.map((part) => one(part, name))]
    return [key, ["items", "additionalProperties"].includes(key) ? one(item, name) : item]
  })
  return Object.fromEntries(entries)
}

/** Separates what a schema tells readers from what it demands. */
const separated = ({
  description,
  default: value,
  ...core
}: Plain): { readonly core: Plain; readonly notes: Plain } => ({
  core,
  notes: { ...(description !== undefined && { description }), ...(value !== undefined && { default: value }) },
})

/** Returns how many places each part of the schemas has, by its JSON; what lies in a repeated part counts once. */
const placesIn = (roots: ReadonlyArray<Plain>): ReadonlyMap<string, number> => {
  const places = new Map<string, number>()
  const count: Visit = (tree, name) => {
    const key = JSON.stringify(tree)
    const before = places.get(key) ?? 0
    places.set(key, before + 1)
    if (before > 0) return tree
    const { core, notes } = separated(tree)
    return Object.keys(notes).length > 0 ? count(core, name) : mapped(tree, name, count)
  }
  for (const root of roots) mapped(root, "root", count)
  return places
}

/** Returns the same schema with its repeated parts in `$defs`. */
export const withShared = ({ $defs, ...root }: Plain): Plain => {
  const definitions = new Map(Object.entries(isPlain($defs) ? $defs : {}))
  const places = placesIn([root, ...[...definitions.values()].filter(isPlain)])
  const names = new Map<string, string>()
  /** Returns the name of a part in `$defs`, and adds it there when it is met first. */
  const nameOf = (tree: Plain, key: string, wanted: string): string => {
    const known = names.get(key)
    if (known !== undefined) return known
    let name = wanted
    for (let number = 2; definitions.has(name); number++) name = `${wanted}_${number}`
    names.set(key, name)
    definitions.set(name, tree)
    definitions.set(name, inside(tree, wanted))
    return name
  }
  const inside: Visit = (tree, name) => {
    const { core, notes } = separated(tree)
    return Object.keys(notes).length > 0 ? { ...share(core, name), ...notes } : mapped(tree, name, share)
  }
  const share: Visit = (tree, name) => {
    const key = JSON.stringify(tree)
    const isShared = (places.get(key) ?? 0) > 1 && isLong(tree)
    return isShared ? { $ref: `#/$defs/${nameOf(tree, key, name)}` } : inside(tree, name)
  }
  for (const [name, tree] of definitions) if (isPlain(tree)) definitions.set(name, mapped(tree, name, share))
  const whole = mapped(root, "root", share)
  return definitions.size === 0 ? whole : { ...whole, $defs: Object.fromEntries(definitions) }
}
