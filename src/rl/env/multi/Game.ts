/** Declares games of several agents, checks their definitions, and steps them. `MultiEnv.ts` makes envs from them. */
import { Predicate } from "effect"
import { display } from "../../../base/config/Config.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { ActionOf } from "../Env.ts"
import { invalid } from "../../../base/EnvError.ts"
import { type ActionSpace, choicesOf, sizeOf, type Space, type ValueOf } from "../Space.ts"

/** The result of a step of a game. */
export interface GameOutcome<State> {
  /** The new state. A step must not change the old state. */
  readonly state: State
  /** The reward of each agent, in the order of `agents`. */
  readonly rewards: ReadonlyArray<number>
  /**
   * True if the game is over; or a list with true for each agent that has left. When all have left, the game is over.
   */
  readonly terminated: boolean | ReadonlyArray<boolean>
  /** True if the game itself ended early. For a time limit, use `maxSteps` instead. */
  readonly truncated?: boolean
}

/** The parts that all games have. Agents are numbered in the order of `agents`. */
interface CommonGame<State, A extends ActionSpace, O extends Space> {
  readonly id: string
  /** The names of the agents, at least two. */
  readonly agents: ReadonlyArray<string>
  /** The space of the observations of each agent. */
  readonly observationSpace: O
  /** The space of the actions of each agent. */
  readonly actionSpace: A
  /** Truncates games at this many steps. If agents take turns, every turn is a step. */
  readonly maxSteps?: number
  reset(random: Stream): State
  /** Returns the part of a state that an agent observes. It is also called for agents whose turn it is not. */
  observe(state: State, agent: number): ValueOf<O>
  /** Says which choices an acting agent has, like `actionMask` of `Env.make`. */
  actionMask?(state: State, agent: number): ArrayLike<number | boolean>
  /** Renders a state as lines of text. */
  renderText?(state: State): string
  /** Renders a state as an SVG document. */
  renderSvg?(state: State): string
}

/** A game in which all agents act at once, like the parallel envs of PettingZoo. */
export interface ParallelGame<State, A extends ActionSpace, O extends Space> extends CommonGame<State, A, O> {
  /** `actions` has one action for each agent; for an agent that has left, it consists of zeros. */
  step(state: State, actions: ReadonlyArray<ActionOf<A>>, random: Stream): GameOutcome<State>
}

/** A game in which agents take turns, like the AEC envs of PettingZoo. */
export interface Turns<State, A extends ActionSpace, O extends Space> extends CommonGame<State, A, O> {
  /** Returns the number of the agent whose turn it is. */
  turn(state: State): number
  /** Applies the action of the agent whose turn it is. */
  step(state: State, action: ActionOf<A>, random: Stream): GameOutcome<State>
}

/** A game of either kind. Its functions are methods, so that every game is assignable to `Game` without parameters. */
export interface Game<
  State = unknown,
  A extends ActionSpace = ActionSpace,
  O extends Space = Space,
> extends ParallelGame<State, A, O> {
  /** The number of the agent whose turn it is; absent if all act at once. */
  turn?(state: State): number
}

/** The state of a game, with the agents that have left and the number of steps. */
export interface GamePosition {
  readonly inner: unknown
  /** True for each agent that has left. */
  readonly left: ReadonlyArray<boolean>
  /** The number of steps so far. */
  readonly moves: number
}

/** Reads a `GamePosition` from a snapshot. */
export const asPosition = (id: string, value: unknown): GamePosition => {
  if (Predicate.isObject(value) && "inner" in value && "left" in value && "moves" in value) {
    const { inner, left, moves } = value
    if (Array.isArray(left) && typeof moves === "number") return { inner, left: left.map(Boolean), moves }
  }
  throw invalid(id, "the snapshot doesn't fit: a state is not that of a game")
}

/** A step of a game: the rewards of all agents, and whether the game has ended. */
interface Advanced {
  readonly position: GamePosition
  readonly rewards: ReadonlyArray<number>
  readonly isOver: boolean
  readonly isTruncated: boolean
}

