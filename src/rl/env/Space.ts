/**
 * Defines the spaces of observations and actions: real numbers, choices, switches, and combinations of them. The
 * functions make spaces, test whether a value is in a space, draw random values from a space, and convert values to
 * flat rows of numbers and back.
 *
 * @example
 * ```ts
 * import { Space } from "effect-rl"
 *
 * const angle = Space.box(-Math.PI, Math.PI)
 * const button = Space.discrete(3)
 * Space.contains(button, 2) // true
 * Space.sizeOf(Space.box(0, 1, [84, 84])) // 7056
 *
 * const robot = Space.dict({ camera: Space.box(0, 1, [3, 32, 32]), gear: Space.discrete(5) })
 * Space.sizeOf(robot) // 3073
 * ```
 */
import * as Schema from "effect/Schema"
import { bounds } from "../../base/config/bounds.ts"
import { bounded } from "../../base/config/fields.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import { EnvError } from "../../base/EnvError.ts"
import { sampleInto, unflattened } from "./internal/values.ts"

export { contains, flatten, type LeafPart, partsOf, problemOf, sampleInto, unflatten } from "./internal/values.ts"

/** All spaces; an observation can be in any of them. */
export type Space = ActionSpace | Dict | Tuple

/** The spaces without parts. Every action space is one of them. */
export type ActionSpace = Box | Discrete | MultiDiscrete | MultiBinary

// No space has a property `~value` at run time: it is the type of the values in the space, for `ValueOf`.

/** Real numbers within bounds, with one pair of bounds per element. */
export interface Box {
  readonly _tag: "Box"
  readonly "~value"?: ArrayLike<number>
  readonly shape: ReadonlyArray<number>
  readonly low: ReadonlyArray<number>
  readonly high: ReadonlyArray<number>
}

/** A choice among n options, which are the integers 0 … n − 1. */
export interface Discrete {
  readonly _tag: "Discrete"
  readonly "~value"?: number
  readonly n: number
}

/** Several choices at once: a list of integers, where element i is from 0 to `sizes[i]` − 1. */
export interface MultiDiscrete {
  readonly _tag: "MultiDiscrete"
  readonly "~value"?: ArrayLike<number>
  readonly sizes: ReadonlyArray<number>
}

/** n switches: a list of n numbers, each 0 or 1 (or `false` or `true`). */
export interface MultiBinary {
  readonly _tag: "MultiBinary"
  readonly "~value"?: ArrayLike<number | boolean>
  readonly n: number
}

/** The spaces of the parts of a `Dict`, by name. */
export interface DictParts {
  readonly [name: string]: Space
}

/** Named parts, each in a space of its own: an object with a value for each part. The parts have an order. */
export interface Dict {
  readonly _tag: "Dict"
  readonly "~value"?: { readonly [name: string]: SpaceValue }
  readonly parts: DictParts
}

/** A `Dict` with these parts. */
export interface DictOf<P extends DictParts> extends Dict {
  readonly "~value"?: { readonly [Name in keyof P]: ValueOf<P[Name]> }
  readonly parts: P
}

/** Parts in a fixed order, each in a space of its own: a list with a value for each part. */
export interface Tuple {
  readonly _tag: "Tuple"
  readonly "~value"?: ReadonlyArray<SpaceValue>
  readonly parts: ReadonlyArray<Space>
}

/** A `Tuple` with these parts. */
export interface TupleOf<P extends ReadonlyArray<Space>> extends Tuple {
  readonly "~value"?: { readonly [Index in keyof P]: ValueOf<P[Index]> }
  readonly parts: P
}

/**
 * The space of the rows of a batch whose env has action masks: an observation, then the mask, which has a number for
 * each choice, 1 if it is allowed and 0 if it is not. Only the heads of networks read the mask.
 */
export interface Masked {
  readonly _tag: "Masked"
  readonly space: Space
  /** The number of choices in each element of an action; a discrete action has one element. */
  readonly choices: ReadonlyArray<number>
}

/** The spaces of the rows that a batch gives: observations, or observations with action masks. */
export type RowSpace = Space | Masked

/**
 * The type of a value in the space `S`: a number if it is discrete, several numbers in a box, an object with the parts
 * of a `Dict`, and so on.
 */
export type ValueOf<S extends { readonly "~value"?: unknown }> = NonNullable<S["~value"]>

/** The type of any value in any space. */
export type SpaceValue =
  | number
  | ArrayLike<number | boolean>
  | ReadonlyArray<SpaceValue>
  | { readonly [name: string]: SpaceValue }

