/**
 * Compiles a JSON Schema to networks that describe texts of values which fit it. Not every such text is described: properties
 * come in the order of the schema, whitespace is a space or a line feed with up to 16 spaces, and numbers have at most 15
 * digits before and after the point. Each text that is described fits.
 */
import type { Plain } from "../../base/config/plain.ts"
import { excludes } from "./alternatives.ts"
import {
  addBetween,
  addInteger,
  addNumber,
  addSharedNetworks,
  addText,
  addTexts,
  type SharedNetworks,
} from "./jsonParts.ts"
import { checkedSchema, generalKeyword, typeOfValue, type TypeName, typesOf, withoutAllOf } from "./keywords.ts"
import { formatError, mostDepth, NetworkBuilder, type Networks } from "./Network.ts"
import { addMembersOf } from "./objects.ts"
import { refTarget } from "./references.ts"

/** The largest length of a string and of an array with a limit. A larger limit is treated as this one. */
const mostCounted = 4096
/** The largest number of schemas inside each other, with those that are referred to. */
const mostNested = 100
/** The largest number of values of an `enum`. */
const mostValues = 10_000
/** The largest number of schemas in `oneOf`, because each is compared with all others. */
const mostExclusive = 64

/** A place in a schema: its path for messages, and the references that lead to it without reading a byte. */
interface SchemaPlace {
  readonly path: string
  readonly through: ReadonlyArray<string>
}

/** Compiles a schema. Throws an `EngineError` that names the place of what is wrong or not supported. */
export const compileJsonSchema = (schema: unknown): Networks => {
  const compiler = new SchemaCompiler(schema)
  const networks = compiler.compile()
  if (networks.needs[networks.ends[0].first] === Infinity)
    throw formatError("schema", `no value fits, or only values with more than ${mostDepth} values inside each other`)
  return networks
}

class SchemaCompiler {
  readonly builder = new NetworkBuilder()
  readonly shared: SharedNetworks
  private readonly root: unknown
  private readonly whole: ReturnType<NetworkBuilder["network"]>
  /** The networks of the schemas that were referred to. */
  private readonly referred = new Map<string, number>()
  /** The number of schemas that are being compiled, each inside the one before. */
  private nested = 0

  constructor(root: unknown) {
    this.root = root
    this.whole = this.builder.network()
    this.shared = addSharedNetworks(this.builder)
  }

  compile(): Networks {
    this.add(this.root, this.whole.first, this.whole.last, { path: "schema", through: [] })
    return this.builder.finish()
  }

  /** Makes a network of the values that fit a schema. */
  network(schema: unknown, path: string): number {
    const { index, first, last } = this.builder.network()
    this.add(schema, first, last, { path, through: [] })
    return index
  }

  /** Adds the values that fit a schema, which has read at least one byte before. */
  value(schema: unknown, from: number, to: number, path: string): void {
    this.add(schema, from, to, { path, through: [] })
  }

  private add(unchecked: unknown, from: number, to: number, place: SchemaPlace): void {
    if (++this.nested > mostNested)
      throw formatError(place.path, `expected at most ${mostNested} schemas inside each other`)
    this.addSchema(unchecked, from, to, place)
    this.nested--
  }

  private addSchema(unchecked: unknown, from: number, to: number, place: SchemaPlace): void {
    const { path } = place
    const schema = withoutAllOf(checkedSchema(unchecked, path), path)
    if (schema === false) return
    if (schema === true) return this.builder.call(from, this.shared.value, to)
    const keyword = generalKeyword(schema, path)
    if (keyword !== undefined) return this.addGeneral(keyword, schema, from, to, place)
    const types = typesOf(schema, path)
    if (types === undefined) return this.builder.call(from, this.shared.value, to)
    for (const type of types) this.addType(type, schema, from, to, path)
  }

  private addGeneral(keyword: string, schema: Plain, from: number, to: number, place: SchemaPlace): void {
    const path = `${place.path}.${keyword}`
    const value = schema[keyword]
    if (keyword === "const") return this.addValues([value], schema, from, to, path)
    if (keyword === "$ref") return this.addReference(value, from, to, { ...place, path })
    if (!Array.isArray(value) || value.length === 0) throw formatError(path, "expected a list with at least one item")
    if (keyword === "enum") return this.addValues(value, schema, from, to, path)
    if (keyword === "oneOf") this.checkExclusive(value, path)
    for (const [index, alternative] of value.entries())
      this.add(alternative, from, to, { ...place, path: `${path}[${index}]` })
  }

