// Collects the settings of the YAML file of a run that learns prompts: the Schemas, the defaults, and the meanings from the
// comments in src/agents/prompts/PromptsConfig.ts. settings.ts describes the settings in docs/settings.md by this file, and
// promptsSchema.ts makes their JSON Schema by it.
import { Schema } from "effect"
import {
  BootstrapLearner,
  GepaLearner,
  OutputSettings,
  PromptsSettings,
  StartSettings,
} from "../src/agents/prompts/PromptsConfig.ts"
import { type Meanings, meaningsIn, meaningsOf, schemaIn } from "./meanings.ts"
import { table } from "./table.ts"

const file = "src/agents/prompts/PromptsConfig.ts"
const {
  learner: _learner,
  output: outputDefaults,
  ...defaults
} = Schema.decodeSync(PromptsSettings)({
  learner: { type: "bootstrap" },
})

const learnerMeanings = (name: string): Meanings =>
  new Map([["type", "The kind of learner."], ...meaningsIn([schemaIn(file, name), schemaIn(file, "limitFields")])])

const {
  type: _1,
  reflectionLmConfig: _2,
  ...gepaDefaults
} = Schema.decodeSync(GepaLearner)({
  type: "gepa",
  reflectionLmConfig: { model: "any" },
})
const { type: _3, ...bootstrapDefaults } = Schema.decodeSync(BootstrapLearner)({ type: "bootstrap" })

/** The settings of the file, except those of its scorer, its agent and its data sets. */
export const prompts = {
  schema: PromptsSettings,
  defaults,
  meanings: meaningsOf(file, "PromptsSettings"),
  /** The comments on the agent and the data sets, whose contents have Schemas of their own. */
  parts: meaningsOf(file, "Whole"),
  learners: [
    { schema: GepaLearner, defaults: gepaDefaults, meanings: learnerMeanings("GepaLearner") },
    { schema: BootstrapLearner, defaults: bootstrapDefaults, meanings: learnerMeanings("BootstrapLearner") },
  ],
  start: {
    schema: StartSettings,
    defaults: Schema.decodeSync(StartSettings)({}),
    meanings: meaningsOf(file, "StartSettings"),
  },
  output: { schema: OutputSettings, defaults: outputDefaults, meanings: meaningsOf(file, "OutputSettings") },
}

/** Returns the part of docs/settings.md about runs that learn prompts, as Markdown. */
export const promptsSettings = (): string => {
  const { meanings, parts, start, output, learners } = prompts
  const [gepa, bootstrap] = learners
  return `## A run that learns prompts

Such a run is a YAML file with \`kind: prompts\`: [Prompts that learn](agents/prompts.md) explains it, \`effect run\` runs it, and
editors complete it by \`schemas/prompts.schema.json\`. Its agent and its data sets have the settings above, and its scorer is
[one of those of an evaluation](#scorers).

${table({ validationDataset: null, testDataset: null, ...defaults }, new Map([...meanings, ...parts]), ["agent", "dataset", "learner"])}

### \`start\` of a run that learns prompts

${table(start.defaults, start.meanings)}

### \`learner\`: \`gepa\`

${table(gepa.defaults, gepa.meanings, ["reflectionLmConfig"])}

### \`learner\`: \`bootstrap\`

${table(bootstrap.defaults, bootstrap.meanings)}

### \`output\` of a run that learns prompts

${table(output.defaults, output.meanings)}
`
}
