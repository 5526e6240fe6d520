/** Makes the JSON Schema of the YAML file of a run that learns prompts. schemas.ts writes it to schemas/prompts.schema.json. */
import type { Plain } from "../src/base/config/Config.ts"
import { jsonSchema } from "../src/base/config/jsonSchema.ts"
import { closed } from "./closed.ts"
import { properties, scorer } from "./evaluationSchema.ts"
import { agents, definitions, modelRef } from "./partSchemas.ts"
import { prompts } from "./prompts.ts"

/** Returns the JSON Schema of the whole file. */
export const promptsSchema = (): Plain => {
  const { schema, defaults, meanings, parts, start, learners, output } = prompts
  const dataset = (key: string): Plain => ({ description: parts.get(key), $ref: "#/$defs/dataset" })
  const settings = closed(jsonSchema(schema), {
    meanings,
    defaults,
    parts: {
      scorer: { $ref: "#/$defs/scorer" },
      learner: {
        anyOf: learners.map((learner) =>
          closed(jsonSchema(learner.schema), { ...learner, parts: { reflectionLmConfig: modelRef } }),
        ),
      },
      start: { anyOf: [closed(jsonSchema(start.schema), start), { type: "null" }] },
      output: closed(jsonSchema(output.schema), output),
    },
  })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A run that learns the prompts of an agent",
    ...settings,
    properties: {
      ...properties(settings),
      agent: { description: parts.get("agent"), $ref: "#/$defs/agent" },
      dataset: dataset("dataset"),
      validation_dataset: dataset("validationDataset"),
      test_dataset: dataset("testDataset"),
    },
    required: ["agent", "dataset", "learner"],
    $defs: { ...definitions(), agent: { anyOf: agents() }, scorer: scorer() },
  }
}
