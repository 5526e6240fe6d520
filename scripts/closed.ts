/** Writes JSON Schemas of objects that allow only the keys they list. */
import { isPlain, type Plain, snakeCase, toSnakeCase } from "../src/config/Config.ts"
import type { Meanings } from "./meanings.ts"

export interface About {
  readonly meanings?: Meanings
  /** The default of each key, by the key's name in code. */
  readonly defaults?: Plain
  /** The required keys, by their names in code. Default: the keys that the Schema requires. */
  readonly required?: ReadonlyArray<string>
  /** Replaces the schemas of some keys, by their names in code. */
  readonly parts?: Plain
  /** Converts keys to snake_case. Default: true. */
  readonly renamed?: boolean
}

const texts = (list: unknown): ReadonlyArray<string> =>
  Array.isArray(list) ? list.filter((one) => typeof one === "string") : []

export const closed = (tree: unknown, about: About = {}): Plain => {
  const { meanings = new Map<string, string>(), defaults = {}, parts = {}, renamed = true } = about
  const spelled = (key: string): string => (renamed ? snakeCase(key) : key)
  const object = isPlain(tree) ? tree : {}
  const properties = isPlain(object.properties) ? object.properties : {}
  const required = about.required ?? texts(object.required)
  const described = Object.entries(properties).map(([key, item]) => {
    const part = key in parts ? parts[key] : inner(item, { renamed })
    const description = meanings.get(key)
    const documentation = {
      ...(description === undefined ? {} : { description }),
      ...(key in defaults ? { default: toSnakeCase(defaults[key]) } : {}),
    }
    return [spelled(key), isPlain(part) ? { ...part, ...documentation } : part]
  })
  return {
    type: "object",
    properties: Object.fromEntries(described),
    ...(required.length === 0 ? {} : { required: required.map(spelled) }),
    additionalProperties: false,
  }
}

/** Closes all objects of a tree, and describes keys of the same name alike. */
export const closedAll = (tree: unknown, about: Pick<About, "meanings" | "renamed">): Plain => {
  const whole = inner(tree, about)
  return isPlain(whole) ? whole : {}
}

/** Leaves out bounds that only state the range of a double, and closes nested objects. */
const inner = (tree: unknown, about: Pick<About, "meanings" | "renamed">): unknown => {
  if (Array.isArray(tree)) return tree.map((one) => inner(one, about))
  if (!isPlain(tree)) return tree
  if (isPlain(tree.properties)) return closed(tree, about)
  const kept = Object.entries(tree).filter(
    ([key, value]) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER && !(key === "prefixItems" && isSame(tree)),
  )
  return Object.fromEntries(kept.map(([key, value]) => [key, inner(value, about)]))
}

/**
 * Tells whether all items of a list have one schema. Then `items` alone describes the list, because older editors don't
 * read `prefixItems`.
 */
const isSame = ({ prefixItems, items }: Plain): boolean =>
  Array.isArray(prefixItems) && prefixItems.every((item) => JSON.stringify(item) === JSON.stringify(items))
