import { Schema } from "effect"

/** Converts a Schema of Effect to a JSON Schema. Definitions that it refers to are added under `$defs`. */
export const jsonSchema = (schema: Schema.Top): Readonly<Record<string, unknown>> => {
  const { schema: own, definitions } = Schema.toJsonSchemaDocument(schema)
  return Object.keys(definitions).length === 0 ? own : { ...own, $defs: definitions }
}
