// Writes the option interfaces, which editors show for each algorithm (src/algorithms/options/), a training, a run of
// language-model agents and a model, with comments and defaults. (A type inferred from a Schema has no comments.) Run
// it by `npm run settings`.
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
import { type Fields, fieldsOf, type Group, groupsOf, nestedFields } from "./fields.ts"

interface Options {
  readonly name: string
  /** The comment on the interface. */
  readonly about: string
  readonly schema: Schema.Codec<Plain, Plain>
  readonly fields: Fields
  /** Values of the required keys, so that the Schema can decode the defaults of the other keys. */
  readonly base?: Plain
  readonly without?: ReadonlyArray<string>
  /** The interfaces that this one extends. It writes only the members that differ from theirs. */
  readonly bases?: ReadonlyArray<Base>
}

interface Base {
  readonly name: string
  readonly members: Members
}

/** The text of each member of an interface, with its comment, by its key. */
type Members = ReadonlyMap<string, string>

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

/**
 * Writes the comment of a member. It leaves out long defaults of nested sections, whose own keys have comments with
 * defaults.
 */
const comment = (meaning = "", byDefault: unknown): string => {
  const shown = byDefault === undefined ? "" : JSON.stringify(byDefault)
  const lines = [...wrapped(meaning), ...(shown === "" || shown.length > width / 2 ? [] : [`@default ${shown}`])]
  return lines.length === 0 ? "" : `/**\n${lines.map((line) => ` * ${line}`.trimEnd()).join("\n")}\n */\n`
}

/** Decodes the default of a key; for a nested section, the defaults of the keys in it. */
const defaultOf = ({ schema, base = {} }: Options, key: string, nested: boolean): unknown => {
  const decoded = Schema.decodeUnknownOption(schema)({ ...base, ...(nested ? { [key]: {} } : {}) })
  return decoded._tag === "Some" && !(key in base) ? decoded.value[key] : undefined
}

const members = (ast: SchemaAST.AST, describe: (key: string, type: SchemaAST.AST) => string): string =>
  SchemaAST.isObjects(ast)
    ? ast.propertySignatures.map(({ name, type }) => named(describe(String(name), type), String(name), type)).join("\n")
    : ""

/** Writes the key of a member in place of `KEY`. */
const named = (text: string, key: string, type: SchemaAST.AST): string =>
  text.replace("KEY", `readonly ${key}${SchemaAST.isOptional(type) ? "?" : ""}`)

const membersOf = (options: Options): Members => {
  const { schema, fields, without = [] } = options
  const ast = SchemaAST.toEncoded(schema.ast)
  if (!SchemaAST.isObjects(ast)) return new Map()
  const member = (key: string, type: SchemaAST.AST): string => {
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
    const text = `${comment(field?.meaning, defaultOf(options, key, false))}KEY: ${typeOf(type, block)}\n`
    return named(text, key, type)
  }
  return new Map(
    ast.propertySignatures
      .map(({ name, type }) => [String(name), type] as const)
      .filter(([key]) => !without.includes(key))
      .map(([key, type]) => [key, member(key, type)]),
  )
}

const interfaceOf = (options: Options): string => {
  const { name, about, bases = [] } = options
  const isInherited = (key: string, text: string): boolean => {
    const inherited = bases.flatMap((base) => base.members.get(key) ?? [])
    return inherited.length > 0 && inherited.every((other) => other === text)
  }
  const own = [...membersOf(options)].filter(([key, text]) => !isInherited(key, text)).map(([, text]) => text)
  const heading = [
    `export interface ${name}`,
    ...(bases.length === 0 ? [] : [bases.map((base) => base.name).join(", ")]),
  ]
  return `/** ${about} */\n${heading.join(" extends ")} {\n${own.join("").trim()}\n}\n`
}

const header = "// Written by `npm run settings` from the Schema and the comments on it.\n\n"

