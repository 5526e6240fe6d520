import { Effect, Schema, SchemaGetter } from "effect"

/** The kinds of number that configs are made of. */
export const positive = Schema.Finite.check(Schema.isGreaterThan(0))
export const nonNegative = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
export const fraction = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
export const positiveInt = Schema.Int.check(Schema.isGreaterThan(0))
export const naturalInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** A whole number with an end: what more of would only take all memory or all threads. */
export const intBetween = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** Rows or columns of a weight matrix. */
export const units = intBetween(1, 65_536)
/** The sizes of layers, one after another. */
export const layers = Schema.Array(units).check(Schema.isMaxLength(100))
/** Threads of one process. */
export const threads = intBetween(0, 1024)
/** How many requests run at the same time; each of them mostly waits for a server. */
export const atOnce = intBetween(1, 10_000)
/** It is a part of a path. */
export const runName = Schema.NonEmptyString.check(Schema.isMaxLength(200))

/** A key that may be left out. */
export const withDefault = <S extends Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** The same where null means the default, too, as in files of other programs. */
export const orDefault = <S extends Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) => {
  const fallback: S["Type"] = Schema.decodeSync(schema)(value)
  return withDefault(
    Schema.NullOr(schema).pipe(
      Schema.decodeTo(Schema.toType(schema), {
        decode: SchemaGetter.transform((given: S["Type"] | null): S["Type"] => given ?? fallback),
        encode: SchemaGetter.transform((one: S["Type"]): S["Type"] | null => one),
      }),
    ),
    value,
  )
}
