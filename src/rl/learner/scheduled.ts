/** Declares settings that are numbers or change over the run, and makes them inputs of the graphs that read them. */
import * as Schema from "effect/Schema"
import { code, fraction, nonNegative, withDefault } from "../../base/config/fields.ts"
import { cosine, linear, type Schedule, within } from "../../tensor/graph/schedules.ts"
import { input } from "../../tensor/graph/ops.ts"
import type { Tensor } from "../../tensor/graph/Tensor.ts"

/**
 * A number, or a number that changes over the run: `lin_0.2` falls from 0.2 to 0 in a line, as in the RL Zoo, and
 * `{ schedule: "linear", from: 0.2, to: 0.1 }` names both ends. In code also a function from the run's progress, 0 to 1.
 */
export type Scheduled = number | string | CourseOfNumber | Schedule

/** The way in which a number changes over the run. */
export interface CourseOfNumber {
  /** The form of the course: a line, or half a cosine. */
  readonly schedule: "linear" | "cosine"
  /** The number at the start of the run. */
  readonly from: number
  /** The number at the end. @default 0 */
  readonly to?: number
  /** The share of the run, from its start, in which the number changes; after that it stays the same. @default 1 */
  readonly until?: number
}

const prefix = "lin_"

/**
 * Makes the Schema of a number that can change over the run, from the Schema of the number. `end` is the Schema of its last
 * value.
 */
export const scheduled = (number: Schema.Codec<number, number>, end: Schema.Codec<number, number> = nonNegative) => {
  const isNumber = Schema.is(number)
  const line = Schema.String.check(
    Schema.makeFilter((text) => {
      const start = text.slice(prefix.length)
      return text.startsWith(prefix) && start.trim() !== "" && isNumber(Number(start))
        ? undefined
        : "expected a number, or one that falls to 0 in a line, such as lin_0.2"
    }),
  )
  const course = Schema.Struct({
    schedule: Schema.Literals(["linear", "cosine"]),
    from: number,
    to: withDefault(end, 0),
    until: withDefault(fraction, 1),
  })
  const all = "a number, or one that changes: lin_0.2, a section with schedule and from, or a function in code"
  return Schema.Union([number, line, course, code<Schedule>(all)])
}

/**
 * Returns a setting as a function of the run's progress, from 0 to 1.
 *
 * @example
 * ```ts
 * scheduleOf("lin_0.2")(0.5) // 0.1
 * scheduleOf({ schedule: "linear", from: 1, to: 0.2, until: 0.5 })(0.25) // 0.6
 * ```
 */
export const scheduleOf = (setting: Scheduled): Schedule => {
  if (typeof setting === "function") return setting
  if (typeof setting === "number") return () => setting
  if (typeof setting === "string") return linear(Number(setting.slice(prefix.length)))
  const { schedule, from, to = 0, until = 1 } = setting
  return within(until, schedule === "linear" ? linear(from, to) : cosine(from, { end: to }))
}

/** An input of a graph that the learner fills before each update, by the run's progress. */
interface ScheduledInput {
  readonly tensor: Tensor
  readonly schedule: Schedule
}
export type ScheduledInputs = Readonly<Record<string, ScheduledInput>>

/** A config whose settings `K` are numbers of the graph: constants, or inputs if they change over the run. */
export type WithInputs<C, K extends string> = Omit<C, K> & { readonly [Key in K & keyof C]: number | Tensor } & {
  readonly scheduledInputs: ScheduledInputs
}

/**
 * Replaces each of the settings `keys` that changes over the run by an input of the graph, so that the update is
 * compiled only once; the others stay constants.
 */
export function withInputs<C extends object, K extends string>(config: C, keys: ReadonlyArray<K>): WithInputs<C, K>
export function withInputs(config: Readonly<Record<string, Scheduled>>, keys: ReadonlyArray<string>): object {
  const changing = keys.filter(
    (key) => config[key] !== undefined && config[key] !== null && typeof config[key] !== "number",
  )
  const scheduledInputs: ScheduledInputs = Object.fromEntries(
    changing.map((key) => [key, { tensor: input(key, []), schedule: scheduleOf(config[key]) }]),
  )
  const tensors = Object.fromEntries(changing.map((key) => [key, scheduledInputs[key].tensor]))
  return { ...config, ...tensors, scheduledInputs }
}

/** Returns the tensors of scheduled inputs, for a program's inputs. */
export const tensorsOf = (inputs: ScheduledInputs = {}): Readonly<Record<string, Tensor>> =>
  Object.fromEntries(Object.entries(inputs).map(([key, { tensor }]) => [key, tensor]))

/** Fills the feeds of scheduled inputs with their values at this point of the run. */
export const fillScheduled = (
  inputs: ScheduledInputs | undefined,
  feeds: Readonly<Record<string, { [index: number]: number }>>,
  progress: number,
): void => {
  for (const [key, { schedule }] of Object.entries(inputs ?? {})) feeds[key][0] = schedule(progress)
}
