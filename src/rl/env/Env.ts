/**
 * Defines the type of an environment (env): how an episode begins, what the agent observes of a state, and what a step
 * does. `make` checks the definition of an env and returns the env; it runs no episode. `Batch.make` steps envs.
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
import { type Effect, Predicate, type Scope } from "effect"
import { closest } from "../../base/text/closest.ts"
import type { Stream } from "../../base/rng/Rng.ts"
import type { AsyncBatchEnv, BatchEnv, EnvBatchOptions } from "./BatchEnv.ts"
import { EnvError } from "../../base/EnvError.ts"
import type { ActionSpace, Box, Discrete, MultiBinary, MultiDiscrete, RowSpace, Space, ValueOf } from "./Space.ts"
import { masked } from "./Space.ts"
import type { EnvBody } from "./EnvBody.ts"
import { isModule } from "./ui/module.ts"
import { display } from "../../base/config/Config.ts"

/** The type of an action in the space `A`: its index if the space is discrete, otherwise a list of numbers. */
export type ActionOf<A extends ActionSpace> = A extends Discrete
  ? number
  : A extends Box
    ? ReadonlyArray<number> | Float32Array
    : A extends MultiDiscrete | MultiBinary
      ? ReadonlyArray<number> | Int32Array
      : never

export interface EnvTransition<State> {
  /** The new state. A step must not change the old state. */
  readonly state: State
  readonly reward: number
  /** True if the env reached a terminal state. */
  readonly terminated: boolean
  /** True if the env itself ended the episode early. For a time limit, use `maxSteps` instead. */
  readonly truncated?: boolean
  /** True if the env ended the episode early because its simulation diverged. Trainings count such episodes. */
  readonly diverged?: boolean
}

/**
 * An environment: pure functions over a state of plain data (numbers, strings, arrays, typed arrays, objects). Any env
 * can be batched, checkpointed and replayed without work by its author.
 *
 * `Env` without type parameters is the type of any env. Its functions are declared as methods, whose parameters
 * TypeScript checks less strictly, so that every env is assignable to it.
 */
export interface Env<State = unknown, A extends ActionSpace = ActionSpace, O extends Space = Space> {
  readonly id: string
  readonly observationSpace: O
  readonly actionSpace: A
  /** Truncates episodes at this many steps. */
  readonly maxSteps?: number
  /** The mean return at which the task counts as solved, if there is an agreed one. */
  readonly rewardThreshold?: number
  reset(random: Stream): State
  observe(state: State): ValueOf<O>
  step(state: State, action: ActionOf<A>, random: Stream): EnvTransition<State>
  /**
   * Says which choices are allowed in a state: a number or boolean for each, 1 or `true` if it is allowed. Several
   * choices (`MultiDiscrete`) follow each other in one list. Agents never choose one that is not allowed, and a batch
   * refuses it. It is not called in terminal states. Leave it out if everything is always allowed.
   */
  actionMask?(state: State): ArrayLike<number | boolean>
  /**
   * The names of the agents, if `MultiEnv` made this env from a game. A batch then has a row for each agent of each
   * game, so its number of envs is a multiple of the number of agents.
   */
  readonly agents?: ReadonlyArray<string>
  /** Renders a state as lines of text. */
  renderText?(state: State): string
  /** Renders a state as an SVG document. */
  renderSvg?(state: State): string
  /** The text of an ES module that renders a state, received as JSON, on a canvas in a browser. See `Ui`. */
  readonly ui?: string
  /**
   * Loads what the env's functions need, such as a physics engine, until the scope closes. `Batch.open` and the threads of
   * `EnvPool` run it; before it has run, and after its last scope has closed, the functions throw.
   */
  readonly prepare?: Effect.Effect<void, EnvError, Scope.Scope>
  /** Shows the env's bodies between two steps, and lets a person pull at them. */
  readonly body?: EnvBody
  /** Makes a batch that is faster than `step` with equal results; `undefined` if it doesn't support the options. */
  batch?(numEnvs: number, options: EnvBatchOptions): BatchEnv | undefined
  /**
   * Opens a batch of an env that runs elsewhere, as `AsyncEnv.make` and `ForeignEnv` make. Such an env has no state in
   * this program, so its functions `reset`, `observe` and `step` throw.
   */
  open?(numEnvs: number, options: EnvBatchOptions): Effect.Effect<AsyncBatchEnv, EnvError, Scope.Scope>
}

/** The argument of `make`: the fields of `Env`, with functions whose parameters TypeScript checks strictly. */
export interface EnvDefinition<State, A extends ActionSpace, O extends Space = Box> extends Pick<
  Env<State, A, O>,
  "id" | "observationSpace" | "actionSpace" | "maxSteps" | "rewardThreshold" | "ui"
