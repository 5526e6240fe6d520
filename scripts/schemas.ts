// Writes schemas/config.schema.json, by which editors complete a config in YAML: in its first line,
//   # yaml-language-server: $schema=node_modules/effect-rl/schemas/config.schema.json
//   npm run schemas
import { mkdirSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { BcConfig } from "../src/algorithm/Bc.ts"
import { byName, names } from "../src/algorithm/registry.ts"
import { isPlain, type Plain, snakeCase } from "../src/config/Config.ts"
import { builtIn } from "../src/env/Envs.ts"
import { Settings } from "../src/train/Settings.ts"
import { TrainerConfig } from "../src/train/TrainerConfig.ts"
import { algorithmMeanings, settingMeanings, trainerMeanings } from "./settings.ts"

type Meanings = ReadonlyMap<string, string>

/** JSON Schema of a config: keys in snake_case with their meanings, no others, and defaults instead of duties. */
const objectOf = (schema: Schema.Codec<Plain, Plain>, meanings: Meanings, required: ReadonlyArray<string>): Plain => {
  const document: unknown = Schema.toJsonSchemaDocument(schema).schema
  return closed(document, meanings, required)
}

const closed = (tree: unknown, meanings: Meanings, required: ReadonlyArray<string> = []): Plain => {
  const object = isPlain(tree) ? tree : {}
  const properties = isPlain(object.properties) ? object.properties : {}
  return {
    type: "object",
    properties: Object.fromEntries(
      Object.entries(properties).map(([key, item]) => [snakeCase(key), described(inner(item), meanings.get(key))]),
    ),
    ...(required.length === 0 ? {} : { required: required.map(snakeCase) }),
    additionalProperties: false,
  }
}

/** What is below: bounds that only say what a double can hold are left out, nested objects are closed as well. */
const inner = (tree: unknown): unknown => {
  if (Array.isArray(tree)) return tree.map(inner)
  if (!isPlain(tree)) return tree
  if (isPlain(tree.properties)) return closed(tree, new Map())
  const kept = Object.entries(tree).filter(([, value]) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER)
  return Object.fromEntries(kept.map(([key, value]) => [key, inner(value)]))
}

const described = (tree: unknown, description: string | undefined): unknown =>
  description === undefined || !isPlain(tree) ? tree : { ...tree, description }

const algorithmOf = (name: string): Plain => {
  const schema =
    name === "bc" ? BcConfig : Effect.runSync(Effect.map(byName(name, ""), (algorithm) => algorithm.schema))
  const { properties, ...rest } = objectOf(schema, algorithmMeanings(name), ["name"])
  return { ...rest, properties: { name: { const: name }, ...(isPlain(properties) ? properties : {}) } }
}

const blocks = {
  validation: "ValidationSettings",
  checkpoint: "CheckpointSettings",
  render: "RenderSettings",
  normalize: "NormalizeSettings",
} as const

/** The document as it should be. */
export const configSchema = (): Plain => {
  const whole = Schema.toJsonSchemaDocument(Settings).schema
  const root = objectOf(Settings, settingMeanings("Settings"), ["env", "algorithm"])
  const properties = isPlain(root.properties) ? root.properties : {}
  const given = isPlain(whole.properties) ? whole.properties : {}
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A training's config",
    ...root,
    properties: {
      ...properties,
      ...Object.fromEntries(
        Object.entries(blocks).map(([key, schema]) => [key, closed(given[key], settingMeanings(schema))]),
      ),
      env: {
        description: "A built-in env by its id, or one with options by its name",
        anyOf: [
          { enum: builtIn.map(({ id }) => id) },
          { type: "string" },
          { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
        ],
      },
      algorithm: { anyOf: [{ enum: names }, ...[...names, "bc"].sort().map(algorithmOf)] },
      trainer: objectOf(TrainerConfig, trainerMeanings(), []),
    },
  }
}

const root = fileURLToPath(new URL("..", import.meta.url))
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  mkdirSync(`${root}/schemas`, { recursive: true })
  writeFileSync(`${root}/schemas/config.schema.json`, `${JSON.stringify(configSchema(), null, 2)}\n`)
}
