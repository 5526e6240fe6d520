/** Defines the form of spaces in JSON files. */
import { Schema } from "effect"
import type { Box, Space } from "../Space.ts"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const isWellShaped = ({ shape, low, high }: Omit<Box, "_tag">): boolean => {
  const size = shape.reduce((product, length) => product * length, 1)
  return low.length === size && high.length === size && low.every((bound, index) => bound <= high[index])
}

const Leaves = [
  Schema.TaggedStruct("Box", {
    shape: Schema.Array(Count),
    low: Schema.Array(Schema.Number),
    high: Schema.Array(Schema.Number),
  }).check(Schema.makeFilter(isWellShaped, { expected: "a lower and a higher bound for each element of the shape" })),
  Schema.TaggedStruct("Discrete", { n: Count }),
  Schema.TaggedStruct("MultiDiscrete", { sizes: Schema.Array(Count) }),
  Schema.TaggedStruct("MultiBinary", { n: Count }),
] as const

const Any: Schema.Codec<Space> = Schema.Union([
  ...Leaves,
  Schema.TaggedStruct("Dict", {
    parts: Schema.Record(
      Schema.String,
      Schema.suspend(() => Any),
    ),
  }),
  Schema.TaggedStruct("Tuple", { parts: Schema.Array(Schema.suspend(() => Any)) }),
])

/**
 * The Schema of spaces in JSON, in which infinite bounds are the texts `Infinity` and `-Infinity`.
 *
 * @example
 * ```ts
 * Schema.encodeSync(Space.Json)(Space.discrete(2)) // { _tag: "Discrete", n: 2 }
 * ```
 */
export const Json = Schema.toCodecJson(Any)
