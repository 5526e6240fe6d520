/** JSON Schemas of objects that have the keys which they say, and no others. */
import { isPlain, type Plain, snakeCase, toSnakeCase } from "../src/config/Config.ts"
import type { Meanings } from "./meanings.ts"

export interface About {
  readonly meanings?: Meanings
  /** What is meant where a key is left out. */
  readonly defaults?: Plain
  /** Keys that can't be, by their names in code; those that the Schema says, unless given. */
  readonly required?: ReadonlyArray<string>
  /** In the place of what the Schema says of some keys, by their names in code. */
  readonly parts?: Plain
  /** Keys become snake_case; true unless given. */
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
    const said = {
      ...(description === undefined ? {} : { description }),
      ...(key in defaults ? { default: toSnakeCase(defaults[key]) } : {}),
    }
    return [spelled(key), isPlain(part) ? { ...part, ...said } : part]
  })
  return {
    type: "object",
    properties: Object.fromEntries(described),
    ...(required.length === 0 ? {} : { required: required.map(spelled) }),
    additionalProperties: false,
  }
}

/** A tree whose objects are all closed, with the same said of keys of the same names. */
export const closedAll = (tree: unknown, about: Pick<About, "meanings" | "renamed">): Plain => {
  const whole = inner(tree, about)
  return isPlain(whole) ? whole : {}
}

/** Bounds that only say what a double can hold are left out, and nested objects are closed as well. */
const inner = (tree: unknown, about: Pick<About, "meanings" | "renamed">): unknown => {
  if (Array.isArray(tree)) return tree.map((one) => inner(one, about))
  if (!isPlain(tree)) return tree
  if (isPlain(tree.properties)) return closed(tree, about)
  const kept = Object.entries(tree).filter(
    ([key, value]) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER && !(key === "prefixItems" && isSame(tree)),
  )
  return Object.fromEntries(kept.map(([key, value]) => [key, inner(value, about)]))
}

/** A list of at least one says the same of its first item and of the others; older editors know only the latter. */
const isSame = ({ prefixItems, items }: Plain): boolean =>
  Array.isArray(prefixItems) && prefixItems.every((item) => JSON.stringify(item) === JSON.stringify(items))
