import { Schema } from "effect"

/** Returns the JSON Schema of an Effect Schema, including the definitions to which it refers. */
export const jsonSchema = (schema: Schema.Top): Readonly<Record<string, unknown>> => {
  const { schema: own, definitions } = Schema.toJsonSchemaDocument(schema)
  return Object.keys(definitions).length === 0 ? own : { ...own, $defs: definitions }
}
