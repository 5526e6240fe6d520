/** Finds the schemas that `$ref` names. */
import { isPlain } from "../../base/config/plain.ts"
import { formatError } from "./Network.ts"

interface Target {
  /** The place of the schema. */
  readonly name: string
  readonly schema: unknown
}

/** Reads one key of a JSON Pointer in a fragment. */
const keyOf = (part: string): string => {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")
  } catch {
    return part
  }
}

/** Returns the schema that a reference names. Only references into the same schema are followed. */
export const refTarget = (root: unknown, reference: unknown, path: string): Target => {
  if (typeof reference !== "string" || !/^#($|\/)/.test(reference))
    throw formatError(path, 'expected a reference into the same schema, such as "#/$defs/item"')
  let schema = root
  for (const part of reference.split("/").slice(1)) {
    const key = keyOf(part)
    const isItem = Array.isArray(schema) && /^\d+$/.test(key)
    const next: unknown = Array.isArray(schema) && isItem ? schema[Number(key)] : ownValue(schema, key)
    if (next === undefined) throw formatError(path, `the schema has no ${reference.slice(0, 200)}`)
    schema = next
  }
  return { name: `schema${reference.slice(1)}`, schema }
}

const ownValue = (value: unknown, key: string): unknown =>
  isPlain(value) && Object.hasOwn(value, key) ? value[key] : undefined
