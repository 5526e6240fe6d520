/**
 * Schemas for JSON that others may have written, as a text. `Schema.fromJsonString` takes lists inside each other without end,
 * and functions that walk over such a value would overflow the stack.
 */
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
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

/**
 * Makes the Schema of a JSON text whose value has the given Schema.
 *
 * @example
 * ```ts
 * const decodeTrial = Schema.decodeUnknownEffect(jsonText(Schema.Struct({ number: Schema.Int })))
 * yield* decodeTrial('{ "number": 3 }') // { number: 3 }
 * ```
 */
export const jsonText = <S extends Schema.Constraint>(schema: S) => Json.pipe(Schema.decodeTo(schema))
