// Collects the settings of an experiment's YAML file: of the run, and of each kind of agent, memory and data set.
// Defaults come from the Schemas, and meanings from the comments in src/, which it reads. settings.ts describes the
// settings in docs/settings.md by this file, and experimentSchema.ts and partSchemas.ts make their JSON Schemas by it.
import { Effect, FileSystem, Layer, Path, Schema } from "effect"
import * as Agents from "../src/agents/agent/Agents.ts"
import * as Memories from "../src/agents/agent/memory/Memories.ts"
import { isPlain, type Plain, toCamelCase } from "../src/base/config/Config.ts"
import * as Datasets from "../src/agents/task/Datasets.ts"
import { LmConfig } from "../src/agents/lm/LmConfig.ts"
import {
  OutputSettings,
  RunSettings,
  RuntimeSettings,
  RuntimeStartSettings,
} from "../src/agents/training/RuntimeConfig.ts"
import { meaningsOfMembers } from "./interfaces.ts"
import { type Meanings, meaningsIn, meaningsOf, read, schemaIn } from "./meanings.ts"
import { table } from "./table.ts"

/** The settings of one kind of agent, memory, data set or scorer. */
export interface Part {
  readonly type: string
  readonly schema: Schema.Top
  /** The defaults of the keys in camelCase, without the key `type`. */
  readonly defaults: Plain
  readonly meanings: Meanings
}

const plain = (value: unknown): Plain => (isPlain(value) ? value : {})

const without = (tree: Plain, ...keys: ReadonlyArray<string>): Plain =>
  Object.fromEntries(Object.entries(tree).filter(([key]) => !keys.includes(key)))

/** A name of a model, because configs without a model cannot be decoded. */
const anyModel = "any"

/** The services that decoding an agent requires. No file is read, since the configs here name none. */
const services = Layer.merge(FileSystem.layerNoop({}), Path.layer)

/** Agents with code of their own: their source files, and the settings that they cannot do without. */
const outsideAgents: Readonly<Record<string, { readonly file: string; readonly required: Plain }>> = {
  command: { file: "src/agents/agent/CommandAgent.ts", required: { command: ["program"] } },
  http: { file: "src/agents/agent/HttpAgent.ts", required: { url: "http://127.0.0.1:8080" } },
}

const agentDefaults = (type: string): Plain => {
  const required = outsideAgents[type]?.required ?? {}
  const lmConfig = isOutside(type) ? null : { model: anyModel }
  const decoded = Agents.decode({ type, lmConfig, ...required }).pipe(Effect.provide(services))
  return without(plain(toCamelCase(Effect.runSync(decoded).config)), ...Object.keys(required))
}

