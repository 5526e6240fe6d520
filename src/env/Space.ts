/**
 * Defines the spaces of observations and actions: a box of real numbers, or n choices. The functions make spaces, test
 * whether a value is in a space, and draw random values from a space.
 *
 * @example
 * ```ts
 * import { Space } from "effect-rl"
 *
 * const angle = Space.box(-Math.PI, Math.PI)
 * const button = Space.discrete(3)
 * Space.contains(button, 2) // true
 * Space.sizeOf(Space.box(0, 1, [84, 84])) // 7056
 * ```
 */
import { log } from "../rng/Elementary.ts"
import type { Stream } from "../rng/Rng.ts"
import { EnvError } from "./EnvError.ts"

export type Space = Box | Discrete

/** Real numbers within bounds, with one pair of bounds per element. */
export interface Box {
  readonly _tag: "Box"
  readonly shape: ReadonlyArray<number>
  readonly low: ReadonlyArray<number>
  readonly high: ReadonlyArray<number>
}

/** A choice among n actions, which are the integers 0 … n − 1. */
export interface Discrete {
  readonly _tag: "Discrete"
  readonly n: number
}

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
  const length = typeof low === "number" ? (typeof high === "number" ? 1 : high.length) : low.length
  const dimensions = shape ?? [length]
  if (!dimensions.every((size) => Number.isInteger(size) && size > 0)) {
    throw invalid(`box: shape [${dimensions.join(", ")}] must be positive whole numbers`)
  }
  const size = dimensions.reduce((product, dimension) => product * dimension, 1)
  const spread = (name: string, bound: number | ReadonlyArray<number>): ReadonlyArray<number> => {
    const bounds = typeof bound === "number" ? Array.from({ length: size }, () => bound) : [...bound]
    if (bounds.length !== size) {
      throw invalid(`box: ${name} has ${bounds.length} elements, shape [${dimensions.join(", ")}] has ${size}`)
    }
    return bounds
  }
  const space: Box = { _tag: "Box", shape: [...dimensions], low: spread("low", low), high: spread("high", high) }
  const wrong = space.low.findIndex((bound, index) => !(bound <= space.high[index]))
  if (wrong >= 0) throw invalid(`box: low ${space.low[wrong]} is above high ${space.high[wrong]} at element ${wrong}`)
  return space
}

/** Makes a space of `n` choices, numbered from 0. */
export const discrete = (n: number): Discrete => {
  if (!Number.isInteger(n) || n < 1) throw invalid(`discrete: expected a whole number from 1, found ${n}`)
  return { _tag: "Discrete", n }
}

/** Returns how many numbers a value in the space has; 1 for a discrete space. */
export const sizeOf = (space: Space): number => (space._tag === "Discrete" ? 1 : space.low.length)

/** Tells whether a value is in the space. In a box, each number must be finite and within its bounds. */
export const contains = (space: Space, value: unknown): boolean => {
  if (space._tag === "Discrete") return Number.isInteger(value) && Number(value) >= 0 && Number(value) < space.n
  if (!isArrayLike(value) || value.length !== space.low.length) return false
  for (let index = 0; index < space.low.length; index++) {
    const element: unknown = value[index]
    if (typeof element !== "number" || !Number.isFinite(element)) return false
    // A bound such as 0.07 is not a float32: a value rounded to float32 may be slightly outside.
    if (element < Math.min(space.low[index], Math.fround(space.low[index]))) return false
    if (element > Math.max(space.high[index], Math.fround(space.high[index]))) return false
  }
  return true
}

const isArrayLike = (value: unknown): value is ArrayLike<unknown> =>
  Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))

/** Writes a random value in the space to `into`, from index `offset` on. `sampleElement` draws each number of a box. */
export const sampleInto = (
  space: Space,
  random: Stream,
  into: Float32Array | Int32Array | Array<number>,
  offset = 0,
): void => {
  if (space._tag === "Discrete") {
    into[offset] = random.integer(space.n)
    return
  }
  for (let index = 0; index < space.low.length; index++) {
    into[offset + index] = sampleElement(space.low[index], space.high[index], random)
  }
}

/** Draws a number: uniform between two finite bounds, exponential from one finite bound, standard normal without. */
const sampleElement = (low: number, high: number, random: Stream): number => {
  const below = low > Number.NEGATIVE_INFINITY
  const above = high < Number.POSITIVE_INFINITY
  if (below && above) return random.between(low, high)
  if (!below && !above) return random.normal()
  const distance = -log(1 - random.uniformDouble())
  return below ? low + distance : high - distance
}

/** Returns a random value in the space: a number for a discrete space, an array for a box. */
export function sample(space: Discrete, random: Stream): number
export function sample(space: Box, random: Stream): ReadonlyArray<number>
export function sample(space: Space, random: Stream): number | ReadonlyArray<number>
export function sample(space: Space, random: Stream): number | ReadonlyArray<number> {
  const member = Array.from({ length: sizeOf(space) }, () => 0)
  sampleInto(space, random, member)
  return space._tag === "Discrete" ? member[0] : member
}

/** Describes a space in a few words, for messages: `Discrete(2)`, `Box([4])`. */
export const display = (space: Space): string =>
  space._tag === "Discrete" ? `Discrete(${space.n})` : `Box([${space.shape.join(", ")}])`

const invalid = (message: string): EnvError => new EnvError({ env: "Space", message })
