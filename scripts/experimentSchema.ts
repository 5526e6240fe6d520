/** Makes the JSON Schema of an experiment's YAML file. schemas.ts writes it to schemas/experiment.schema.json. */
import { isPlain, type Plain } from "../src/base/config/Config.ts"
import { jsonSchema } from "../src/base/config/jsonSchema.ts"
import { RunSettings } from "../src/agents/training/RuntimeConfig.ts"
import { closed } from "./closed.ts"
import * as Experiment from "./experiment.ts"
import { agents, definitions } from "./partSchemas.ts"

const dataset = (description: string): Plain => ({
  description,
  anyOf: [{ $ref: "#/$defs/dataset" }, { type: "null" }],
})

/** Returns the JSON Schema of the whole file. */
export const experimentSchema = (): Plain => {
  const { defaults, meanings, start, runtime, output } = Experiment.run
  const settings = closed(jsonSchema(RunSettings), {
    meanings,
    defaults,
    parts: {
      start: { anyOf: [closed(jsonSchema(start.schema), start), { type: "null" }] },
      runtime: closed(jsonSchema(runtime.schema), runtime),
      output: { anyOf: [closed(jsonSchema(output.schema), output), { type: "null" }] },
    },
  })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "An experiment with language-model agents",
    ...settings,
    properties: {
      ...(isPlain(settings.properties) ? settings.properties : {}),
      train_dataset: dataset("The tasks from which the agent learns."),
      validation_dataset: dataset("The tasks on which the agent is tested, without learning."),
      agent: { description: "The agent, described by its type.", anyOf: agents() },
    },
    required: ["agent"],
    $defs: definitions(),
  }
}
