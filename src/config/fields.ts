/** Defines Schemas of numbers and of optional keys with defaults, of which the Schemas of all configs are made. */
import { Effect, Schema, SchemaGetter } from "effect"

export const positive = Schema.Finite.check(Schema.isGreaterThan(0))
export const nonNegative = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
export const fraction = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
export const positiveInt = Schema.Int.check(Schema.isGreaterThan(0))
export const naturalInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Makes the Schema of a whole number. A number above the maximum would only exhaust memory or threads. */
export const intBetween = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** The Schema of the number of rows or columns of a weight matrix. */
export const units = intBetween(1, 65_536)
/** The Schema of the numbers of units in the layers of a network, from the input to the output. */
export const layers = Schema.Array(units).check(Schema.isMaxLength(100))
/** The Schema of the number of threads of a process. */
export const threads = intBetween(0, 1024)
/** The Schema of the number of simultaneous requests. It can exceed `threads`, because requests mostly wait. */
export const atOnce = intBetween(1, 10_000)
/** The Schema of a run's name, which is a part of the run's path. */
export const runName = Schema.NonEmptyString.check(Schema.isMaxLength(200))

/** Makes the Schema of a setting that is a function. It stands in a config as `{ code: NAME }`. */
export const code = <F extends (...inputs: never) => unknown>() =>
  Schema.declare((value: unknown): value is F => typeof value === "function", {
    title: codeTitle,
    expected: "a function",
  })

/** The title in a JSON Schema of what only code can make. */
export const codeTitle = "code"

/** Makes a key optional; a config without it decodes to the default `value`. */
export const withDefault = <S extends Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/**
 * Makes a key optional, with a default. Null also means the default: other programs write null for a key without value.
 */
export const orDefault = <S extends Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) => {
  const fallback: S["Type"] = Schema.decodeSync(schema)(value)
  return withDefault(
    Schema.NullOr(schema).pipe(
      Schema.decodeTo(Schema.toType(schema), {
        decode: SchemaGetter.transform((value: S["Type"] | null): S["Type"] => value ?? fallback),
        encode: SchemaGetter.transform((value: S["Type"]): S["Type"] | null => value),
      }),
    ),
    value,
  )
}