/** Collects the comments on the settings of a kind of agent: on its own settings, and on those that kinds share. */
const agentMeanings = (type: string): Meanings => {
  if (isOutside(type))
    return meaningsIn([
      schemaIn(outsideAgents[type].file, "config"),
      schemaIn("src/agents/agent/outside/outsideKind.ts", "fields"),
    ])
  // Matches the beginning of a Schema in Agents.ts: `const history = Schema.Struct({ ...fields(HistoryAgent.type)`.
  const own = /^const (\w+) = Schema\.Struct\(\{ ?\s*\.\.\.fields\((\w+)\.type\)/gm
  const file = read("src/agents/agent/Agents.ts")
  const name = [...file.matchAll(own)].map(([, name]) => name).find((name) => type.startsWith(name))
  return meaningsIn([
    schemaIn("src/agents/agent/Agents.ts", name ?? ""),
    schemaIn("src/agents/agent/Agents.ts", "loopFields"),
    schemaIn("src/agents/agent/AgentKind.ts", "memoryFields"),
    schemaIn("src/agents/agent/AgentKind.ts", "fields"),
  ])
}

export const agents = (): ReadonlyArray<Part> =>
  Agents.builtIn.map(({ type, schema }) => ({
    type,
    schema,
    defaults: isOutside(type) ? without(agentDefaults(type), "type") : without(agentDefaults(type), "type", "lmConfig"),
    meanings: agentMeanings(type),
  }))

/** Tells whether a kind of agent has code of its own, and so need not have a model. */
export const isOutside = (type: string): boolean => Object.hasOwn(outsideAgents, type)

/** Returns the keys that an agent's config must have. */
export const requiredByAgent = (type: string): ReadonlyArray<string> =>
  isOutside(type) ? Object.keys(outsideAgents[type].required) : ["lmConfig"]

/** Returns the kind of memory that an agent gets from a `memory_config` without `_type`; empty if it never has one. */
export const memoryTypeOf = (agent: string): string => {
  const config = { type: agent, lmConfig: { model: anyModel }, memoryConfig: {} }
  const decoded = Effect.runSync(Effect.option(Effect.provide(Agents.decode(config), services)))
  const memory = plain(toCamelCase(decoded._tag === "Some" ? decoded.value.config : {})).memoryConfig
  return String(plain(memory)._type ?? "")
}

const { HistoryListConfig, ReflectionsConfig, KeyValueConfig, Bm25Config, EmbeddingsConfig } = Memories
const memorySchemas = { HistoryListConfig, ReflectionsConfig, KeyValueConfig, Bm25Config, EmbeddingsConfig }

export const memories = (): ReadonlyArray<Part> =>
  Object.entries(memorySchemas).map(([name, schema]) => {
    const type = schema.fields._type.literal
    return {
      type,
      schema,
      defaults: without(plain(Schema.decodeUnknownSync(Schema.toCodecJson(schema))({ _type: type })), "_type"),
      meanings: meaningsOf("src/agents/agent/memory/Memories.ts", name),
    }
  })

/** The source file of each kind of data set, in src/agents/task/; its constant `Config` is the Schema. */
const datasetFiles: Readonly<Record<string, string>> = {
  qa: "Qa.ts",
  arithmetic: "games/Arithmetic.ts",
  calendar: "games/CalendarTask.ts",
  omega_math: "OmegaMath.ts",
  finer: "Finer.ts",
  foreign: "foreign/ForeignTask.ts",
  alfworld: "foreign/Alfworld.ts",
  openenv: "openenv/OpenEnvTask.ts",
  harbor: "harbor/Harbor.ts",
  codebook: "games/Codebook.ts",
  reverse_text: "games/ReverseText.ts",
  sort_text: "games/SortText.ts",
  code: "code/CodeTask.ts",
  key_door: "games/KeyDoor.ts",
  text_maze: "games/Maze.ts",
  tic_tac_toe: "games/TicTacToe.ts",
  twenty_questions: "games/TwentyQuestions.ts",
  word_guess: "games/WordGuess.ts",
}

/** The texts of the files with the fields that several kinds of data set share. */
const sharedByDatasets = [
  "agents/task/data/fileSet.ts",
  "agents/task/games/letters.ts",
  "agents/task/games/levels.ts",
  "agents/task/DatasetKind.ts",
  "spread/openenv/serverFields.ts",
].map((file) => read(`src/${file}`))

/** The settings without which a kind of data set cannot be decoded, with values that stand for any. */
const requiredByDatasets: Readonly<Record<string, Plain>> = {
  foreign: { command: ["any"], id: "any" },
  alfworld: { baseConfigPath: "any" },
  openenv: { url: "http://any" },
  harbor: { datasetPath: "any" },
}

/** Returns the keys of the settings that a kind of data set requires. */
export const requiredBy = (type: string): ReadonlyArray<string> => Object.keys(requiredByDatasets[type] ?? {})

const datasetDefaults = (type: string): Plain =>
  plain(toCamelCase(Effect.runSync(Datasets.decode({ type, ...requiredByDatasets[type] }))))

export const datasets = (): ReadonlyArray<Part> =>
  Datasets.builtIn.map(({ type, schema }) => ({
    type,
    schema,
    defaults: without(datasetDefaults(type), "type", ...requiredBy(type)),
    meanings: meaningsIn([schemaIn(`src/agents/task/${datasetFiles[type]}`, "Config"), ...sharedByDatasets]),
  }))

const lmFile = "src/agents/lm/LmConfig.ts"

/** The settings of a model and its nested sections. */
export const model = {
  schema: LmConfig,
  defaults: without(plain(Schema.decodeSync(LmConfig)({ model: anyModel })), "model"),
  meanings: meaningsOfMembers(lmFile, "LmOptions"),
  blocks: {
    limits: meaningsOfMembers(lmFile, "LimitsOptions"),
    budget: meaningsOfMembers(lmFile, "BudgetOptions"),
    prices: meaningsOfMembers(lmFile, "Price"),
  },
}

const runtimeFile = "src/agents/training/RuntimeConfig.ts"

/** The settings of the run (those at the top of the file), and of its sections `runtime` and `output`. */
export const run = {
  defaults: without(plain(Schema.decodeSync(RunSettings)({})), "runtime", "output"),
  meanings: new Map([
    ...meaningsOfMembers("src/agents/training/Runtime.ts", "RuntimeInput"),
    ...meaningsOf(runtimeFile, "RunSettings"),
  ]),
  start: {
    schema: RuntimeStartSettings,
    defaults: plain(Schema.decodeSync(RuntimeStartSettings)({})),
    meanings: meaningsOfMembers(runtimeFile, "RuntimeStartOptions"),
  },
  runtime: {
    schema: RuntimeSettings,
    defaults: plain(Schema.decodeSync(RuntimeSettings)({})),
    meanings: meaningsOfMembers(runtimeFile, "RuntimeOptions"),
  },
  output: {
    schema: OutputSettings,
    defaults: plain(Schema.decodeSync(OutputSettings)({})),
    meanings: meaningsOfMembers(runtimeFile, "OutputOptions"),
  },
}

/** Returns the keys that have the same default in all of these parts. One table describes them for all parts. */
const common = (parts: ReadonlyArray<Part>): ReadonlyArray<string> =>
  Object.keys(parts[0].defaults).filter((key) => {
    const [first, ...others] = parts.map(({ defaults }) => JSON.stringify(defaults[key]))
    return others.every((other) => other === first)
  })

const only = (tree: Plain, keys: ReadonlyArray<string>): Plain =>
  Object.fromEntries(Object.entries(tree).filter(([key]) => keys.includes(key)))

/** Returns Markdown with a heading and a table for each part, without the keys that another table describes. */
const sections = (
  all: ReadonlyArray<Part>,
  describedElsewhere: ReadonlyArray<string>,
  required: (type: string) => ReadonlyArray<string> = () => [],
): string =>
  all
    .map(({ type, defaults, meanings }) => {
      const own = without(defaults, ...describedElsewhere)
      const isEmpty = Object.keys(own).length === 0 && required(type).length === 0
      return `#### \`${type}\`\n\n${isEmpty ? "It has no other settings." : table(own, meanings, required(type))}`
    })
    .join("\n\n")

/** Returns the part of docs/settings.md about experiments, as Markdown. */
export const experimentSettings = (): string => {
  const [allAgents, allDatasets] = [agents(), datasets()]
  // Agents with code of their own have few settings in common with the others.
  const conversing = allAgents.filter(({ type }) => !isOutside(type))
  const sharedByAgents = common(conversing)
  // Data sets read records from files, or are games, which generate their tasks.
  const [records, games] = [
    allDatasets.filter(({ defaults }) => "datasetPath" in defaults),
    allDatasets.filter(({ defaults }) => typeof defaults.numTasks === "number"),
  ]
  const programs = allDatasets.filter(({ type }) => requiredBy(type).length > 0)
  const [sharedByRecords, sharedByGames] = [common(records), common(games)]
  const { limits, budget, prices } = model.blocks
  return `## An experiment

An experiment is a YAML file about an agent that asks a language model. \`effect init\` writes a first one, \`effect run\` runs it,
and editors complete it by \`schemas/experiment.schema.json\`.

${table(run.defaults, run.meanings)}

### \`start\`

${table(run.start.defaults, run.start.meanings)}

### \`runtime\`

${table(run.runtime.defaults, run.runtime.meanings)}

### \`output\`

${table(run.output.defaults, run.output.meanings)}

### \`agent\`

${table({ type: allAgents[0].type, lmConfig: undefined, ...only(allAgents[0].defaults, sharedByAgents) }, allAgents[0].meanings)}

${sections(conversing, sharedByAgents)}

Agents with code of their own have all their settings here:

${sections(
  allAgents.filter(({ type }) => isOutside(type)),
  [],
  requiredByAgent,
)}

### \`agent.lm_config\`

${table(model.defaults, model.meanings, ["model"])}

${["limits", "budget"].map((key) => `#### \`${key}\`\n\n${table(plain(model.defaults[key]), key === "limits" ? limits : budget)}`).join("\n\n")}

#### \`prices\`, each of them

${table({}, prices, ["model", "input", "output"])}

### \`agent.memory_config\`

The settings depend on the \`_type\`:

${sections(memories(), [])}

### \`train_dataset\` and \`validation_dataset\`

The settings depend on the \`type\`, which is \`qa\` by default. Data sets of records have these:

${table(only(records[0].defaults, sharedByRecords), records[0].meanings)}

${sections(records, sharedByRecords)}

Games need no file; they have these:

${table(only(games[0].defaults, sharedByGames), games[0].meanings)}

${sections(games, sharedByGames)}

The tasks of other programs have these:

${programs.map(({ type, defaults, meanings }) => `#### \`${type}\`\n\n${table(defaults, meanings, requiredBy(type))}`).join("\n\n")}
`
}