/** Throws an `EnvError` that names the first wrong field of a definition. */
export const checkGame = (definition: unknown, maker: string): void => {
  const values: Readonly<Record<string, unknown>> = Predicate.isObject(definition) ? { ...definition } : {}
  const { id, agents, maxSteps } = values
  const name = typeof id === "string" ? id : "game"
  const refuse = (key: string, expected: string): never => {
    throw invalid(name, `"${key}" of MultiEnv.${maker} must be ${expected}, found ${display(values[key])}`)
  }
  if (typeof id !== "string" || id === "") refuse("id", "a name")
  const names: ReadonlyArray<unknown> = Array.isArray(agents) ? agents : []
  const areNames = names.every((agent) => typeof agent === "string" && agent !== "")
  if (names.length < 2 || !areNames || new Set(names).size < names.length)
    refuse("agents", "two or more different names")
  const needed = ["reset", "observe", "step", ...(maker === "turns" ? ["turn"] : [])]
  for (const key of needed) if (!Predicate.isFunction(values[key])) refuse(key, "a function")
  for (const key of ["observationSpace", "actionSpace"]) if (!Predicate.isObject(values[key])) refuse(key, "a space")
  if (maxSteps !== undefined && !(Number.isInteger(maxSteps) && Number(maxSteps) > 0)) {
    refuse("maxSteps", "a whole number from 1")
  }
}

/** Tells whether the rows of a game's agents have masks: its own, or those that let agents wait for their turn. */
export const hasMasks = ({ actionMask, turn, actionSpace }: Game): boolean =>
  actionMask !== undefined || (turn !== undefined && choicesOf(actionSpace) !== undefined)

export const begin = (game: Game, random: Stream): GamePosition => ({
  inner: game.reset(random),
  left: game.agents.map(() => false),
  moves: 0,
})

/** Lists the numbers of the agents that act now. */
export const actingAgents = (game: Game, { inner, left }: GamePosition): ReadonlyArray<number> => {
  const all = game.agents.map((_, agent) => agent)
  if (game.turn === undefined) return all.filter((agent) => !left[agent])
  const agent = game.turn(inner)
  if (left[agent] === false) return [agent]
  const found = left[agent] === true ? `${agent}, which has left` : display(agent)
  throw invalid(game.id, `turn returned ${found}; expected the number of an agent, 0 to ${all.length - 1}`)
}

/** Returns the mask of an agent that acts now; undefined if it may do everything. */
export const maskAt = (game: Game, { inner }: GamePosition, agent: number): ArrayLike<number | boolean> | undefined =>
  game.actionMask?.(inner, agent)

/**
 * Takes a step of a game. `actions` has one action for each agent; the actions of agents that don't act are ignored.
 */
export const advance = (
  game: Game,
  { inner, left, moves }: GamePosition,
  actions: ReadonlyArray<ActionOf<ActionSpace>>,
  random: Stream,
): Advanced => {
  const outcome = game.step(
    inner,
    actions.map((action, agent) => (left[agent] ? noAction(game.actionSpace) : action)),
    random,
  )
  const problem = problemOf(outcome, left.length)
  if (problem !== undefined) throw invalid(game.id, problem)
  const { state, rewards, terminated, truncated = false } = outcome
  const leftNow = left.map((was, agent) => was || (typeof terminated === "boolean" ? terminated : terminated[agent]))
  const isOver = !leftNow.includes(false)
  return {
    position: { inner: state, left: leftNow, moves: moves + 1 },
    rewards: rewards.map((reward, agent) => (left[agent] ? 0 : reward)),
    isOver,
    isTruncated: !isOver && (truncated || moves + 1 >= (game.maxSteps ?? Infinity)),
  }
}

/** The action of an agent that has left, or whose turn it is not. */
export const noAction = (space: ActionSpace): ActionOf<ActionSpace> =>
  space._tag === "Discrete" ? 0 : Array.from({ length: sizeOf(space) }, () => 0)

/** Describes what is wrong with the result of a step; undefined if nothing is. */
const problemOf = (outcome: unknown, agents: number): string | undefined => {
  if (!Predicate.isObject(outcome) || !("rewards" in outcome) || !("terminated" in outcome) || !("state" in outcome)) {
    return `step returned ${display(outcome)}, not { state, rewards, terminated }`
  }
  const { rewards, terminated } = outcome
  const isList = Array.isArray(rewards) && rewards.length === agents
  if (!isList || !rewards.every((reward) => typeof reward === "number" && Number.isFinite(reward))) {
    return `rewards are ${display(rewards)}; expected ${agents} finite numbers, one for each agent`
  }
  const ends: unknown = Array.isArray(terminated) ? terminated : [terminated]
  const isRight = Array.isArray(ends) && ends.every((end) => typeof end === "boolean")
  return isRight && (!Array.isArray(terminated) || terminated.length === agents)
    ? undefined
    : `terminated is ${display(terminated)}; expected true or false, or one of them for each agent`
}