  /** Refuses alternatives that a value could fit at the same time. */
  private checkExclusive(alternatives: ReadonlyArray<unknown>, path: string): void {
    const { length } = alternatives
    if (length > mostExclusive)
      throw formatError(path, `expected at most ${mostExclusive} schemas, found ${length}; write anyOf`)
    for (const [index, one] of alternatives.entries()) {
      const other = alternatives.slice(0, index).findIndex((before) => !excludes(this.root, before, one))
      if (other < 0) continue
      const problem = `a value may fit schemas ${other} and ${index}; write anyOf, or give both a required property with different values of const`
      throw formatError(path, problem)
    }
  }

  private addValues(values: ReadonlyArray<unknown>, schema: Plain, from: number, to: number, path: string): void {
    if (values.length > mostValues)
      throw formatError(path, `expected at most ${mostValues} values, found ${values.length}`)
    const types = schema.type === undefined ? undefined : typesOf(schema, path)
    const fitting = values.filter((value) => {
      const type = typeOfValue(value)
      return types === undefined || types.includes(type) || (type === "integer" && types.includes("number"))
    })
    addTexts(
      this.builder,
      from,
      fitting.map((value) => JSON.stringify(value)),
      to,
    )
  }

  private addReference(reference: unknown, from: number, to: number, { path, through }: SchemaPlace): void {
    const { name, schema } = refTarget(this.root, reference, path)
    if (through.includes(name)) throw formatError(path, `the schema ${name} refers to itself without reading anything`)
    const known = this.referred.get(name)
    if (known !== undefined) return this.builder.call(from, known, to)
    const { index, first, last } = this.builder.network()
    this.referred.set(name, index)
    this.add(schema, first, last, { path: name, through: [...through, name] })
    this.builder.call(from, index, to)
  }

  private addType(type: TypeName, schema: Plain, from: number, to: number, path: string): void {
    const { builder } = this
    switch (type) {
      case "null":
        return builder.jump(addText(builder, from, "null"), to)
      case "boolean":
        for (const text of ["true", "false"]) builder.jump(addText(builder, from, text), to)
        return
      case "integer":
      case "number":
        return addLimited(builder, { schema, isInteger: type === "integer", path }, from, to)
      case "string":
        return this.addString(schema, from, to, path)
      case "array":
        return this.addArray(schema, from, to, path)
      case "object":
        return addMembersOf(this, schema, from, to, path)
    }
  }

  private addString(schema: Plain, from: number, to: number, path: string): void {
    const { builder, shared } = this
    for (const keyword of ["pattern", "format"]) {
      if (schema[keyword] !== undefined)
        throw formatError(`${path}.${keyword}`, "this keyword is not supported; leave it out")
    }
    const { least, most } = countsOf(schema, "minLength", "maxLength", path)
    if (least === 0 && most === Infinity) return builder.call(from, shared.string, to)
    this.addRepeated({ least, most, opening: '"', closing: '"' }, from, to, (at, next) =>
      builder.call(at, shared.character, next),
    )
  }

  /** Adds from `least` to `most` parts between two texts. */
  private addRepeated(
    { least, most, opening, closing }: { least: number; most: number; opening: string; closing: string },
    from: number,
    to: number,
    part: (from: number, to: number) => void,
  ): void {
    // Without a way from one state to the other, no value fits.
    if (least > most) return
    const { builder } = this
    const end = builder.state()
    builder.jump(addText(builder, end, closing), to)
    let at = addText(builder, from, opening)
    const last = most === Infinity ? least : Math.min(most, Math.max(least, mostCounted))
    for (let count = 0; count < last; count++) {
      if (count >= least) builder.jump(at, end)
      const next = builder.state()
      part(at, next)
      at = next
    }
    if (most === Infinity) part(at, at)
    builder.jump(at, end)
  }

