/**
 * Defines the Schema of the observations that an exported policy reads; the JSON Schema on its card is made from it.
 */
import { Schema } from "effect"
import { type Space, sizeOf } from "../../env/Space.ts"

/** The largest number that rounds to a finite float32. */
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

/** Returns the Schema of observations of any space: as all numbers of a flat row, or in the form of the space. */
export const observationSchemaOf = (space: Space): Schema.Codec<unknown> => {
  const flat = listOf(number, sizeOf(space))
  return space._tag === "Box" ? observationSchema(space.shape) : Schema.Union([flat, valueSchema(space)])
}

const option = (count: number): Schema.Codec<unknown> =>
  Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: count - 1 }))

const valueSchema = (space: Space): Schema.Codec<unknown> => {
  switch (space._tag) {
    case "Box":
      return observationSchema(space.shape)
    case "Discrete":
      return option(space.n)
    case "MultiDiscrete":
      return Schema.Tuple(space.sizes.map(option))
    case "MultiBinary":
      return listOf(Schema.Union([option(2), Schema.Boolean]), space.n)
    case "Dict":
      return Schema.Struct(
        Object.fromEntries(Object.entries(space.parts).map(([name, part]) => [name, valueSchema(part)])),
      )
    case "Tuple":
      return Schema.Tuple(space.parts.map(valueSchema))
  }
}