/**
 * Makes a space of real numbers from `low` to `high`. Each bound is one number for all elements or one per element, and
 * may be infinite. Default shape: a vector with the length of the bounds.
 *
 * @example
 * ```ts
 * box(-1, 1, [2, 3]).low // six times -1
 * box([-1.2, -0.07], [0.6, 0.07]).shape // [2]
 * ```
 */
export const box = (
  low: number | ReadonlyArray<number>,
  high: number | ReadonlyArray<number>,
  shape?: ReadonlyArray<number>,
): Box => {
  const bound = typeof low === "number" ? high : low
  const dimensions = shape ?? [typeof bound === "number" ? 1 : bound.length]
  if (!dimensions.every((size) => Number.isInteger(size) && size > 0)) {
    throw invalid(`box: shape [${dimensions.join(", ")}] must be positive whole numbers`)
  }
  const size = product(dimensions)
  checkSize(`box: shape [${dimensions.join(", ")}]`, size)
  const spread = (name: string, bound: number | ReadonlyArray<number>): ReadonlyArray<number> => {
    const bounds = typeof bound === "number" ? new Array<number>(size).fill(bound) : [...bound]
    if (bounds.length !== size) {
      throw invalid(`box: ${name} has ${bounds.length} elements, shape [${dimensions.join(", ")}] has ${size}`)
    }
    return bounds
  }
  const space: Box = { _tag: "Box", shape: [...dimensions], low: spread("low", low), high: spread("high", high) }
  // Bounds that all elements share are compared once: a picture has thousands of elements.
  const compared = typeof low === "number" && typeof high === "number" ? 1 : size
  const wrong = space.low.slice(0, compared).findIndex((bound, index) => !(bound <= space.high[index]))
  if (wrong >= 0) throw invalid(`box: low ${space.low[wrong]} is above high ${space.high[wrong]} at element ${wrong}`)
  return space
}

/** Makes a space of `n` choices, numbered from 0. */
export const discrete = (n: number): Discrete => {
  checkSize("discrete", n)
  return { _tag: "Discrete", n }
}

/**
 * Makes a space of several choices at once; element i has `sizes[i]` choices.
 *
 * @example
 * ```ts
 * Space.contains(multiDiscrete([3, 2]), [2, 0]) // true
 * ```
 */
export const multiDiscrete = (sizes: ReadonlyArray<number>): MultiDiscrete => {
  const isValid = sizes.length > 0 && sizes.every((size) => Number.isInteger(size) && size >= 1)
  if (!isValid) throw invalid(`multiDiscrete: expected whole numbers from 1, found [${sizes.join(", ")}]`)
  checkSize("multiDiscrete: all choices together", total(sizes))
  return { _tag: "MultiDiscrete", sizes: [...sizes] }
}

/** Makes a space of `n` switches, each 0 or 1. */
export const multiBinary = (n: number): MultiBinary => {
  checkSize("multiBinary", n)
  return { _tag: "MultiBinary", n }
}

/** Makes a space of named parts, which keep the order of `parts`. */
export const dict = <P extends DictParts>(parts: P): DictOf<P> => {
  const names = Object.keys(parts)
  if (names.length === 0) throw invalid("dict: expected at least one part, found none")
  // JavaScript moves numeric keys to the front of an object, so the parts would not keep their order.
  const numeric = names.find((name) => /^\d+$/.test(name))
  if (numeric !== undefined) throw invalid(`dict: a part is called "${numeric}"; expected names that are not numbers`)
  return { _tag: "Dict", parts: { ...parts } }
}

/** Makes a space of parts that have an order but no names. */
export const tuple = <const P extends ReadonlyArray<Space>>(...parts: P): TupleOf<P> => {
  if (parts.length === 0) throw invalid("tuple: expected at least one part, found none")
  return { _tag: "Tuple", parts }
}

/** Makes the space of observations followed by masks of the actions in `actionSpace`, which must be choices. */
export const masked = (space: Space, actionSpace: ActionSpace): Masked => {
  const choices = choicesOf(actionSpace)
  if (choices === undefined) throw invalid(`masked: only choices can be masked, found actions ${display(actionSpace)}`)
  return { _tag: "Masked", space, choices }
}

/** Returns the number of choices in each element of an action; undefined if actions cannot be masked. */
export const choicesOf = (space: ActionSpace): ReadonlyArray<number> | undefined =>
  space._tag === "Discrete" ? [space.n] : space._tag === "MultiDiscrete" ? space.sizes : undefined

/** Returns the number of options that each element of an action has, 2 for a switch; undefined for real numbers. */
export const optionsOf = (space: ActionSpace): ReadonlyArray<number> | undefined =>
  space._tag === "MultiBinary" ? Array.from({ length: space.n }, () => 2) : choicesOf(space)

