/** schemas/experiment.schema.json, by which editors complete an experiment's file. */
import { isPlain, type Plain } from "../src/config/Config.ts"
import { jsonSchema } from "../src/config/jsonSchema.ts"
import { RunSettings } from "../src/train/runtime/RuntimeConfig.ts"
import { closed } from "./closed.ts"
import * as Experiment from "./experiment.ts"

const propertyOf = (tree: Plain, key: string): unknown => (isPlain(tree.properties) ? tree.properties[key] : undefined)

const modelRef: Plain = { $ref: "#/$defs/lm_config" }

const model = (): Plain => {
  const { schema, defaults, meanings, blocks } = Experiment.model
  const tree = jsonSchema(schema)
  const block = (key: "limits" | "budget"): Plain => {
    const unless = defaults[key]
    return closed(propertyOf(tree, key), { meanings: blocks[key], defaults: isPlain(unless) ? unless : {} })
  }
  const prices = propertyOf(tree, "prices")
  const items = closed(isPlain(prices) ? prices.items : undefined, { meanings: blocks.prices })
  return closed(tree, {
    meanings,
    defaults,
    parts: { limits: block("limits"), budget: block("budget"), prices: { type: "array", items } },
  })
}

const memory = (agent: string): Plain => {
  const usual = Experiment.memoryTypeOf(agent)
  const kinds = Experiment.memories().map(({ type, schema, defaults, meanings }) =>
    closed(jsonSchema(schema), {
      meanings: new Map([...meanings, ["_type", "Which kind of memory."]]),
      defaults: { ...defaults, ...(type === usual ? { _type: type } : {}) },
      required: type === usual ? [] : ["_type"],
    }),
  )
  return { anyOf: [...kinds, { type: "null" }] }
}

/** Where no type is said, the first kind is meant. */
const agents = (): ReadonlyArray<Plain> =>
  Experiment.agents().map(({ type, schema, defaults, meanings }, index) =>
    closed(jsonSchema(schema), {
      meanings,
      defaults: index === 0 ? { type, ...defaults } : defaults,
      required: index === 0 ? ["lmConfig"] : ["type", "lmConfig"],
      parts: { lmConfig: modelRef, memoryConfig: memory(type) },
    }),
  )

/** Where no type is said, it is qa, or omega_math if `eval_mode` is said. */
const datasets = (): ReadonlyArray<Plain> =>
  Experiment.datasets().flatMap(({ type, schema, defaults, meanings }) => {
    const kind = (required: ReadonlyArray<string>): Plain =>
      closed(jsonSchema(schema), {
        meanings: new Map([...meanings, ["type", "Which kind of data set."]]),
        defaults: type === "qa" ? { type, ...defaults } : defaults,
        required,
        parts: { feedbackLmConfig: { anyOf: [modelRef, { type: "null" }] } },
      })
    if (type === "qa") return [kind([])]
    return type === "omega_math" ? [kind(["type"]), kind(["evalMode"])] : [kind(["type"])]
  })

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
      output: closed(jsonSchema(output.schema), output),
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
    $defs: { lm_config: model(), dataset: { anyOf: datasets() } },
  }
}
