/**
 * Describes the search space of a study, which is the set of settings that it varies: numbers in a range, and choices. It
 * converts between a setting's value and its coordinate, the number with which samplers compute: for a logarithmic
 * range it is the logarithm, for a choice the index. These are pure functions.
 *
 * @example
 * ```ts
 * const rate: Extract<Parameter, { _tag: "Number" }> = {
 *   _tag: "Number", path: "algorithm.learning_rate", low: 1e-5, high: 1e-2, isLog: true, step: null, when: [],
 * }
 * boundsOf(rate) // from log(1e-5) to log(1e-2)
 * valueAt(rate, coordinateOf(rate, 0.001)) // 0.001
 * ```
 */
import { exp, log } from "../../base/rng/Elementary.ts"
import type { Stream } from "../../base/rng/Rng.ts"

/** A parameter is only set in trials in which the parameter `path` has one of `values`. */
export interface Condition {
  readonly path: string
  readonly values: ReadonlyArray<unknown>
}

interface Conditional {
  /** The path of the setting in snake_case, such as `algorithm.learning_rate`. */
  readonly path: string
  /** Conditions on parameters before this one, all of which must hold. */
  readonly when: ReadonlyArray<Condition>
}

/** A setting that is a number between two bounds; the bounds themselves are allowed. */
interface NumberParameter extends Conditional {
  readonly _tag: "Number"
  readonly low: number
  readonly high: number
  /** Whether the logarithm of the setting is distributed evenly. */
  readonly isLog: boolean
  /**
   * The distance between two values, counted from `low`; null if all numbers between the bounds are allowed. It is 1 for
   * integers.
   */
  readonly step: number | null
}

/** A setting that has one of several values without an order. */
interface ChoiceParameter extends Conditional {
  readonly _tag: "Choice"
  readonly values: ReadonlyArray<unknown>
}

export type Parameter = NumberParameter | ChoiceParameter
export type SearchSpace = ReadonlyArray<Parameter>

/** The values of a trial by the paths of their settings. Parameters whose conditions do not hold are missing. */
export type Params = Readonly<Record<string, unknown>>

/** Tells whether two values of a setting are the same. */
export const isSame = (one: unknown, other: unknown): boolean =>
  one === other || JSON.stringify(one) === JSON.stringify(other)

/** Tells whether the conditions of a parameter hold, given the values of the parameters before it. */
export const isActive = ({ when }: Parameter, params: Params): boolean =>
  when.every(({ path, values }) => Object.hasOwn(params, path) && values.some((value) => isSame(value, params[path])))

/**
 * The range of a parameter's coordinate. With a step, the range extends half a step beyond the smallest and the largest
 * value.
 */
export interface CoordinateRange {
  readonly low: number
  readonly high: number
}

/**
 * Returns the largest value that a parameter can take. It is not always `high`, because with a step, `high` may lie between
 * two values.
 */
const largest = ({ low, high, step }: NumberParameter): number =>
  step === null ? high : onGrid(low, step, Math.floor((high - low) / step + 1e-9))

/** Returns the value `steps` steps above `low`, without the last digits, in which decimal fractions have rounding errors. */
const onGrid = (low: number, step: number, steps: number): number => Number((low + steps * step).toPrecision(12))

/** Returns the bounds of a parameter's coordinate. */
export const boundsOf = (parameter: Parameter): CoordinateRange => {
  if (parameter._tag === "Choice") return { low: 0, high: parameter.values.length - 1 }
  const half = (parameter.step ?? 0) / 2
  return { low: scaled(parameter, parameter.low - half), high: scaled(parameter, largest(parameter) + half) }
}

const scaled = ({ isLog }: NumberParameter, value: number): number => (isLog ? log(value) : value)

/** Returns the coordinate of a value; NaN for a value that the parameter cannot take. */
export const coordinateOf = (parameter: Parameter, value: unknown): number => {
  if (parameter._tag === "Number") return typeof value === "number" ? scaled(parameter, value) : NaN
  const index = parameter.values.findIndex((one) => isSame(one, value))
  return index < 0 ? NaN : index
}

/** Returns the value at a coordinate: the nearest value that the parameter can take. */
export const valueAt = (parameter: Parameter, coordinate: number): unknown => {
  if (parameter._tag === "Choice") return parameter.values[coordinate]
  const { low, high, isLog, step } = parameter
  const value = isLog ? exp(coordinate) : coordinate
  if (step === null) return Math.min(high, Math.max(low, readable(value, high - low)))
  const steps = Math.max(0, Math.round((value - low) / step))
  const nearest = onGrid(low, step, Math.min(Math.floor((high - low) / step + 1e-9), steps))
  return Math.min(high, Math.max(low, nearest))
}

/** Rounds a value to six digits, unless the range is so narrow that this would move it far. */
const readable = (value: number, range: number): number => {
  const rounded = Number(value.toPrecision(6))
  return Math.abs(rounded - value) < 1e-3 * range ? rounded : value
}

/** Returns the range of coordinates that have the same value; undefined if every coordinate has its own value. */
export const cellOf = (parameter: NumberParameter, coordinate: number): CoordinateRange | undefined => {
  if (parameter.step === null) return undefined
  const value = Number(valueAt(parameter, coordinate))
  return { low: scaled(parameter, value - parameter.step / 2), high: scaled(parameter, value + parameter.step / 2) }
}

/** Draws a coordinate, so that each value has the same probability (for a logarithmic range: each order of magnitude). */
export const drawCoordinate = (parameter: Parameter, random: Stream): number => {
  if (parameter._tag === "Choice") return random.integer(parameter.values.length)
  const { low, high } = boundsOf(parameter)
  return random.between(low, high)
}
