/** Makes the JSON Schemas of models, agents and data sets for experimentSchema.ts and evaluationSchema.ts. */
import { Schema } from "effect"
import { McpConfig, ToolSource } from "../src/agents/agent/Mcp.ts"
import { isPlain, type Plain } from "../src/base/config/Config.ts"
import { jsonSchema } from "../src/base/config/jsonSchema.ts"
import { closed } from "./closed.ts"
import * as Experiment from "./experiment.ts"
import { meaningsOf } from "./meanings.ts"

const propertyOf = (tree: Plain, key: string): unknown => (isPlain(tree.properties) ? tree.properties[key] : undefined)

/** A JSON Schema that refers to the schema of a model in `definitions`. */
export const modelRef: Plain = { $ref: "#/$defs/lm_config" }

const model = (): Plain => {
  const { schema, defaults, meanings, blocks } = Experiment.model
  const tree = jsonSchema(schema)
  const block = (key: "limits" | "budget"): Plain => {
    const blockDefaults = defaults[key]
    return closed(propertyOf(tree, key), {
      meanings: blocks[key],
      defaults: isPlain(blockDefaults) ? blockDefaults : {},
    })
  }
  const prices = propertyOf(tree, "prices")
  const items = closed(isPlain(prices) ? prices.items : undefined, { meanings: blocks.prices })
  return closed(tree, {
    meanings,
    defaults,
    parts: { limits: block("limits"), budget: block("budget"), prices: { type: "array", items } },
  })
}

/** Returns the schema of the `memory_config` of an agent. Only its default kind of memory may lack the key `_type`. */
const memory = (agent: string): Plain => {
  const defaultType = Experiment.memoryTypeOf(agent)
  const kinds = Experiment.memories().map(({ type, schema, defaults, meanings }) =>
    closed(jsonSchema(schema), {
      meanings: new Map([...meanings, ["_type", "The kind of memory."]]),
      defaults: { ...defaults, ...(type === defaultType ? { _type: type } : {}) },
      required: type === defaultType ? [] : ["_type"],
    }),
  )
  return { anyOf: [...kinds, { type: "null" }] }
}

/** Returns the schema of the `tools` of an agent: servers, each under the key `mcp`. */
const tools = (): Plain => {
  const server = closed(jsonSchema(McpConfig), {
    meanings: meaningsOf("src/agents/agent/Mcp.ts", "McpConfig"),
    defaults: { ...Schema.decodeSync(McpConfig)({}) },
  })
  const items = closed(jsonSchema(ToolSource), {
    meanings: meaningsOf("src/agents/agent/Mcp.ts", "ToolSource"),
    parts: { mcp: server },
  })
  return { type: "array", items }
}

/** Returns the JSON Schemas of all kinds of agents. An agent without a `type` is of the first kind. */
export const agents = (): ReadonlyArray<Plain> =>
  Experiment.agents().map(({ type, schema, defaults, meanings }, index) =>
    closed(jsonSchema(schema), {
      meanings,
      defaults: index === 0 ? { type, ...defaults } : defaults,
      required: [...(index === 0 ? [] : ["type"]), ...Experiment.requiredByAgent(type)],
      parts: {
        lmConfig: Experiment.isOutside(type) ? { anyOf: [modelRef, { type: "null" }] } : modelRef,
        memoryConfig: memory(type),
        tools: tools(),
      },
    }),
  )

/** Returns the JSON Schemas of data sets. A data set without `type` is `qa`, or `omega_math` if it has `eval_mode`. */
const datasets = (): ReadonlyArray<Plain> =>
  Experiment.datasets().flatMap(({ type, schema, defaults, meanings }) => {
    const kind = (required: ReadonlyArray<string>): Plain =>
      closed(jsonSchema(schema), {
        meanings: new Map([...meanings, ["type", "The kind of data set."]]),
        defaults: type === "qa" ? { type, ...defaults } : defaults,
        required,
        parts: { feedbackLmConfig: { anyOf: [modelRef, { type: "null" }] } },
      })
    if (type === "qa") return [kind([])]
    return type === "omega_math"
      ? [kind(["type"]), kind(["evalMode"])]
      : [kind(["type", ...Experiment.requiredBy(type)])]
  })

/** Returns the `$defs` of a file: the schemas of a model and of a data set. */
export const definitions = (): Plain => ({ lm_config: model(), dataset: { anyOf: datasets() } })
