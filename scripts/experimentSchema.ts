/** schemas/experiment.schema.json, by which editors complete an experiment's file. */
import { isPlain, type Plain } from "../src/config/Config.ts"
import { jsonSchema } from "../src/config/jsonSchema.ts"
import { RunSettings } from "../src/runtime/RuntimeConfig.ts"
import { closed } from "./closed.ts"
import * as Experiment from "./experiment.ts"
import { agents, definitions } from "./partSchemas.ts"

const dataset = (description: string): Plain => ({
  description,
  anyOf: [{ $ref: "#/$defs/dataset" }, { type: "null" }],
})

/** The document as it should be. */
export const experimentSchema = (): Plain => {
  const { defaults, meanings, runtime, output } = Experiment.run
  const settings = closed(jsonSchema(RunSettings), {
    meanings,
    defaults,
    parts: {
      runtime: closed(jsonSchema(runtime.schema), runtime),
      output: { anyOf: [closed(jsonSchema(output.schema), output), { type: "null" }] },
    },
  })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "An experiment with agents that talk",
    ...settings,
    properties: {
      ...(isPlain(settings.properties) ? settings.properties : {}),
      train_dataset: dataset("What the agent learns from."),
      validation_dataset: dataset("What it is tested on, without learning."),
      agent: { description: "Who acts: by its type.", anyOf: agents() },
    },
    required: ["agent"],
    $defs: definitions(),
  }
}