/** Tells whether actions in the space are whole numbers, which batches hold in an Int32Array. */
export const isWhole = (space: ActionSpace): boolean => space._tag !== "Box"

/** Returns the space of the observations in a row, without the mask. */
export const unmasked = (space: RowSpace): Space => (space._tag === "Masked" ? space.space : space)

/** Returns how many numbers the action mask at the end of a row has; 0 if there is none. */
export const maskSizeOf = (space: RowSpace): number => (space._tag === "Masked" ? total(space.choices) : 0)

const total = (sizes: ReadonlyArray<number>): number => sizes.reduce((sum, size) => sum + size, 0)
const product = (sizes: ReadonlyArray<number>): number => sizes.reduce((result, size) => result * size, 1)

/** Returns how many numbers a flat value in the space has; 1 for a discrete space. */
export const sizeOf = (space: RowSpace): number => {
  switch (space._tag) {
    case "Discrete":
      return 1
    case "Box":
      return space.low.length
    case "MultiDiscrete":
      return space.sizes.length
    case "MultiBinary":
      return space.n
    case "Dict":
      return total(Object.values(space.parts).map(sizeOf))
    case "Tuple":
      return total(space.parts.map(sizeOf))
    case "Masked":
      return sizeOf(space.space) + maskSizeOf(space)
  }
}

/**
 * Returns the part of a space that a network depends on, as plain data: the shape of a box without its bounds, and any
 * other space as a whole.
 */
export const shapeOf = (space: RowSpace): unknown => {
  switch (space._tag) {
    case "Box":
      return space.shape
    case "Dict":
      return Object.entries(space.parts).map(([name, part]) => [name, shapeOf(part)])
    case "Tuple":
      return space.parts.map((part) => ["", shapeOf(part)])
    case "Masked":
      return { observation: shapeOf(space.space), mask: space.choices }
    default:
      return { ...space }
  }
}

/** Returns a random value in the space: a number if it is discrete, an array for a box, an object for a `Dict`. */
export function sample(space: Discrete, random: Stream): number
export function sample(space: Box | MultiDiscrete | MultiBinary, random: Stream): ReadonlyArray<number>
export function sample(space: ActionSpace, random: Stream): number | ReadonlyArray<number>
export function sample<S extends Space>(space: S, random: Stream): ValueOf<S>
export function sample(space: Space, random: Stream): unknown {
  const row = Array.from({ length: sizeOf(space) }, () => 0)
  sampleInto(space, random, row)
  return unflattened(space, row, 0)
}

/** Describes a space in a few words, for messages: `Discrete(2)`, `Box([4])`, `Dict(map: Box([2, 8, 8]), …)`. */
export const display = (space: RowSpace): string => {
  switch (space._tag) {
    case "Discrete":
      return `Discrete(${space.n})`
    case "Box":
      return `Box([${space.shape.join(", ")}])`
    case "MultiDiscrete":
      return `MultiDiscrete([${space.sizes.join(", ")}])`
    case "MultiBinary":
      return `MultiBinary(${space.n})`
    case "Dict":
      return `Dict(${Object.entries(space.parts)
        .map(([name, part]) => `${name}: ${display(part)}`)
        .join(", ")})`
    case "Tuple":
      return `Tuple(${space.parts.map(display).join(", ")})`
    case "Masked":
      return `${display(space.space)} with a mask of ${space.choices.join(" + ")} choices`
  }
}

const invalid = (message: string): EnvError => new EnvError({ env: "Space", message })

/** Throws if a space has no numbers or choices, or more than an array can have. */
const checkSize = (name: string, size: number): void => {
  const { most, because } = bounds.axis
  if (size > most) throw invalid(`${name}: expected at most ${most} (${because}), found ${size}`)
  if (!Number.isInteger(size) || size < 1) throw invalid(`${name}: expected a whole number from 1, found ${size}`)
}

// --- The form of spaces in JSON files ---

const Count = bounded("axis")

const isWellShaped = ({ shape, low, high }: Omit<Box, "_tag">): boolean => {
  const size = product(shape)
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
 * The Schema of spaces in JSON, in which infinite bounds are the texts `Infinity` and `-Infinity`. It refuses a space
 * with more numbers than an array can have.
 *
 * @example
 * ```ts
 * Schema.encodeSync(Space.Json)(Space.discrete(2)) // { _tag: "Discrete", n: 2 }
 * ```
 */
export const Json = Schema.toCodecJson(
  Any.check(
    Schema.makeFilter((space) => sizeOf(space) <= bounds.axis.most, {
      expected: `a space with at most ${bounds.axis.most} numbers`,
    }),
  ),
)
