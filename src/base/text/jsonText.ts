/**
 * Makes Schemas for JSON texts that others may have written. Unlike `Schema.fromJsonString`, they refuse lists that are
 * nested too deep: functions that walk over such a value would overflow the stack.
 */
import { Effect } from "effect"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Schema from "effect/Schema"
import { jsonValue } from "./text.ts"

const Json = Schema.String.pipe(
  Schema.decodeTo(Schema.Unknown, {
    decode: SchemaGetter.transformEffect((text: string, options) =>
      Effect.try({
        try: () => jsonValue(text),
        catch: (error) =>
          new SchemaIssue.InvalidValue(
            { expected: error instanceof RangeError ? "JSON that is not nested too deep" : "a valid JSON string" },
            text,
            options,
          ),
      }),
    ),
    encode: SchemaGetter.stringifyJson(),
  }),
)

/** Makes the Schema of a JSON text whose value must fit `schema`. */
export const jsonText = <S extends Schema.Constraint>(schema: S) => Json.pipe(Schema.decodeTo(schema))
