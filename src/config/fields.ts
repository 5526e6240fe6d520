import { Effect, Schema } from "effect"

/** The kinds of number that configs are made of. */
export const positive = Schema.Finite.check(Schema.isGreaterThan(0))
export const nonNegative = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
export const fraction = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))
export const positiveInt = Schema.Int.check(Schema.isGreaterThan(0))
export const naturalInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** A key that may be left out. */
export const withDefault = <S extends Schema.Codec<unknown, unknown>>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))
