/**
 * Makes the JSON Schemas of a multi-run trainer's YAML file and of the `orch.yaml` of one of its runs. schemas.ts writes
 * them to schemas/multirun.schema.json and schemas/orchestrator.schema.json.
 */
import { isPlain, type Plain } from "../src/base/config/Config.ts"
import { jsonSchema } from "../src/base/config/jsonSchema.ts"
import { closed, closedAll } from "./closed.ts"
import * as MultiRun from "./multirun.ts"
import { agents, definitions } from "./partSchemas.ts"

const plain = (value: unknown): Plain => (isPlain(value) ? value : {})
const propertiesOf = (tree: unknown): Plain => plain(plain(tree).properties)
const variantsOf = (tree: unknown): ReadonlyArray<unknown> => {
  const { anyOf } = plain(tree)
  return Array.isArray(anyOf) ? anyOf : []
}

const dataset: Plain = { anyOf: [{ $ref: "#/$defs/dataset" }, { type: "null" }] }

/** Returns the schema of an agent without its model, which is the one that is trained. */
const withoutModel = (agent: Plain): Plain => {
  const { lm_config: _, ...properties } = plain(agent.properties)
  const required = Array.isArray(agent.required) ? agent.required.filter((key) => key !== "lm_config") : []
  return { ...agent, properties, required }
}

/** Returns the schema of a run's config, which refers to the definitions of the file that it is in. */
const runSchema = (): Plain => {
  const { schema, sections, objectives, defaults, meanings } = MultiRun.run
  const tree = jsonSchema(schema)
  const properties = propertiesOf(tree)
  const closedSection = (key: string, section: MultiRun.Section, parts: Plain = {}): Plain =>
    closed(properties[key], { ...section, parts })
  const { supervised, ...others } = sections
  const schedule = closedSection("schedule", sections.schedule)
  return closed(tree, {
    defaults,
    meanings,
    parts: {
      ...Object.fromEntries(Object.entries(others).map(([key, section]) => [key, closedSection(key, section)])),
      supervised: closedSection("supervised", supervised, { schedule }),
      objective: closedAll(properties.objective, { meanings: objectives }),
      agent: { anyOf: agents().map(withoutModel) },
      trainDataset: dataset,
      validationDataset: dataset,
    },
  })
}

/** Returns the JSON Schema of an `orch.yaml`. */
export const orchestratorSchema = (): Plain => ({
  $schema: "https://json-schema.org/draft/2020-12/schema",
  title: "A run of a multi-run trainer",
  ...runSchema(),
  $defs: definitions(),
})

/** Returns the JSON Schema of a multi-run trainer's file. */
export const multirunSchema = (): Plain => {
  const { schema, defaults, meanings, folder, scratch, tokenizer, trainer, lora, inference, broadcast, output } =
    MultiRun.trainer
  const tree = jsonSchema(schema)
  const properties = propertiesOf(tree)
  const [folderModel, scratchModel] = variantsOf(properties.model)
  const trainerTree = propertiesOf(properties.trainer)
  const [loraTree] = variantsOf(trainerTree.lora)
  const [outputTree] = variantsOf(properties.output)
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "A multi-run trainer",
    ...closed(tree, {
      defaults,
      meanings,
      // By its kind, a file is known to be that of a multi-run trainer.
      required: ["kind", "model", "runs"],
      parts: {
        model: {
          anyOf: [
            closed(folderModel, folder),
            closed(scratchModel, {
              ...scratch,
              parts: { tokenizer: closed(propertiesOf(scratchModel).tokenizer, tokenizer) },
            }),
          ],
        },
        trainer: closed(properties.trainer, {
          ...trainer,
          parts: { lora: { anyOf: [closed(loraTree, lora), { type: "null" }] } },
        }),
        inference: closed(properties.inference, inference),
        broadcast: closed(properties.broadcast, broadcast),
        runs: { type: "object", additionalProperties: { $ref: "#/$defs/run" } },
        output: { anyOf: [closed(outputTree, output), { type: "null" }] },
      },
    }),
    $defs: { run: runSchema(), ...definitions() },
  }
}
