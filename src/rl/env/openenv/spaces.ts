/** Makes the spaces of an env from the JSON Schemas of a server of OpenEnv. */
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { alternativesOf, propertiesOf } from "../../../spread/openenv/jsonSchemas.ts"
import { type ActionSpace, box, type Box, discrete, multiDiscrete } from "../Space.ts"

/** The keys that all actions and observations of OpenEnv have. */
const common = ["metadata", "done", "reward"]

/** Returns the properties of the actions or observations that a Schema describes, without those that all have. */
export const ownProperties = (schema: Plain): Plain => {
  const [first, ...others] = alternativesOf(schema)
  const properties = others.length > 0 || first === undefined ? {} : propertiesOf(first)
  return Object.fromEntries(Object.entries(properties).filter(([key]) => !common.includes(key)))
}

const numberOf = (schema: unknown, key: string): number | undefined => {
  const value = isPlain(schema) ? schema[key] : undefined
  return typeof value === "number" ? value : undefined
}

/** Returns the Schemas of the items of a list with a fixed length; undefined if the Schema is of something else. */
const itemsOf = (schema: unknown): ReadonlyArray<unknown> | undefined => {
  const length = numberOf(schema, "minItems")
  if (!isPlain(schema) || length === undefined || !Number.isInteger(length) || length !== schema["maxItems"])
    return undefined
  const { items, prefixItems } = schema
  if (Array.isArray(prefixItems)) return prefixItems.length === length ? prefixItems : undefined
  return length > 0 && length <= 2 ** 24 ? new Array<unknown>(length).fill(items) : undefined
}

/** Returns the number of choices of a whole number; undefined if it is not limited. */
const choicesIn = (schema: unknown): number | undefined => {
  if (!isPlain(schema) || schema["type"] !== "integer" || numberOf(schema, "minimum") !== 0) return undefined
  const most = numberOf(schema, "maximum")
  return most === undefined ? undefined : most + 1
}

const isNumber = (schema: unknown): boolean => isPlain(schema) && schema["type"] === "number"

/** Returns the space of actions whose only free value has this Schema; undefined if it does not say the sizes. */
export const actionSpaceOf = (schema: unknown): ActionSpace | undefined => {
  const choices = choicesIn(schema)
  if (choices !== undefined) return discrete(choices)
  const items = itemsOf(schema)
  if (items === undefined) return undefined
  const sizes = items.flatMap((item) => choicesIn(item) ?? [])
  if (sizes.length === items.length) return multiDiscrete(sizes)
  if (!items.every(isNumber)) return undefined
  return box(
    items.map((item) => numberOf(item, "minimum") ?? -Infinity),
    items.map((item) => numberOf(item, "maximum") ?? Infinity),
  )
}

/** Returns the space of a list of numbers; undefined if its Schema does not say how many. */
export const observationSpaceOf = (schema: unknown): Box | undefined => {
  const items = itemsOf(schema)
  return items?.every((item) => isNumber(item) || (isPlain(item) && item["type"] === "integer")) === true
    ? box(-Infinity, Infinity, [items.length])
    : undefined
}
