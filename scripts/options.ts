// Writes what editors show of settings in code: an interface for each algorithm (src/algorithms/options/), for a training, for
// a run of agents that talk, and for a model, with the comments and defaults of the Schemas. A type that is made of a Schema
// has no comments.
//   npm run settings
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect, Schema, SchemaAST } from "effect"
import { BcConfig } from "../src/algorithms/Bc.ts"
import { byName, names } from "../src/algorithms/registry.ts"
import { isPlain, type Plain } from "../src/config/Config.ts"
import { LmConfig } from "../src/lm/LmConfig.ts"
import { Settings, ValidationSettings } from "../src/train/Settings.ts"
import { RunSettings } from "../src/runtime/RuntimeConfig.ts"
import { TrainerConfig } from "../src/train/TrainerConfig.ts"
import { type Fields, fieldsOf, nestedFields } from "./fields.ts"

interface Options {
  readonly name: string
  /** The comment on the interface. */
  readonly about: string
  readonly schema: Schema.Codec<Plain, Plain>
  readonly fields: Fields
  /** What is decoded with the field in question, to see its defaults. */
  readonly base?: Plain
  readonly without?: ReadonlyArray<string>
}

const typeOf = (ast: SchemaAST.AST, describe: (ast: SchemaAST.Objects) => string): string => {
  if (SchemaAST.isUnion(ast)) return ast.types.map((type) => typeOf(type, describe)).join(" | ")
  if (SchemaAST.isLiteral(ast)) return JSON.stringify(ast.literal)
  if (SchemaAST.isArrays(ast)) return `ReadonlyArray<${typeOf(ast.rest[0], describe)}>`
  if (!SchemaAST.isObjects(ast)) return ast._tag.toLowerCase()
  return ast.propertySignatures.length === 0 ? "Readonly<Record<string, unknown>>" : describe(ast)
}

const width = 110

const wrapped = (text: string): ReadonlyArray<string> =>
  text.match(new RegExp(`\\S.{0,${width - 1}}(?=\\s|$)`, "g")) ?? []

/** A default that takes more than a line is that of a block, whose keys have their own. */
const comment = (meaning = "", byDefault: unknown): string => {
  const shown = byDefault === undefined ? "" : JSON.stringify(byDefault)
  const lines = [...wrapped(meaning), ...(shown === "" || shown.length > width / 2 ? [] : ["", `@default ${shown}`])]
  return lines.length === 0 ? "" : `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join("\n")}\n */\n`
}

/** What is decoded for a key that is left out; of a block, what each key in it is then. */
const defaultOf = ({ schema, base = {} }: Options, key: string, nested: boolean): unknown => {
  const decoded = Schema.decodeUnknownOption(schema)({ ...base, ...(nested ? { [key]: {} } : {}) })
  return decoded._tag === "Some" && !(key in base) ? decoded.value[key] : undefined
}

const members = (ast: SchemaAST.AST, describe: (key: string, type: SchemaAST.AST) => string): string =>
  SchemaAST.isObjects(ast)
    ? ast.propertySignatures
        .map(({ name, type }) => {
          const key = String(name)
          const optional = SchemaAST.isOptional(type) ? "?" : ""
          return describe(key, type).replace("KEY", `readonly ${key}${optional}`)
        })
        .join("\n")
    : ""

const interfaceOf = (options: Options): string => {
  const { name, about, schema, fields, without = [] } = options
  const body = members(SchemaAST.toEncoded(schema.ast), (key, type) => {
    if (without.includes(key)) return ""
    const field = fields.get(key)
    const defaults = defaultOf(options, key, true)
    const block = (ast: SchemaAST.Objects): string => {
      const within = field === undefined ? undefined : nestedFields(field)
      return `{\n${members(ast, (inner, innerType) => {
        const byDefault = isPlain(defaults) ? defaults[inner] : undefined
        const text = typeOf(
          innerType,
          (deeper) => `{ ${members(deeper, (_, type) => `KEY: ${typeOf(type, () => "object")}`)} }`,
        )
        return `${comment(within?.get(inner)?.meaning, byDefault)}KEY: ${text}`
      })}\n}`
    }
    return `${comment(field?.meaning, defaultOf(options, key, false))}KEY: ${typeOf(type, block)}\n`
  })
  return `/** ${about} */\nexport interface ${name} {\n${body.trim()}\n}\n`
}

const header = "// Written by `npm run settings` from the Schema and the comments on it.\n\n"

const algorithm = (name: string): readonly [path: string, text: string] => {
  const title = `${name.charAt(0).toUpperCase()}${name.slice(1)}`
  const schema = name === "bc" ? BcConfig : Effect.runSync(byName(name, "")).schema
  const fields = fieldsOf(`src/algorithms/${title}.ts`, `${title}Config`)
  const about = `The settings of \`${title}.make\`.`
  return [
    `src/algorithms/options/${title}.ts`,
    header + interfaceOf({ name: `${title}Options`, about, schema, fields }),
  ]
}

const training = (): readonly [path: string, text: string] => {
  const settings = interfaceOf({
    name: "TrainOptions",
    about: "The settings of `Train.run` that are the same in code and in files.",
    schema: Settings,
    fields: fieldsOf("src/train/Settings.ts", "Settings"),
    base: { env: "", algorithm: {}, totalSteps: 1 },
    without: ["kind", "env", "algorithm", "totalSteps", "validation"],
  })
  const validation = interfaceOf({
    name: "ValidationOptions",
    about: "The settings of a training's validation that are the same in code and in files.",
    schema: ValidationSettings,
    fields: fieldsOf("src/train/Settings.ts", "ValidationSettings"),
    without: ["envs"],
  })
  const trainer = interfaceOf({
    name: "TrainerOptions",
    about: "The settings of the block `trainer`: see `TrainerConfig`.",
    schema: TrainerConfig,
    fields: fieldsOf("src/train/TrainerConfig.ts", "TrainerConfig"),
  })
  return ["src/train/TrainOptions.ts", [header + settings, validation, trainer].join("\n")]
}

const runtime = (): readonly [path: string, text: string] => {
  const text = interfaceOf({
    name: "RuntimeOptions",
    about: "The settings of `Runtime.run` that are the same in code and in files.",
    schema: RunSettings,
    fields: fieldsOf("src/runtime/RuntimeConfig.ts", "RunSettings"),
    without: ["kind"],
  })
  return ["src/runtime/RuntimeOptions.ts", header + text]
}

const model = (): readonly [path: string, text: string] => {
  const text = interfaceOf({
    name: "LmOptions",
    about: "The settings of `LmConfig.make`.",
    schema: LmConfig,
    fields: fieldsOf("src/lm/LmConfig.ts", "LmConfig"),
    base: { model: "any" },
  })
  return ["src/lm/LmOptions.ts", header + text]
}

/** The files as they should be but for their format, by their paths. */
export const optionFiles = (): ReadonlyMap<string, string> =>
  new Map([...[...names, "bc"].map(algorithm), training(), runtime(), model()])

const root = new URL("../", import.meta.url)
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  rmSync(new URL("src/algorithms/options", root), { recursive: true, force: true })
  mkdirSync(new URL("src/algorithms/options", root))
  for (const [path, text] of optionFiles()) writeFileSync(new URL(path, root), text)
}
