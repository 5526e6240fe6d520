/** What the bodies of this folder share: directions, colours and joints of their models, noise, costs, and their options. */
import * as Schema from "effect/Schema"
import { real, limit } from "../../../../base/config/fields.ts"
import type { Stream } from "../../../../base/rng/Rng.ts"
import { box, type Box } from "../../Space.ts"
import type { MujocoStep, MujocoWorld } from "../Mujoco.ts"
import { type Attributes, loose, plane, type Vector } from "../mjcf.ts"

export const along: Vector = [1, 0, 0]
export const across: Vector = [0, 1, 0]
export const up: Vector = [0, 0, 1]
export const here: Vector = [0, 0, 0]

/** The joints of a body that moves in the plane of x and z; at the start, `height` counts as its position along z. */
export const planar = (height: number): ReadonlyArray<Attributes> => [
  loose("slide", "rootx", along, { pos: [0, 0, -height] }),
  loose("slide", "rootz", up, { pos: [0, 0, -height], ref: height }),
  loose("hinge", "rooty", across),
]

export const skin: Attributes = { rgba: [0.8, 0.6, 0.4, 1] }

export const floor = (more: Attributes = {}): Attributes =>
  plane([40, 40, 40], { name: "floor", conaffinity: 1, condim: 3, rgba: [0.8, 0.9, 0.8, 1], ...more })

/** The space of observations with `size` numbers, which have no bounds. */
export const unbounded = (size: number): Box => box(-Infinity, Infinity, [size])

/** How far the numbers of a start differ from the model's own start: evenly within a range, or as a normal distribution. */
interface StartNoise {
  readonly scale: number
  readonly velocities: "uniform" | "normal"
}

/** Returns the start of an episode: the model's own positions, without movement, both with noise. */
export const noisyStart =
  ({ scale, velocities }: StartNoise) =>
  ({ data: { qpos, qvel } }: MujocoWorld, random: Stream): void => {
    for (let at = 0; at < qpos.length; at++) qpos[at] += random.between(-scale, scale)
    for (let at = 0; at < qvel.length; at++) {
      qvel[at] += velocities === "uniform" ? random.between(-scale, scale) : scale * random.normal()
    }
  }

export const sumOfSquares = (values: ArrayLike<number>): number => {
  let sum = 0
  for (let at = 0; at < values.length; at++) sum += values[at] * values[at]
  return sum
}

/**
 * Returns a weighted sum of an action's squares in single precision, as Gymnasium computes it from an action of float32. Eight
 * numbers or more are summed in eight columns.
 */
export const controlCost = (weight: number, action: Float32Array): number => {
  const { fround } = Math
  const columns = new Float32Array(8)
  const whole = action.length < 8 ? 0 : action.length - (action.length % 8)
  for (let at = 0; at < whole; at++) columns[at % 8] += fround(action[at] * action[at])
  const [a, b, c, d, e, f, g, h] = columns
  let sum = fround(fround(fround(a + b) + fround(c + d)) + fround(fround(e + f) + fround(g + h)))
  for (let at = whole; at < action.length; at++) sum = fround(sum + fround(action[at] * action[at]))
  return fround(fround(weight) * sum)
}

export const clipped = (values: Float64Array, low: number, high: number): Float64Array =>
  values.map((value) => Math.min(Math.max(value, low), high))

/** Joins arrays to one observation. */
export const joined = (...parts: ReadonlyArray<ArrayLike<number>>): Float64Array => {
  const all = new Float64Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}

/** Returns the way between two bodies: from the one with the index `to` to the one with the index `from`. */
export const differenceOf = ({ data: { xpos } }: MujocoWorld, from: number, to: number): Float64Array =>
  Float64Array.from([0, 1, 2], (axis) => xpos[3 * from + axis] - xpos[3 * to + axis])

export const lengthOf = (vector: ArrayLike<number>): number => Math.sqrt(sumOfSquares(vector))

/** Returns by how much the first number that was measured changed in a second. */
export const speed = ({ before, after, seconds }: MujocoStep): number => (after[0] - before[0]) / seconds

/** Returns whether a number is between two others. */
export const isBetween = (value: number, [low, high]: Range): boolean => low < value && value < high

export type Range = readonly [low: number, high: number]

/** An option that is a number, such as the weight of a term of the reward. */
export const weight = Schema.optionalKey(real)
/** An option that is a range of numbers; infinite ends are `.inf` in YAML. */
export const range = Schema.optionalKey(Schema.Tuple([limit, limit]))
export const flag = Schema.optionalKey(Schema.Boolean)
