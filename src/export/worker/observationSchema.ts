/** Defines what an exported policy reads as an observation: a Schema, from which the JSON Schema on its card is made. */
import { Schema } from "effect"

/** The largest number that float32 can hold, after rounding. */
const largest = 3.4028235677973362e38

const number = Schema.Finite.check(Schema.isBetween({ minimum: -largest, maximum: largest }))

const listOf = (item: Schema.Codec<unknown>, length: number): Schema.Codec<unknown> =>
  Schema.Array(item).check(Schema.isMinLength(length), Schema.isMaxLength(length))

/**
 * Returns the Schema of observations of a shape: as many numbers in one array, or arrays nested as the shape. `policy.js`
 * checks the same by hand, because it has no dependency; a test compares both.
 *
 * @example
 * ```ts
 * Schema.is(observationSchema([2, 2]))([[0, 1], [2, 3]]) // true; also [0, 1, 2, 3]
 * ```
 */
export const observationSchema = (shape: ReadonlyArray<number>): Schema.Codec<unknown> => {
  const flat = listOf(
    number,
    shape.reduce((size, length) => size * length, 1),
  )
  return shape.length < 2 ? flat : Schema.Union([flat, shape.reduceRight(listOf, number)])
}
