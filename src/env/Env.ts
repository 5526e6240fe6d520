/**
 * An environment as a value: where an episode begins, what is seen of a state, and what a step does.
 *
 * @example
 * ```ts
 * import { Env, Space } from "effect-rl"
 *
 * const corridor = Env.make({
 *   id: "corridor",
 *   observationSpace: Space.box(0, 1),
 *   actionSpace: Space.discrete(2),
 *   maxSteps: 50,
 *   reset: () => ({ at: 0 }),
 *   observe: ({ at }) => [at / 10],
 *   step: ({ at }, action) => {
 *     const next = Math.max(0, at + (action === 1 ? 1 : -1))
 *     return { state: { at: next }, reward: next === 10 ? 1 : 0, terminated: next === 10 }
 *   },
 * })
 * ```
 */
import { closest } from "../config/closest.ts"
import type { Stream } from "../rng/Rng.ts"
import type { BatchEnv, BatchOptions } from "./BatchEnv.ts"
import { EnvError } from "./EnvError.ts"
import { describe } from "./internal/describe.ts"
import type { Box, Discrete, Space } from "./Space.ts"
import { isModule } from "./ui/module.ts"

export { check, type Fault } from "./check.ts"

/** The number of a discrete action, or the numbers of a continuous one. */
export type ActionOf<A extends Space> = A extends Discrete
  ? number
  : A extends Box
    ? ReadonlyArray<number> | Float32Array
    : never

export interface Transition<State> {
  readonly state: State
  readonly reward: number
  /** The env reached a terminal state. */
  readonly terminated: boolean
  /** The env cut the episode off by itself (a time limit is better given as `maxSteps`). */
  readonly truncated?: boolean
}

/**
 * An environment as a value: pure functions over a state of plain data (numbers, strings, arrays, typed arrays,
 * objects), so that it can be batched, checkpointed and replayed without its author doing anything for it.
 *
 * `Env` alone, without parameters, is any env: its functions are declared as methods so that every env is one.
 */
export interface Env<State = unknown, A extends Space = Space> {
  readonly id: string
  readonly observationSpace: Box
  readonly actionSpace: A
  /** Truncates at this many steps. */
  readonly maxSteps?: number
  /** The mean return at which the task counts as solved, where one is agreed on. */
  readonly rewardThreshold?: number
  reset(random: Stream): State
  observe(state: State): ArrayLike<number>
  step(state: State, action: ActionOf<A>, random: Stream): Transition<State>
  /** A drawing of a state: lines of text, or one SVG document. */
  renderText?(state: State): string
  renderSvg?(state: State): string
  /**
   * How it is drawn on a canvas: the text of an ES module that exports `init(canvas, options)` and `render(ui_state,
   * parameters, state, action)`, for a browser to load; the state is given to it as JSON. `Ui` says more.
   */
  readonly ui?: string
  /**
   * Many of it stepped together, where that can be done faster than one by one, with the same results to the bit.
   * `undefined` where it doesn't do what the options ask for: then they are stepped one by one.
   */
  batch?(numEnvs: number, options: BatchOptions): BatchEnv | undefined
}

/** What an env's author writes: the same fields, with their types checked strictly. */
export interface Definition<State, A extends Space> {
  readonly id: string
  readonly observationSpace: Box
  readonly actionSpace: A
  readonly maxSteps?: number
  readonly rewardThreshold?: number
  readonly reset: (random: Stream) => State
  readonly observe: (state: State) => ArrayLike<number>
  readonly step: (state: State, action: ActionOf<A>, random: Stream) => Transition<State>
  readonly renderText?: (state: State) => string
  readonly renderSvg?: (state: State) => string
  readonly ui?: string
  readonly batch?: (numEnvs: number, options: BatchOptions) => BatchEnv | undefined
}

/**
 * An env from its definition, which is checked: a missing or wrong field is an `EnvError` that names it.
 *
 * The state's type is what `reset` returns; the action is a `number` in a discrete space and numbers in a box.
 */
export const make = <State, A extends Space>(definition: Definition<State, A>): Env<State, A> => {
  const problem = firstProblem(definition)
  if (problem !== undefined) {
    throw new EnvError({ env: typeof definition.id === "string" ? definition.id : "", message: `Env.make: ${problem}` })
  }
  return { ...definition }
}

const firstProblem = (definition: unknown): string | undefined => {
  if (typeof definition !== "object" || definition === null) return `expected an object, found ${describe(definition)}`
  const given: Readonly<Record<string, unknown>> = { ...definition }
  const name = typeof given["id"] === "string" ? given["id"] : "env"
  const unknown = Object.keys(given).find((key) => !(key in fields))
  for (const [key, { expected, holds, required }] of Object.entries(fields)) {
    const value = given[key]
    if (value === undefined && !required) continue
    if (holds(value)) continue
    const misspelt = value === undefined && unknown !== undefined && closest(unknown, [key]) !== undefined
    const hint = misspelt ? ` (is "${unknown}" meant to be it?)` : ""
    return `${name}: "${key}" must be ${expected}, found ${describe(value)}${hint}`
  }
  if (unknown === undefined) return undefined
  const suggestion = closest(unknown, Object.keys(fields))
  return `${name}: unknown field "${unknown}"` + (suggestion === undefined ? "" : `; did you mean "${suggestion}"?`)
}

interface Field {
  readonly expected: string
  readonly required: boolean
  readonly holds: (value: unknown) => boolean
}

const isFunction = (value: unknown): boolean => typeof value === "function"
const tagOf = (value: unknown): unknown =>
  typeof value === "object" && value !== null && "_tag" in value ? value._tag : undefined
const aFunction = (signature: string, required: boolean): Field => ({
  expected: `a function ${signature}`,
  required,
  holds: isFunction,
})

const fields: Readonly<Record<string, Field>> = {
  id: { expected: "a name", required: true, holds: (value) => typeof value === "string" && value.length > 0 },
  observationSpace: { expected: "Space.box(…)", required: true, holds: (value) => tagOf(value) === "Box" },
  actionSpace: {
    expected: "Space.discrete(…) or Space.box(…)",
    required: true,
    holds: (value) => tagOf(value) === "Box" || tagOf(value) === "Discrete",
  },
  maxSteps: {
    expected: "a whole number of at least 1",
    required: false,
    holds: (value) => typeof value === "number" && Number.isInteger(value) && value >= 1,
  },
  rewardThreshold: {
    expected: "a number",
    required: false,
    holds: (value) => typeof value === "number" && !Number.isNaN(value),
  },
  reset: aFunction("(random) => state", true),
  observe: aFunction("(state) => numbers", true),
  step: aFunction("(state, action, random) => { state, reward, terminated }", true),
  renderText: aFunction("(state) => string", false),
  renderSvg: aFunction("(state) => string", false),
  ui: {
    expected: "the text of an ES module that exports init and render",
    required: false,
    holds: (value) => typeof value === "string" && isModule(value),
  },
  batch: aFunction("(numEnvs, options) => BatchEnv", false),
}
