/** Adds objects with declared properties to networks. The properties come in the order of the schema. */
import { isPlain, type Plain } from "../../base/config/plain.ts"
import type { Compiler } from "./Compiler.ts"
import { addText } from "./jsonParts.ts"
import { formatError, type NetworkBuilder } from "./Network.ts"

interface Property {
  readonly name: string
  readonly schema: unknown
  readonly isRequired: boolean
  readonly path: string
}

/** Reads the properties of a schema. Required ones that it does not declare fit the schema of further properties. */
const propertiesOf = (schema: Plain, path: string): ReadonlyArray<Property> => {
  const { properties = {}, required = [], additionalProperties: further = true } = schema
  if (!isPlain(properties)) throw formatError(`${path}.properties`, "expected an object with a schema for each name")
  if (!Array.isArray(required) || !required.every((name) => typeof name === "string"))
    throw formatError(`${path}.required`, "expected a list of names")
  const names = new Set<string>(required)
  const declared = Object.entries(properties).map(([name, property]) => ({
    name,
    schema: property,
    isRequired: names.has(name),
    path: `${path}.properties.${name.slice(0, 64)}`,
  }))
  const missing = [...names].filter((name) => !Object.hasOwn(properties, name))
  return [
    ...declared,
    ...missing.map((name) => ({ name, schema: further, isRequired: true, path: `${path}.additionalProperties` })),
  ]
}

/** Adds the objects that fit a schema. */
export const addMembersOf = (compiler: Compiler, schema: Plain, from: number, to: number, path: string): void => {
  const { builder, shared } = compiler
  const properties = propertiesOf(schema, path)
  const { additionalProperties: further } = schema
  const hasFurther = further === undefined ? properties.length === 0 : further !== false
  if (hasFurther && properties.length === 0 && (further === undefined || further === true))
    return builder.call(from, shared.object, to)

  /** Adds the text between a name and its value, and returns the state before the value. */
  const addColon = (named: number): number => {
    const value = builder.state()
    builder.call(addText(builder, named, ":"), shared.space, value)
    return value
  }
  /** The states before the next property: `empty` if the object has none yet, `begun` if it has. */
  let empty = builder.state()
  let begun = builder.state()
  builder.call(addText(builder, from, "{"), shared.space, empty)
  for (const { name, schema: property, isRequired, path: place } of properties) {
    const [key, nextEmpty, nextBegun] = [builder.state(), builder.state(), builder.state()]
    builder.jump(empty, key)
    builder.call(addText(builder, begun, ","), shared.space, key)
    compiler.value(property, addColon(addText(builder, key, JSON.stringify(name))), nextBegun, place)
    if (!isRequired) {
      builder.jump(empty, nextEmpty)
      builder.jump(begun, nextBegun)
    }
    empty = nextEmpty
    begun = nextBegun
  }
  if (hasFurther) {
    const key = builder.state()
    const value = compiler.network(further ?? true, `${path}.additionalProperties`)
    builder.jump(empty, key)
    builder.call(addText(builder, begun, ","), shared.space, key)
    const named = addOtherName(
      builder,
      key,
      properties.map(({ name }) => name),
      shared.string,
    )
    builder.call(addColon(named), value, begun)
  }
  const end = builder.state()
  builder.call(begun, shared.space, end)
  builder.read(end, 0x7d, 0x7d, to)
  builder.read(empty, 0x7d, 0x7d, to)
}

const quote = 0x22
const backslash = 0x5c

/**
 * Adds a name that is not one of `names`: any string if there are none; otherwise one of printable ASCII characters, because a
 * name could also be written with escapes. Returns the state after it.
 */
const addOtherName = (builder: NetworkBuilder, from: number, names: ReadonlyArray<string>, string: number): number => {
  const end = builder.state()
  if (names.length === 0) {
    builder.call(from, string, end)
    return end
  }
  /** The state after characters with which none of the names begins. */
  const other = builder.state()
  const first = builder.state()
  builder.read(from, quote, quote, first)
  const children = new Map<number, Map<number, number>>([[first, new Map()]])
  const whole = new Set<number>()
  for (const name of names) {
    let at = first
    for (const code of new TextEncoder().encode(name)) {
      const known = children.get(at)?.get(code)
      const next = known ?? builder.state()
      if (known === undefined) {
        children.get(at)?.set(code, next)
        children.set(next, new Map())
      }
      at = next
    }
    whole.add(at)
  }
  addPrintable(builder, other, new Map(), other)
  for (const [at, known] of children) addPrintable(builder, at, known, other)
  builder.read(other, quote, quote, end)
  for (const at of children.keys()) if (!whole.has(at)) builder.read(at, quote, quote, end)
  return end
}

/** Adds a transition for each printable ASCII character that needs no escape: to its state in `known`, otherwise to `other`. */
const addPrintable = (
  builder: NetworkBuilder,
  from: number,
  known: ReadonlyMap<number, number>,
  other: number,
): void => {
  let least = 0x20
  for (let code = 0x20; code <= 0x7f; code++) {
    const isLeftOut = code === quote || code === backslash || code === 0x7f
    const to = isLeftOut ? undefined : known.get(code)
    if (!isLeftOut && to === undefined) continue
    if (least < code) builder.read(from, least, code - 1, other)
    if (to !== undefined) builder.read(from, code, code, to)
    least = code + 1
  }
}
