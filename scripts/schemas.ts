// Writes schemas/: config.schema.json (trainings), experiment.schema.json (language-model agents),
// evaluation.schema.json, prompts.schema.json (for runs that learn prompts), study.schema.json (for effect tune), multirun.schema.json (many runs in one trainer) and
// orchestrator.schema.json (one of these runs), by which editors complete and check a config in YAML. `effect init` writes the schema's path
// into a config's first line:
//   # yaml-language-server: $schema=node_modules/effect-rl/schemas/config.schema.json
// Also writes schemas/files/, which describe the files of a run.
//   npm run schemas
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { PolicyConfig, name as separateName } from "../src/rl/algorithms/agents/Separate.ts"
import { fromData, names, schemaOf } from "../src/rl/algorithms/registry.ts"
import { isPlain, type Plain } from "../src/base/config/Config.ts"
import { builtIn } from "../src/rl/env/Envs.ts"
import { NetworksSetting } from "../src/rl/model/network/layers.ts"
import { Settings } from "../src/rl/train/Settings.ts"
import { TrainerConfig } from "../src/rl/train/TrainerConfig.ts"
import { closed, closedAll } from "./closed.ts"
import { evaluationSchema } from "./evaluationSchema.ts"
import { experimentSchema } from "./experimentSchema.ts"
import { fileSchemas } from "./fileSchemas.ts"
import type { Meanings } from "./meanings.ts"
import { multirunSchema, orchestratorSchema } from "./multirunSchema.ts"
import { promptsSchema } from "./promptsSchema.ts"
import { algorithmMeanings, blockMeanings, trainerMeanings, trainMeanings } from "./settings.ts"
import { withShared } from "./shared.ts"
import { withSpellings } from "./spellings.ts"
import { studySchema } from "./studySchema.ts"

/**
 * Returns the closed JSON Schema of a config, which allows only the keys that it lists. Keys are in snake_case and have
 * their meanings as descriptions; only the keys in `required` are required.
 */
const objectOf = (schema: Schema.Codec<Plain, Plain>, meanings: Meanings, required: ReadonlyArray<string>): Plain => {
  const document: unknown = withNamesOfCode(Schema.toJsonSchemaDocument(schema).schema)
  return closed(document, { meanings, required })
}

/** The name of code, which a config has in place of the code. */
const nameOfCode = { type: "object", properties: { code: { type: "string" } }, required: ["code"] }

/** Puts the name of code where the settings of an algorithm can be code, which has an empty JSON Schema. */
const withNamesOfCode = (tree: unknown): unknown => {
  if (Array.isArray(tree)) return tree.map(withNamesOfCode)
  if (!isPlain(tree)) return tree
  return Object.fromEntries(
    Object.entries(tree).map(([key, item]) => {
      const members = key === "anyOf" && Array.isArray(item) ? item : undefined
      const named = members?.map((one) => (isPlain(one) && Object.keys(one).length === 0 ? nameOfCode : one))
      return [key, withNamesOfCode(named ?? item)]
    }),
  )
}

const algorithmOf = (name: string): Plain => {
  const schema = schemaOf(name)
  const { properties, ...rest } = objectOf(schema, algorithmMeanings(name), ["name"])
  return { ...rest, properties: { name: { const: name }, ...(isPlain(properties) ? properties : {}) } }
}

/** The config of separate policies: each has the settings of its algorithm, which the library checks when it reads them. */
const separate = (): Plain => {
  const { schema } = Schema.toJsonSchemaDocument(PolicyConfig)
  const policy = isPlain(schema) && isPlain(schema.properties) ? schema.properties : {}
  const items = { type: "object", properties: { ...policy, name: { enum: names } }, required: ["policy", "name"] }
  return {
    type: "object",
    properties: { name: { const: separateName }, policies: { type: "array", minItems: 1, items } },
    required: ["name", "policies"],
    additionalProperties: false,
  }
}

/** Maps each section of a config to the interface in src/rl/train/Settings.ts that has the comments on its settings. */
const blocks = {
  validation: "ValidationOptions",
  checkpoint: "CheckpointOptions",
  render: "RenderOptions",
  normalize: "NormalizeOptions",
} as const

/** Returns the definitions to which the setting `network` of algorithms refers, because layers can have layers. */
const layerDefinitions = (): Plain => {
  const { definitions } = Schema.toJsonSchemaDocument(Schema.Struct({ network: NetworksSetting }))
  const withoutCode: unknown = JSON.parse(
    JSON.stringify(definitions, (key, item: unknown) => (key === "layer" ? undefined : item)),
  )
  return closedAll(withoutCode, {})
}

/** Returns the JSON Schema of a training's config. */
export const configSchema = (): Plain => {
  const whole = Schema.toJsonSchemaDocument(Settings).schema
  const root = objectOf(Settings, trainMeanings(), ["env", "algorithm"])
  const properties = isPlain(root.properties) ? root.properties : {}
  const decoded = isPlain(whole.properties) ? whole.properties : {}
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A training's config",
    ...root,
    properties: {
      ...properties,
      ...Object.fromEntries(
        Object.entries(blocks).map(([key, options]) => [
          key,
          closed(decoded[key], { meanings: blockMeanings(options), required: [] }),
        ]),
      ),
      env: {
        description: "A built-in env by its id, or one with options by its name",
        anyOf: [
          { enum: builtIn.map(({ id }) => id) },
          { type: "string" },
          { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
        ],
      },
      algorithm: {
        anyOf: [{ enum: names }, ...[...names, ...Object.keys(fromData)].sort().map(algorithmOf), separate()],
      },
      trainer: objectOf(TrainerConfig, trainerMeanings(), []),
    },
    $defs: layerDefinitions(),
  }
}

/** Returns all JSON Schema documents by their paths in `schemas/`, in which no larger part is repeated. */
export const schemas = (): ReadonlyMap<string, Plain> => {
  const configs = {
    config: configSchema(),
    experiment: experimentSchema(),
    evaluation: evaluationSchema(),
    study: studySchema(),
    multirun: multirunSchema(),
    orchestrator: orchestratorSchema(),
    prompts: promptsSchema(),
  }
  return new Map([
    ...Object.entries(configs).map(([name, schema]): [string, Plain] => [
      `${name}.schema.json`,
      withShared(withSpellings(schema)),
    ]),
    ...[...fileSchemas()].map(([name, schema]): [string, Plain] => [`files/${name}.schema.json`, withShared(schema)]),
  ])
}

const folder = fileURLToPath(new URL("../schemas", import.meta.url))
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(`${folder}/files`, { recursive: true })
  for (const [path, schema] of schemas()) writeFileSync(`${folder}/${path}`, JSON.stringify(schema))
}