const titleOf = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`

/** Returns the name of an interface: `networkFields` becomes `NetworkOptions`, and `ppoFields` becomes `PpoOptions`. */
const interfaceName = (group: string): string => titleOf(group).replace(/Fields?$/, "Options")

const isOfAlgorithm = (group: string): boolean => algorithmNames.some((name) => group === `${name}Fields`)

const algorithmNames = [...names, "bc"]

/** The groups of fields that several algorithms share, by name; a group comes after the groups whose fields it includes. */
const groups = new Map<string, Group & { readonly schema: Options["schema"] }>()

const addGroups = async (file: string, name: string): Promise<void> => {
  for (const group of groupsOf(file, name)) {
    await addGroups(group.file, group.name)
    if (groups.has(group.name)) continue
    const module: Readonly<Record<string, Readonly<Record<string, Schema.Codec<unknown, unknown>>>>> = await import(
      `../${group.file}`
    )
    groups.set(group.name, { ...group, schema: Schema.Struct(module[group.name]) })
  }
}

for (const name of algorithmNames) await addGroups(`src/algorithms/${titleOf(name)}.ts`, `${titleOf(name)}Config`)

const optionsOf = (name: string, file: string): Options => {
  const group = groups.get(name)
  if (group === undefined) throw new Error(`${name}: expected a group of fields, found none`)
  return {
    name: interfaceName(name),
    about: `Settings that several algorithms share: \`${name}\`.`,
    schema: group.schema,
    fields: fieldsOf(file, name),
    bases: basesOf(file, name),
  }
}

/**
 * Returns the interfaces that a group or a config extends. A group of which a key is left out is replaced by its own
 * bases, because editors show no comments of members that went through `Omit`.
 */
const basesOf = (file: string, name: string, without: ReadonlyArray<string> = []): ReadonlyArray<Base> =>
  groupsOf(file, name).flatMap((group): ReadonlyArray<Base> => {
    const left = [...without, ...group.without]
    const members = membersOf(optionsOf(group.name, group.file))
    return left.some((key) => members.has(key))
      ? basesOf(group.file, group.name, left)
      : [{ name: interfaceName(group.name), members }]
  })

/** Writes the imports of these bases. */
const importsOf = (bases: ReadonlyArray<Base>): string => {
  const used = bases.map(({ name }) => name)
  const ofAlgorithms = used.filter((name) => isOfAlgorithm(groupName(name)))
  const shared = used.filter((name) => !isOfAlgorithm(groupName(name))).sort()
  const lines = [
    ...ofAlgorithms.map((name) => `import type { ${name} } from "./${name.replace(/Options$/, "")}.ts"`),
    ...(shared.length === 0 ? [] : [`import type { ${shared.join(", ")} } from "./shared.ts"`]),
  ]
  return lines.length === 0 ? "" : `${lines.join("\n")}\n\n`
}

const groupName = (interfaceName: string): string =>
  `${interfaceName.charAt(0).toLowerCase()}${interfaceName.slice(1).replace(/Options$/, "Fields")}`

const algorithm = (name: string): readonly [path: string, text: string] => {
  const title = titleOf(name)
  const schema = name === "bc" ? BcConfig : Effect.runSync(byName(name, "")).schema
  const file = `src/algorithms/${title}.ts`
  const fields = fieldsOf(file, `${title}Config`)
  const about = `The settings of \`${title}.make\`.`
  const group = groups.get(`${name}Fields`)
  const bases = group === undefined ? basesOf(file, `${title}Config`) : basesOf(group.file, group.name)
  const text = interfaceOf({ name: `${title}Options`, about, schema, fields, bases })
  return [`src/algorithms/options/${title}.ts`, header + importsOf(bases) + text]
}

const shared = (): readonly [path: string, text: string] => {
  const texts = [...groups.values()]
    .filter(({ name }) => !isOfAlgorithm(name))
    .map(({ name, file }) => interfaceOf(optionsOf(name, file)))
  return ["src/algorithms/options/shared.ts", header + texts.join("\n")]
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

/** Returns the texts of all files by path, not yet formatted. */
export const optionFiles = (): ReadonlyMap<string, string> =>
  new Map([...algorithmNames.map(algorithm), shared(), training(), runtime(), model()])

const root = new URL("../", import.meta.url)
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  rmSync(new URL("src/algorithms/options", root), { recursive: true, force: true })
  mkdirSync(new URL("src/algorithms/options", root))
  for (const [path, text] of optionFiles()) writeFileSync(new URL(path, root), text)
}
