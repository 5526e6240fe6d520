// Collects the settings of an evaluation's YAML file: the Schemas, the defaults, and the meanings from the comments in
// src/agents/evaluate/, which it reads. Agents and data sets are in experiment.ts. settings.ts describes the settings in
// docs/settings.md by this file, and evaluationSchema.ts makes their JSON Schema by it.
import { Schema } from "effect"
import { isPlain, type Plain } from "../src/base/config/Config.ts"
import { EvaluationSettings, OutputSettings } from "../src/agents/evaluate/EvaluationConfig.ts"
import * as Scorers from "../src/agents/evaluate/Scorers.ts"
import type { Part } from "./experiment.ts"
import { type Meanings, meaningsIn, meaningsOf, schemaIn } from "./meanings.ts"
import { table } from "./table.ts"

const file = "src/agents/evaluate/EvaluationConfig.ts"
const { output: outputDefaults, ...defaults } = Schema.decodeSync(EvaluationSettings)({})

/** The settings of the file, except those of its scorers, its agents and its data set. */
export const evaluation = {
  schema: EvaluationSettings,
  defaults,
  meanings: meaningsOf(file, "EvaluationSettings"),
  /** The comments on `dataset`, `agent` and `agents`, whose contents have Schemas of their own. */
  parts: meaningsOf(file, "Whole"),
  output: { schema: OutputSettings, defaults: outputDefaults, meanings: meaningsOf(file, "OutputSettings") },
}

const scorersFile = "src/agents/evaluate/Scorers.ts"

/** Maps each kind of scorer that has settings of its own to the name of its Schema in Scorers.ts. */
const ownFields: Readonly<Record<string, string>> = { solved: "SolvedConfig", judge: "JudgeConfig" }

const scorerMeanings = (type: string): Meanings =>
  meaningsIn([...(type in ownFields ? [schemaIn(scorersFile, ownFields[type])] : []), schemaIn(scorersFile, "fields")])

/** Values for keys without a default, so that a scorer can be decoded. `scorerDefaults` leaves them out again. */
const any = { rubric: "any", lmConfig: { model: "any" } }

const scorerDefaults = (type: string, schema: Schema.Codec<unknown, unknown>): Plain => {
  const decoded = Schema.decodeUnknownSync(schema)({ type, ...any })
  const basic = ["type", ...Object.keys(any)]
  return Object.fromEntries(Object.entries(isPlain(decoded) ? decoded : {}).filter(([key]) => !basic.includes(key)))
}

export const scorers = (): ReadonlyArray<Part> =>
  Scorers.builtIn.map(({ type, schema }) => ({
    type,
    schema,
    defaults: scorerDefaults(type, schema),
    meanings: scorerMeanings(type),
  }))

const scorersWithoutSettings = scorers().filter(({ type }) => !(type in ownFields))

/** Returns the part of docs/settings.md about evaluations, as Markdown. */
export const evaluationSettings = (): string => {
  const { output, parts, meanings } = evaluation
  const [solved, judge] = ["solved", "judge"].map((wanted) => scorers().filter(({ type }) => type === wanted)[0])
  return `## An evaluation

An evaluation is a YAML file that names agents and a data set to compare them on. \`effect init --kind evaluation\` writes a first
one, \`effect eval\` runs it, and editors complete it by \`schemas/evaluation.schema.json\`. The data set has
[the settings above](#train_dataset-and-validation_dataset), and so have [the agents](#agent). In a list, each agent also has a
\`name\`. A single agent is written as \`agent\` instead of \`agents\`.

${table(defaults, new Map([...meanings, ...parts]), ["dataset", "agents"])}

### \`output\` of an evaluation

${table(output.defaults, output.meanings)}

### \`scorers\`

${scorersWithoutSettings.map(({ type }) => `\`${type}\``).join(", ")}: written as the name alone, or with a \`name\` for the tables, as in
\`{ type: exact, name: right }\`. A \`direction\` (\`higher\`, \`lower\` or \`none\`) says which values are better, if that isn't
the scorer's own. These have more settings:

#### \`solved\`

${table(solved.defaults, solved.meanings)}

#### \`judge\`

${table(judge.defaults, new Map([...judge.meanings, ["lmConfig", "The model that judges, as [an agent's](#agentlm_config)."]]), ["rubric", "lmConfig"])}
`
}
