/** Lists the keywords of JSON Schema that a format can have, and refuses others by their names. */
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { formatError } from "./Network.ts"

const types = ["null", "boolean", "number", "integer", "string", "array", "object"] as const
export type TypeName = (typeof types)[number]

/** The keywords that constrain nothing. */
const annotations = [
  "$schema",
  "$id",
  "$comment",
  "$defs",
  "definitions",
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
]

/** The keywords that constrain the values of one type. */
const ofType = {
  string: ["minLength", "maxLength", "pattern", "format"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  array: ["items", "prefixItems", "minItems", "maxItems", "uniqueItems"],
  object: ["properties", "required", "additionalProperties"],
} as const satisfies Partial<Record<TypeName, ReadonlyArray<string>>>

/** The keywords that constrain values of any type. At most one of them can be used, beside `type` only `enum` and `const`. */
const general = ["enum", "const", "anyOf", "oneOf", "$ref"]

const supported: ReadonlySet<string> = new Set([
  "allOf",
  ...annotations,
  ...Object.values(ofType).flat(),
  ...general,
  "type",
])

/** Values of other keywords that constrain nothing. */
const neutral: Readonly<Record<string, unknown>> = { uniqueItems: false, minProperties: 0, unevaluatedProperties: true }

const constrains = (schema: Plain, keyword: string): boolean =>
  schema[keyword] !== undefined && !(Object.hasOwn(neutral, keyword) && neutral[keyword] === schema[keyword])

/** Checks the form of a schema, and that all its keywords are supported. */
export const checkedSchema = (schema: unknown, path: string): Plain | boolean => {
  if (typeof schema === "boolean") return schema
  if (!isPlain(schema)) throw formatError(path, "expected a JSON Schema, an object or a boolean")
  for (const [keyword, value] of Object.entries(schema)) {
    if (supported.has(keyword) || (Object.hasOwn(neutral, keyword) && neutral[keyword] === value)) continue
    throw formatError(`${path}.${keyword.slice(0, 64)}`, "this keyword is not supported; leave it out")
  }
  return schema
}

/** Writes the keywords of the schemas in `allOf` into one schema. Only annotations may be in several of them. */
export const withoutAllOf = (schema: Plain | boolean, path: string): Plain | boolean => {
  if (typeof schema === "boolean" || schema.allOf === undefined) return schema
  const { allOf, ...own } = schema
  if (!Array.isArray(allOf) || allOf.length === 0) throw formatError(`${path}.allOf`, "expected a list of schemas")
  let merged: Plain = own
  for (const [index, unchecked] of allOf.entries()) {
    const place = `${path}.allOf[${index}]`
    const part = checkedSchema(unchecked, place)
    if (part === false) return false
    if (part === true) continue
    if (part.allOf !== undefined) throw formatError(`${place}.allOf`, "not supported inside allOf")
    const before = merged
    const twice = Object.keys(part).find((key) => Object.hasOwn(before, key) && !annotations.includes(key))
    if (twice !== undefined && part[twice] !== merged[twice])
      throw formatError(`${place}.${twice}`, "this keyword is in several schemas of allOf; write it once")
    merged = { ...part, ...merged }
  }
  return merged
}

/** Returns the keyword that alone describes the values of a schema, such as `enum`; undefined if its type does. */
export const generalKeyword = (schema: Plain, path: string): string | undefined => {
  const [keyword, second] = general.filter((one) => schema[one] !== undefined)
  if (keyword === undefined) return undefined
  const others = [...Object.values(ofType).flat(), ...(keyword === "enum" || keyword === "const" ? [] : ["type"])]
  const beside = second ?? others.find((one) => constrains(schema, one))
  if (beside === undefined) return keyword
  throw formatError(
    `${path}.${beside}`,
    `not supported beside ${keyword}; move it into the schemas of ${keyword}, or leave it out`,
  )
}

const isType = (value: unknown): value is TypeName => types.some((type) => type === value)

/**
 * Returns the types of a schema's values. Without the keyword `type`, they are those that the other keywords constrain;
 * undefined if there are none, so that any value fits.
 */
export const typesOf = (schema: Plain, path: string): ReadonlyArray<TypeName> | undefined => {
  const { type } = schema
  if (type === undefined) {
    const constrained = types.filter((name) => keywordsOf(name).some((keyword) => constrains(schema, keyword)))
    return constrained.length === 0 ? undefined : constrained
  }
  const list: ReadonlyArray<unknown> = Array.isArray(type) ? type : [type]
  const known = list.filter(isType)
  if (known.length === 0 || known.length < list.length)
    throw formatError(`${path}.type`, `expected one or more of ${types.join(", ")}`)
  return [...new Set(known)]
}

const isConstrained = (type: TypeName): type is keyof typeof ofType => Object.hasOwn(ofType, type)

const keywordsOf = (type: TypeName): ReadonlyArray<string> => (isConstrained(type) ? ofType[type] : [])

/** Returns the type of a JSON value. */
export const typeOfValue = (value: unknown): TypeName => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number"
  if (typeof value === "boolean") return "boolean"
  return typeof value === "string" ? "string" : "object"
}
