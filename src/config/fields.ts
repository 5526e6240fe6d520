import { Effect, Schema, SchemaGetter } from "effect"

/** Schemas of the numbers and other values of configs. */
export const positive = Schema.Finite.check(Schema.isGreaterThan(0))
export const nonNegative = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
export const fraction = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
export const positiveInt = Schema.Int.check(Schema.isGreaterThan(0))
export const naturalInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** A whole number with an upper limit, above which it would only exhaust memory or threads. */
export const intBetween = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

/** The number of rows or columns of a weight matrix. */
export const units = intBetween(1, 65_536)
/** The sizes of layers, in order. */
export const layers = Schema.Array(units).check(Schema.isMaxLength(100))
/** The number of threads of a process. */
export const threads = intBetween(0, 1024)
/** The number of simultaneous requests, each of which mostly waits for a server. */
export const atOnce = intBetween(1, 10_000)
/** The name is part of a path. */
export const runName = Schema.NonEmptyString.check(Schema.isMaxLength(200))

/** Makes a key optional, with a default. */
export const withDefault = <S extends Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** Makes a key optional, with a default that null stands for, too, as in files of other programs. */
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
