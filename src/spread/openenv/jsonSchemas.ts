/**
 * Reads the JSON Schemas by which a server of OpenEnv describes its actions, and checks values against them. It knows the
 * keywords that such Schemas have; the server itself checks everything else.
 */
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { jsonOf, shortened } from "../../base/text/text.ts"

/** The depth of references and alternatives after which a Schema is not read further. */
const deepest = 32

/** The number of Schemas that a check reads. Alternatives that refer to each other could otherwise take hours. */
const mostChecks = 100_000

/** A check of a value: the Schema with the definitions, and how many Schemas may still be read. */
interface Check {
  readonly root: Plain
  left: number
}

/** Follows a reference to the definitions of a Schema. */
const resolved = (schema: unknown, root: Plain, depth = 0): Plain => {
  if (!isPlain(schema)) return {}
  const { $ref: reference } = schema
  const [, name] = typeof reference === "string" ? (/^#\/\$defs\/([^/]+)$/.exec(reference) ?? []) : []
  const { $defs: definitions } = root
  if (name === undefined || depth > deepest || !isPlain(definitions) || !Object.hasOwn(definitions, name)) return schema
  return resolved(definitions[name], root, depth + 1)
}

const alternativesIn = (schema: Plain): ReadonlyArray<unknown> | undefined => {
  const { anyOf, oneOf } = schema
  const list = anyOf ?? oneOf
  return Array.isArray(list) ? list : undefined
}

/** Returns the kinds of objects that a Schema allows: its alternatives, or the Schema itself. */
export const alternativesOf = (schema: Plain): ReadonlyArray<Plain> =>
  alternativesIn(schema)?.map((one) => resolved(one, schema)) ?? [resolved(schema, schema)]

/** Returns the Schemas of an object's properties. */
export const propertiesOf = (schema: Plain): Plain => {
  const { properties } = schema
  return isPlain(properties) ? properties : {}
}

/** Returns the only value that a property of an object can have; undefined if it can have several. */
export const constantOf = (schema: Plain, key: string): unknown => {
  const property = propertiesOf(schema)[key]
  return isPlain(property) ? property["const"] : undefined
}

/** Returns the type of a property that is a text, a number or a truth value; undefined for any other. */
export const scalarType = (property: unknown): "string" | "integer" | "number" | "boolean" | undefined => {
  const type = isPlain(property) ? property["type"] : undefined
  return type === "string" || type === "integer" || type === "number" || type === "boolean" ? type : undefined
}

const types: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  array: Array.isArray,
  object: isPlain,
  null: (value) => value === null,
}

const shown = (value: unknown): string => shortened(jsonOf(value) ?? String(value), 80)

const isAbove = (limit: unknown, value: number): boolean => typeof limit === "number" && limit > value

/** Describes what is wrong with a number or with the length of a text or a list; undefined if nothing is. */
const sizeProblem = (schema: Plain, value: unknown): string | undefined => {
  if (typeof value === "number") {
    if (isAbove(schema["minimum"], value)) return `expected at least ${String(schema["minimum"])}, found ${value}`
    if (typeof schema["maximum"] === "number" && schema["maximum"] < value)
      return `expected at most ${schema["maximum"]}, found ${value}`
    return undefined
  }
  const { length } = typeof value === "string" || Array.isArray(value) ? value : {}
  if (length === undefined) return undefined
  const [least, most, what] =
    typeof value === "string"
      ? [schema["minLength"], schema["maxLength"], "characters"]
      : [schema["minItems"], schema["maxItems"], "items"]
  if (isAbove(least, length)) return `expected at least ${String(least)} ${what}, found ${length}`
  if (typeof most === "number" && most < length) return `expected at most ${most} ${what}, found ${length}`
  return undefined
}

const objectProblem = (schema: Plain, value: Plain, check: Check, depth: number): string | undefined => {
  const properties = propertiesOf(schema)
  const required: ReadonlyArray<unknown> = Array.isArray(schema["required"]) ? schema["required"] : []
  const missing = required.find((key) => typeof key === "string" && !Object.hasOwn(value, key))
  if (missing !== undefined) return `expected a key ${shown(missing)}, found none`
  for (const [key, item] of Object.entries(value)) {
    if (!Object.hasOwn(properties, key)) {
      if (schema["additionalProperties"] !== false) continue
      return `expected only the keys ${shortened(Object.keys(properties).join(", "), 300)}, found ${shown(key)}`
    }
    const problem = problemIn(properties[key], item, check, depth + 1)
    if (problem !== undefined) return `${key}: ${problem}`
  }
  return undefined
}

/** Describes why a value has none of the types, constants and choices that a Schema allows; undefined if it has one. */
const kindProblem = (schema: Plain, value: unknown): string | undefined => {
  const { type, const: constant, enum: choices } = schema
  if (typeof type === "string" && Object.hasOwn(types, type) && !types[type](value))
    return `expected a value of type ${type}, found ${shown(value)}`
  if (constant !== undefined && !isPlain(constant) && constant !== value)
    return `expected ${shown(constant)}, found ${shown(value)}`
  if (Array.isArray(choices) && !choices.includes(value))
    return `expected one of ${shortened(choices.map(shown).join(", "), 300)}, found ${shown(value)}`
  return undefined
}

const problemIn = (schema: unknown, value: unknown, check: Check, depth: number): string | undefined => {
  if (depth > deepest || --check.left < 0) return undefined
  const own = resolved(schema, check.root)
  const alternatives = alternativesIn(own)
  if (alternatives !== undefined) return alternativesProblem(alternatives, value, check, depth)
  const problem = kindProblem(own, value) ?? sizeProblem(own, value)
  if (problem !== undefined) return problem
  if (isPlain(value)) return objectProblem(own, value, check, depth)
  return Array.isArray(value) ? listProblem(own, value, check, depth) : undefined
}

/** Describes why a value fits none of the alternatives; undefined if it fits one. */
const alternativesProblem = (
  alternatives: ReadonlyArray<unknown>,
  value: unknown,
  check: Check,
  depth: number,
): string | undefined => {
  let first: string | undefined
  for (const one of alternatives) {
    const problem = problemIn(one, value, check, depth + 1)
    if (problem === undefined) return undefined
    first ??= problem
  }
  return first
}

const listProblem = (
  { items, prefixItems }: Plain,
  list: ReadonlyArray<unknown>,
  check: Check,
  depth: number,
): string | undefined => {
  const first: ReadonlyArray<unknown> = Array.isArray(prefixItems) ? prefixItems : []
  for (const [at, item] of list.entries()) {
    const problem = problemIn(at < first.length ? first[at] : items, item, check, depth + 1)
    if (problem !== undefined) return `${at}: ${problem}`
  }
  return undefined
}

/**
 * Describes what is wrong with a value, by a Schema whose references are to the definitions of `root`; undefined if nothing
 * is.
 *
 * @example
 * ```ts
 * const schema = { type: "object", properties: { column: { type: "integer", minimum: 0 } }, required: ["column"] }
 * const problem = schemaProblem(schema, { column: -1 }) // "column: expected at least 0, found -1"
 * ```
 */
export const schemaProblem = (schema: Plain, value: unknown, root: Plain = schema): string | undefined =>
  problemIn(schema, value, { root, left: mostChecks }, 0)
