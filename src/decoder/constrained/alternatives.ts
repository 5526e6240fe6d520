/** Decides whether a value can fit two schemas, which `oneOf` must exclude. */
import { isPlain, type Plain } from "../../base/config/plain.ts"
import { typeOfValue, type TypeName, typesOf } from "./keywords.ts"
import { refTarget } from "./references.ts"

/** The largest number of references that are followed from one schema. */
const mostHops = 16

/** Returns a schema without a reference, which may be in the place of it. */
export const resolved = (root: unknown, schema: unknown): Plain | undefined => {
  let at = schema
  for (let hop = 0; isPlain(at) && at.$ref !== undefined; hop++) {
    if (hop === mostHops) return undefined
    at = refTarget(root, at.$ref, "schema").schema
  }
  return isPlain(at) ? at : undefined
}

/** The largest number of values of a schema that are compared, and their largest length. */
const mostCompared = 32
const longestCompared = 256

const isCompared = (value: unknown): boolean =>
  typeof value === "string" ? value.length <= longestCompared : value === null || typeof value !== "object"

/** Returns the only values that fit, as JSON; undefined if others may fit, or if it would take long to compare them. */
const valuesOf = ({ enum: several, const: value }: Plain): ReadonlyArray<string> | undefined => {
  const values: unknown = value === undefined ? several : [value]
  if (!Array.isArray(values) || values.length > mostCompared || !values.every(isCompared)) return undefined
  return values.map((one) => JSON.stringify(one))
}

const typeNames = (schema: Plain): ReadonlyArray<TypeName> | undefined => {
  if (schema.const !== undefined) return [typeOfValue(schema.const)]
  if (Array.isArray(schema.enum)) return [...new Set(schema.enum.map(typeOfValue))]
  // Without the keyword, values of other types fit, too.
  return schema.type === undefined ? undefined : typesOf(schema, "schema")
}

const areDisjoint = (one: ReadonlyArray<string> | undefined, other: ReadonlyArray<string> | undefined): boolean =>
  one !== undefined && other !== undefined && !one.some((value) => other.includes(value))

const wider = (types: ReadonlyArray<TypeName> | undefined): ReadonlyArray<string> | undefined =>
  types?.map((type) => (type === "integer" ? "number" : type))

const requiredNames = ({ required }: Plain): ReadonlySet<unknown> => new Set(Array.isArray(required) ? required : [])

/** Tells whether no value fits both schemas. If it cannot tell, it returns false. */
export const excludes = (root: unknown, one: unknown, other: unknown): boolean => {
  if (one === false || other === false) return true
  const [a, b] = [resolved(root, one), resolved(root, other)]
  if (a === undefined || b === undefined) return false
  if (areDisjoint(valuesOf(a), valuesOf(b)) || areDisjoint(wider(typeNames(a)), wider(typeNames(b)))) return true
  const areObjects = [a, b].every(({ type }) => type === "object")
  const { properties: first } = a
  const { properties: second } = b
  if (!areObjects || !isPlain(first) || !isPlain(second)) return false
  const [requiredFirst, requiredSecond] = [requiredNames(a), requiredNames(b)]
  return Object.keys(first).some((name) => {
    if (!Object.hasOwn(second, name) || !requiredFirst.has(name) || !requiredSecond.has(name)) return false
    const [left, right] = [resolved(root, first[name]), resolved(root, second[name])]
    return left !== undefined && right !== undefined && areDisjoint(valuesOf(left), valuesOf(right))
  })
}