  private addArray(schema: Plain, from: number, to: number, path: string): void {
    const { builder, shared } = this
    const first: unknown = schema.prefixItems ?? []
    if (!Array.isArray(first)) throw formatError(`${path}.prefixItems`, "expected a list of schemas")
    if (Array.isArray(schema.items))
      throw formatError(`${path}.items`, "expected a schema; write a list as prefixItems")
    const counts = countsOf(schema, "minItems", "maxItems", path)
    const most = schema.items === false ? Math.min(counts.most, first.length) : counts.most
    const rest = first.length < most ? this.network(schema.items ?? true, `${path}.items`) : -1
    const end = builder.state()
    builder.read(end, 0x5d, 0x5d, to)
    let at = builder.state()
    builder.call(addText(builder, from, "["), shared.space, at)
    if (counts.least === 0) builder.jump(at, end)
    const last =
      most === Infinity ? Math.max(counts.least, first.length, 1) : Math.min(most, Math.max(counts.least, mostCounted))
    const addItem = (state: number, count: number, next: number): void => {
      let item = state
      if (count > 0) {
        item = builder.state()
        builder.call(addText(builder, state, ","), shared.space, item)
      }
      if (count < first.length) this.value(first[count], item, next, `${path}.prefixItems[${count}]`)
      else builder.call(item, rest, next)
    }
    for (let count = 0; count < last; count++) {
      const next = builder.state()
      addItem(at, count, next)
      at = next
      if (count + 1 >= counts.least) builder.call(at, shared.space, end)
    }
    if (most === Infinity) addItem(at, last, at)
  }
}

/** Reads the limits of a length. */
const countsOf = (schema: Plain, leastKey: string, mostKey: string, path: string) => {
  const countOf = (key: string, standard: number): number => {
    const value = schema[key]
    if (value === undefined) return standard
    if (typeof value !== "number" || !Number.isInteger(value) || value < 0)
      throw formatError(`${path}.${key}`, "expected a whole number of at least 0")
    return value
  }
  const least = countOf(leastKey, 0)
  if (least > mostCounted) throw formatError(`${path}.${leastKey}`, `expected at most ${mostCounted}, found ${least}`)
  return { least, most: countOf(mostKey, Infinity) }
}

/** The largest magnitude of a number with a limit, times 10^decimals, so that it is exact. */
const mostScaled = 10 ** 15 - 1
/** The largest number of decimals of a number with a limit. */
const mostDecimals = 6

interface LimitedNumber {
  readonly schema: Plain
  readonly isInteger: boolean
  readonly path: string
}

/** Adds the numbers between the limits of a schema. */
const addLimited = (
  builder: NetworkBuilder,
  { schema, isInteger, path }: LimitedNumber,
  from: number,
  to: number,
): void => {
  const limitOf = (key: string): number | undefined => {
    const value = schema[key]
    if (value === undefined) return undefined
    if (typeof value !== "number" || !Number.isFinite(value)) throw formatError(`${path}.${key}`, "expected a number")
    return value
  }
  const [least, above] = [limitOf("minimum"), limitOf("exclusiveMinimum")]
  const [most, below] = [limitOf("maximum"), limitOf("exclusiveMaximum")]
  if ([least, above, most, below].every((limit) => limit === undefined))
    return isInteger ? addInteger(builder, from, to) : addNumber(builder, from, to)
  for (let decimals = 0; decimals <= (isInteger ? 0 : mostDecimals); decimals++) {
    const scale = 10 ** decimals
    const low = Math.max(
      -mostScaled,
      scaledUp(least, scale),
      above === undefined ? -Infinity : scaledDown(above, scale) + 1,
    )
    const high = Math.min(
      mostScaled,
      scaledDown(most, scale),
      below === undefined ? Infinity : scaledUp(below, scale) - 1,
    )
    addBetween(builder, { least: Math.max(low, 0), most: high, decimals }, from, to)
    if (low >= 0) continue
    const negative = addText(builder, from, "-")
    addBetween(builder, { least: Math.max(1, -high), most: -low, decimals }, negative, to)
  }
}

/** Returns the least whole number that is not below a limit times `scale`; without a limit, −∞. */
const scaledUp = (limit: number | undefined, scale: number): number => {
  if (limit === undefined) return -Infinity
  if (Math.abs(limit * scale) > mostScaled) return Math.sign(limit) * (mostScaled + 1)
  // A product may be rounded to either side, so take the first whole number that is not below the limit itself.
  let whole = Math.floor(limit * scale) - 1
  while (whole / scale < limit) whole++
  return whole
}

/** Returns the largest whole number that is not above a limit times `scale`; without a limit, ∞. */
const scaledDown = (limit: number | undefined, scale: number): number =>
  limit === undefined ? Infinity : -scaledUp(-limit, scale)
