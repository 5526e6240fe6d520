import { Schema } from "effect"

/** Converts an Effect Schema to a JSON Schema. The definitions that it refers to are added under `$defs`. */
export const jsonSchema = (schema: Schema.Top): Readonly<Record<string, unknown>> => {
  const { schema: own, definitions } = Schema.toJsonSchemaDocument(schema)
  return Object.keys(definitions).length === 0 ? own : { ...own, $defs: definitions }
}
