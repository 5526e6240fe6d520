import { Schema } from "effect"

/** The JSON Schema of what a Schema decodes, with the definitions that it refers to in it. */
export const jsonSchema = (schema: Schema.Top): Readonly<Record<string, unknown>> => {
  const { schema: own, definitions } = Schema.toJsonSchemaDocument(schema)
  return Object.keys(definitions).length === 0 ? own : { ...own, $defs: definitions }
}
