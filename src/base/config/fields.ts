/**
 * Defines the Schemas from which the Schemas of all configs are made: numbers with bounds, and optional keys with
 * defaults.
 */
import { Effect } from "effect"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Schema from "effect/Schema"
import {
  allowed,
  type ResourceBound,
  boundKey,
  type BoundName,
  bounds,
  ownBound,
  realBounds,
  type RealBoundName,
} from "./bounds.ts"

/**
 * Makes the annotation in which a Schema names the row of its number. A test of all configs looks for these
 * annotations.
 */
const of = (name: BoundName | RealBoundName) => ({ [boundKey]: name })

/**
 * Makes the Schema of a whole number with the bounds of a row. Numbers that only take time are not limited further,
 * since every `Schema.Int` is limited to exact whole numbers.
 */
export const bounded = (name: BoundName) => {
  const bound: ResourceBound = bounds[name]
  const { least, most } = bound
  if (most < Number.MAX_SAFE_INTEGER)
    return Schema.Int.check(
      Schema.isBetween({ minimum: least, maximum: most }, { expected: allowed(bound), ...of(name) }),
    )
  if (least === 1) return Schema.Int.check(Schema.isGreaterThan(0, of(name)))
  if (least === -most) return Schema.Int.annotate(of(name))
  return Schema.Int.check(Schema.isGreaterThanOrEqualTo(least, of(name)))
}

/** Makes the Schema of a number above 0 with the largest value of a row. */
export const positiveBelow = (name: Exclude<RealBoundName, "number">) =>
  positive.check(Schema.isLessThanOrEqualTo(realBounds[name].most, upTo(name)))

/** Makes the Schema of a number of at least 0 with the largest value of a row. */
export const nonNegativeBelow = (name: Exclude<RealBoundName, "number">) =>
  nonNegative.check(Schema.isLessThanOrEqualTo(realBounds[name].most, upTo(name)))

const upTo = (name: RealBoundName) => {
  const { most, because } = realBounds[name]
  return { expected: `at most ${most} (${because})`, ...of(name) }
}

/** The Schema of a number that is only used in computations, such as a coefficient. */
export const real = Schema.Finite.annotate(of("number"))
/** The Schema of a limit on a number, which can be infinite. */
export const limit = Schema.Number.check(
  Schema.makeFilter((value) => !Number.isNaN(value), { expected: "a number", ...of("number") }),
)
export const positive = Schema.Finite.check(Schema.isGreaterThan(0, of("number")))
export const nonNegative = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0, of("number")))
/** The Schema of a discount factor; it is negative if the next observation is the opponent's. */
export const discount = Schema.Finite.check(Schema.isBetween({ minimum: -1, maximum: 1 }, of("number")))
export const fraction = Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }, of("number")))

/** The Schema of a positive whole number in a message between programs or in a file. Configs use `bounded` instead. */
export const positiveInt = Schema.Int.check(Schema.isGreaterThan(0))
export const naturalInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Makes the Schema of a whole number with bounds of its own, such as an hour of a day. */
export const intBetween = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }, { [boundKey]: ownBound }))

/** The Schema of the number of rows or columns of a weight matrix. */
export const units = bounded("units")
/** The Schema of the numbers of units in the layers of a network, from the input to the output. */
export const layers = Schema.Array(units).check(Schema.isMaxLength(100))
/** The Schema of the number of threads of a process. */
export const threads = bounded("threads")
/** The Schema of the number of simultaneous requests. It can exceed `threads`, because requests mostly wait. */
export const atOnce = bounded("atOnce")
/** The Schema of a run's name, which is a part of the run's path. */
export const runName = Schema.NonEmptyString.check(Schema.isMaxLength(200))

/**
 * Makes the Schema of a setting that is a function. A config shows it as `{ code: NAME }`. If it is the last member of
 * a union, it also makes the message for a value that fits no member, so `expected` must then name everything that the
 * union accepts.
 */
export const code = <F extends (...inputs: never) => unknown>(expected = "a function") =>
  Schema.declare((value: unknown): value is F => typeof value === "function", {
    title: codeTitle,
    expected,
  })

/** The title, in a JSON Schema, of a value that only code can make. */
export const codeTitle = "code"

// Settings are declared twice: in a Schema, and in an interface with comments (`PpoOptions`). A mapped type of the
// fields, `{ readonly [K in keyof F]?: F[K]["Encoded"] }`, would need only the Schema, with the comments on its fields.
// But the language server of TypeScript 7.0, our compiler, shows no comments on members of mapped types (TypeScript 5.9
// did), so completion and hover would show nothing. Instead, `test/house/options.test.ts` checks that both declarations
// agree.

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