> {
  readonly reset: (random: Stream) => State
  readonly observe: (state: State) => ValueOf<O>
  readonly step: (state: State, action: ActionOf<A>, random: Stream) => EnvTransition<State>
  readonly actionMask?: (state: State) => ArrayLike<number | boolean>
  readonly renderText?: (state: State) => string
  readonly renderSvg?: (state: State) => string
  readonly batch?: (numEnvs: number, options: EnvBatchOptions) => BatchEnv | undefined
}

/**
 * Makes an env. A missing, wrong or unknown field throws an `EnvError` that names the field.
 *
 * The type of the state is what `reset` returns. The types of observations and actions follow from the spaces: a number
 * in a discrete space, several numbers in a box, an object in a `Dict`.
 */
export const make = <State, A extends ActionSpace, O extends Space = Box>(
  definition: EnvDefinition<State, A, O>,
): Env<State, A, O> => {
  const problem = firstProblem(definition)
  if (problem !== undefined) {
    throw new EnvError({ env: typeof definition.id === "string" ? definition.id : "", message: `Env.make: ${problem}` })
  }
  return { ...definition }
}

/** Describes the first missing, wrong or unknown field of a definition; undefined if all fields are valid. */
const firstProblem = (definition: unknown): string | undefined => {
  if (typeof definition !== "object" || definition === null) return `expected an object, found ${display(definition)}`
  const values: Readonly<Record<string, unknown>> = { ...definition }
  const name = typeof values["id"] === "string" ? values["id"] : "env"
  const unknown = Object.keys(values).find((key) => !(key in fields))
  for (const [key, { expected, isValid, required }] of Object.entries(fields)) {
    const value = values[key]
    if (value === undefined && !required) continue
    if (isValid(value)) continue
    const misspelt = value === undefined && unknown !== undefined && closest(unknown, [key]) !== undefined
    const hint = misspelt ? `; rename "${unknown}"?` : ""
    return `${name}: "${key}" must be ${expected}, found ${display(value)}${hint}`
  }
  if (unknown === undefined) return maskProblem(definition, name)
  const suggestion = closest(unknown, Object.keys(fields))
  return `${name}: unknown field "${unknown}"` + (suggestion === undefined ? "" : `; did you mean "${suggestion}"?`)
}

/** Says why actions cannot be masked; undefined if they can, or if no mask is defined. */
const maskProblem = (definition: object, name: string): string | undefined => {
  if (!("actionMask" in definition) || definition.actionMask === undefined || !("actionSpace" in definition)) {
    return undefined
  }
  return isTaggedAs("Discrete", "MultiDiscrete")(definition.actionSpace)
    ? undefined
    : `${name}: "actionMask" needs choices as actions, Space.discrete or multiDiscrete (…)`
}

/** Returns the space of a batch's rows: observations, each with an action mask after it if the env has masks. */
export const rowSpaceOf = (env: Pick<Env, "observationSpace" | "actionSpace" | "actionMask">): RowSpace =>
  env.actionMask === undefined ? env.observationSpace : masked(env.observationSpace, env.actionSpace)

/** The rule for one field of a definition. */
interface FieldRule {
  readonly expected: string
  readonly required: boolean
  readonly isValid: (value: unknown) => boolean
}

const field = (expected: string, isValid: FieldRule["isValid"]): FieldRule => ({ expected, required: true, isValid })
const optional = (expected: string, isValid: FieldRule["isValid"]): FieldRule => ({
  expected,
  required: false,
  isValid,
})
const isTaggedAs =
  (...tags: ReadonlyArray<string>) =>
  (value: unknown): boolean =>
    tags.some((tag) => Predicate.isTagged(value, tag))

const actionTags = ["Box", "Discrete", "MultiDiscrete", "MultiBinary"]

const fields: Readonly<Record<string, FieldRule>> = {
  id: field("a name", (value) => typeof value === "string" && value.length > 0),
  observationSpace: field("a space, such as Space.box(…)", isTaggedAs(...actionTags, "Dict", "Tuple")),
  actionSpace: field("Space.discrete, box, multiDiscrete or multiBinary (…)", isTaggedAs(...actionTags)),
  maxSteps: optional("a whole number from 1", (value) => Number.isInteger(value) && Number(value) >= 1),
  rewardThreshold: optional("a number", (value) => typeof value === "number" && !Number.isNaN(value)),
  reset: field("a function (random) => state", Predicate.isFunction),
  observe: field("a function (state) => observation", Predicate.isFunction),
  step: field("a function (state, action, random) => { state, reward, terminated }", Predicate.isFunction),
  actionMask: optional("a function (state) => zeros and ones", Predicate.isFunction),
  renderText: optional("a function (state) => string", Predicate.isFunction),
  renderSvg: optional("a function (state) => string", Predicate.isFunction),
  ui: optional(
    "the text of an ES module that exports init and render",
    (value) => typeof value === "string" && isModule(value),
  ),
  batch: optional("a function (numEnvs, options) => BatchEnv", Predicate.isFunction),
}
