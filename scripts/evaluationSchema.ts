/** Makes the JSON Schema of an evaluation's YAML file. schemas.ts writes it to schemas/evaluation.schema.json. */
import { isPlain, type Plain } from "../src/base/config/Config.ts"
import { jsonSchema } from "../src/base/config/jsonSchema.ts"
import { closed } from "./closed.ts"
import { evaluation, scorers } from "./evaluation.ts"
import { agents, definitions, modelRef } from "./partSchemas.ts"

export const properties = (tree: Plain): Plain => (isPlain(tree.properties) ? tree.properties : {})

const name: Plain = { description: "The name of the agent in tables.", type: "string", minLength: 1 }

/** Makes the schemas of an agent in `agents`, one per kind: the schema of an experiment's agent, and the key `name`. */
const namedAgents = (): ReadonlyArray<Plain> =>
  agents().map((agent) => ({ ...agent, properties: { name, ...properties(agent) } }))

/** Makes the schema of a scorer. A scorer without required settings can be written as its name alone. */
export const scorer = (): Plain => {
  const kinds = scorers()
  const withoutSettings = kinds
    .filter(({ schema }) => !isRequired(jsonSchema(schema), "rubric"))
    .map(({ type }) => type)
  const described = kinds.map(({ schema, meanings, defaults }) =>
    closed(jsonSchema(schema), {
      meanings: new Map([...meanings, ["type", "The kind of scorer."], ["lmConfig", "The model that judges."]]),
      defaults,
      parts: { lmConfig: modelRef },
    }),
  )
  return { anyOf: [{ enum: withoutSettings }, ...described] }
}

const isRequired = ({ required }: Plain, key: string): boolean => Array.isArray(required) && required.includes(key)

/** Returns the JSON Schema of the whole file. */
export const evaluationSchema = (): Plain => {
  const { schema, defaults, meanings, parts, output } = evaluation
  const agent = { $ref: "#/$defs/agent" }
  const settings = closed(jsonSchema(schema), {
    meanings,
    defaults,
    parts: {
      scorers: { type: "array", items: { $ref: "#/$defs/scorer" }, minItems: 1 },
      output: closed(jsonSchema(output.schema), output),
    },
  })
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "An evaluation of agents that talk",
    ...settings,
    properties: {
      ...properties(settings),
      dataset: { description: parts.get("dataset"), $ref: "#/$defs/dataset" },
      agent: { description: parts.get("agent"), ...agent },
      agents: {
        description: parts.get("agents"),
        anyOf: [
          { type: "array", items: agent, minItems: 1 },
          { type: "object", additionalProperties: agent, minProperties: 1 },
        ],
      },
    },
    required: ["dataset"],
    // A file has either `agent` or `agents`. Strict validators want a required key in `properties`, too.
    oneOf: ["agent", "agents"].map((key) => ({
      properties: { [key]: { description: parts.get(key) } },
      required: [key],
    })),
    $defs: { ...definitions(), agent: { anyOf: namedAgents() }, scorer: scorer() },
  }
}
