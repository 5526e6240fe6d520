/**
 * Compiles a JSON Schema to networks that describe texts of values which fit it. Not every such text is described: properties
 * come in the order of the schema, whitespace is a space or a line feed with up to 16 spaces, and numbers have at most 15
 * digits before and after the point. Each text that is described fits.
 */
import type { Plain } from "../../base/config/plain.ts"
import { excludes } from "./alternatives.ts"
import { addArray } from "./arrays.ts"
import type { Compiler } from "./Compiler.ts"
import { addSharedNetworks, addText, addTexts, type SharedNetworks } from "./jsonParts.ts"
import { checkedSchema, generalKeyword, typeOfValue, type TypeName, typesOf, withoutAllOf } from "./keywords.ts"
import { type CompileWork, formatError, mostDepth, NetworkBuilder, type Networks } from "./Network.ts"
import { addLimited } from "./numbers.ts"
import { addMembersOf } from "./objects.ts"
import { refTarget } from "./references.ts"
import { RegexWriter } from "./regex/RegexWriter.ts"
import { addString } from "./strings.ts"

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

/**
 * Compiles a schema. Throws an `EngineError` that names the place of what is wrong or not supported. Schemas with the same `work`
 * have a limit together.
 */
export const compileJsonSchema = (schema: unknown, work?: CompileWork): Networks => {
  const compiler = new SchemaCompiler(schema, work)
  const networks = compiler.compile()
  if (networks.needs[networks.ends[0].first] === Infinity)
    throw formatError("schema", `no value fits, or only values with more than ${mostDepth} values inside each other`)
  return networks
}

class SchemaCompiler implements Compiler {
  readonly builder: NetworkBuilder
  readonly shared: SharedNetworks
  readonly regex: RegexWriter
  readonly root: unknown
  private readonly whole: ReturnType<NetworkBuilder["network"]>
  /** The networks of the schemas that were referred to. */
  private readonly referred = new Map<string, number>()
  /** The number of schemas that are being compiled, each inside the one before. */
  private nested = 0

  constructor(root: unknown, work: CompileWork | undefined) {
    this.root = root
    this.builder = new NetworkBuilder("schema", work)
    this.whole = this.builder.network()
    this.shared = addSharedNetworks(this.builder)
    this.regex = new RegexWriter(this.builder, { quoted: true })
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
    if (through.includes(name))
      throw formatError(path, `the schema ${name.slice(0, 200)} refers to itself without reading anything`)
    const known = this.referred.get(name)
    if (known !== undefined) return this.builder.call(from, known, to)
    const { index, first, last } = this.builder.network()
    this.referred.set(name, index)
    this.add(schema, first, last, { path: name.slice(0, 200), through: [...through, name] })
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
        return addString(this, schema, from, to, path)
      case "array":
        return addArray(this, schema, from, to, path)
      case "object":
        return addMembersOf(this, schema, from, to, path)
    }
  }
}
