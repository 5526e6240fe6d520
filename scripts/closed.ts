/** Makes closed JSON Schemas, whose objects allow only the keys that they list. The other scripts call it. */
import { isPlain, type Plain, snakeCase, toSnakeCase } from "../src/base/config/Config.ts"
import type { Meanings } from "./meanings.ts"

/** Says what `closed` adds to the schema of an object, and what it replaces there. */
export interface About {
  /** The description of each key, by the key's name in code. */
  readonly meanings?: Meanings
  /** The default of each key, by the key's name in code. */
  readonly defaults?: Plain
  /** The required keys, by their names in code. Default: the keys that the Schema requires. */
  readonly required?: ReadonlyArray<string>
  /** The schemas that replace those of some keys, by the names of these keys in code. */
  readonly parts?: Plain
  /** Whether keys are converted to snake_case. Default: true. */
  readonly renamed?: boolean
}

const texts = (list: unknown): ReadonlyArray<string> =>
  Array.isArray(list) ? list.filter((one) => typeof one === "string") : []

/** Closes the JSON Schema of an object and of the objects nested in it. What `about` adds is only for the outer one. */
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

/** Closes all objects of a schema. In a union of objects, keys of one name get the same description. */
export const closedAll = (tree: unknown, about: Pick<About, "meanings" | "renamed">): Plain => {
  const whole = inner(tree, about)
  return isPlain(whole) ? whole : {}
}

/** Closes all objects in a part of a schema. Drops integer bounds of ±(2^53 − 1), and repeated `prefixItems`. */
const inner = (tree: unknown, about: Pick<About, "meanings" | "renamed">): unknown => {
  if (Array.isArray(tree)) return tree.map((one) => inner(one, about))
  if (!isPlain(tree)) return tree
  if (isPlain(tree.properties)) return closed(tree, about)
  const kept = Object.entries(tree).filter(
    ([key, value]) =>
      Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER && !(key === "prefixItems" && isRepeated(tree)),
  )
  return Object.fromEntries(kept.map(([key, value]) => [key, inner(value, about)]))
}

/** Tells whether `prefixItems` only repeats `items`. Then it is left out, because older editors do not read it. */
const isRepeated = ({ prefixItems, items }: Plain): boolean =>
  Array.isArray(prefixItems) && prefixItems.every((item) => JSON.stringify(item) === JSON.stringify(items))
