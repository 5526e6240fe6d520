/**
 * Makes envs whose episodes have a goal, in the shape of Gymnasium-Robotics: an observation has the parts `observation`,
 * `achieved_goal` (the goal that the state would reach) and `desired_goal` (the episode's goal). A pure function of both goals
 * gives the reward. Hindsight experience replay, the setting `her` of algorithms with a replay buffer, needs such an env.
 *
 * @example
 * ```ts
 * import { GoalEnv, Space } from "effect-rl"
 *
 * const place = Space.box(0, 9)
 * const corridor = GoalEnv.make({
 *   id: "corridor",
 *   observationSpace: Space.dict({ observation: place, achieved_goal: place, desired_goal: place }),
 *   actionSpace: Space.discrete(2),
 *   maxSteps: 20,
 *   reset: (random) => ({ at: 0, goal: random.integer(10) }),
 *   observe: ({ at, goal }) => ({ observation: [at], achieved_goal: [at], desired_goal: [goal] }),
 *   step: ({ at, goal }, action) => ({ at: Math.min(Math.max(at + 2 * action - 1, 0), 9), goal }),
 *   computeReward: (achieved, desired) => (achieved[0] === desired[0] ? 0 : -1),
 *   computeTerminated: (achieved, desired) => achieved[0] === desired[0],
 * })
 * ```
 */
import type { Stream } from "../../base/rng/Rng.ts"
import * as Env from "./Env.ts"
import { invalid } from "../../base/EnvError.ts"
import {
  type ActionSpace,
  type DictOf,
  display,
  type RowSpace,
  shapeOf,
  sizeOf,
  type Space,
  unmasked,
  type ValueOf,
} from "./Space.ts"

/** The space of the observations of a goal env: `observation` is in the space `O`, both goals are in the space `G`. */
export type GoalSpace<O extends Space, G extends Space> = DictOf<{
  readonly observation: O
  readonly achieved_goal: G
  readonly desired_goal: G
}>

/** Pure functions of an achieved and a desired goal. */
export interface Goals<G extends Space = Space> {
  /** Returns the reward of a step, from the goal that was achieved after it. */
  computeReward(achieved: ValueOf<G>, desired: ValueOf<G>): number
  /** Says whether achieving this goal ends the episode. Without this function, no goal ends an episode. */
  computeTerminated?(achieved: ValueOf<G>, desired: ValueOf<G>): boolean
}

/** The argument of `make`: the definition of an env whose step returns the new state alone. */
export interface GoalEnvDefinition<State, A extends ActionSpace, O extends Space, G extends Space> extends Pick<
  Env.EnvDefinition<State, A, GoalSpace<O, G>>,
  "id" | "observationSpace" | "actionSpace" | "maxSteps" | "ui" | "reset" | "observe" | "actionMask"
> {
  readonly step: (state: State, action: Env.ActionOf<A>, random: Stream) => State
  readonly computeReward: Goals<G>["computeReward"]
  readonly computeTerminated?: Goals<G>["computeTerminated"]
  readonly renderText?: (state: State) => string
  readonly renderSvg?: (state: State) => string
}

/** Makes a goal env: the rewards and ends of its steps are computed from the goals in its observations. */
export const make = <State, A extends ActionSpace, O extends Space, G extends Space>(
  definition: GoalEnvDefinition<State, A, O, G>,
): Env.Env<State, A, GoalSpace<O, G>> => {
  const { computeReward, computeTerminated, step, ...rest } = definition
  const env = Env.make<State, A, GoalSpace<O, G>>({
    ...rest,
    step: (state, action, random) => {
      const next = step(state, action, random)
      const { achieved_goal: achieved, desired_goal: desired } = definition.observe(next)
      const terminated = computeTerminated?.(achieved, desired) ?? false
      return { state: next, reward: computeReward(achieved, desired), terminated }
    },
  })
  return withGoals(env, { computeReward, ...(computeTerminated && { computeTerminated }) })
}

// The key is the env object: a wrapper may change rewards or observations, so that the functions would no longer fit.
const rules = new WeakMap<Env.Env, Goals>()

/**
 * Records the functions of an env's goals, and returns the env: for an env that was not made by `make`, such as one of
 * Gymnasium-Robotics. They must compute what the env's own steps return.
 */
export const withGoals = <E extends Env.Env>(env: E, goals: Goals): E => {
  const problem = problemOf(env.observationSpace)
  if (problem !== undefined) throw invalid(env.id, `GoalEnv: ${problem}`)
  rules.set(env, goals)
  return env
}

/** Returns the functions of this env's goals; undefined if it has no goals. */
export const goalsOf = (env: Env.Env): Goals | undefined => rules.get(env)

/** Says why observations in this space have no goals; undefined if they have. */
const problemOf = (space: Space): string | undefined => {
  const layout = layoutOf(space)
  if (layout === undefined) {
    return `expected a dict with observation, achieved_goal and desired_goal as the observation space, found ${display(space)}`
  }
  return JSON.stringify(shapeOf(layout.space)) === JSON.stringify(shapeOf(layout.desired))
    ? undefined
    : `expected achieved_goal and desired_goal in one space, found ${display(layout.space)} and ${display(layout.desired)}`
}

/** The places of both goals in a row of observations. */
export interface GoalLayout {
  /** The space of the goals, as `achieved_goal` declares it. */
  readonly space: Space
  readonly desired: Space
  readonly achievedAt: number
  readonly desiredAt: number
}

/** Returns the places of both goals in the rows of a space; undefined if it has none. */
export const layoutOf = (rowSpace: RowSpace): GoalLayout | undefined => {
  const space = unmasked(rowSpace)
  if (space._tag !== "Dict") return undefined
  const names = Object.keys(space.parts)
  const { achieved_goal: achieved, desired_goal: desired, observation } = space.parts
  if (achieved === undefined || desired === undefined || observation === undefined) return undefined
  const offsetOf = (name: string): number =>
    names.slice(0, names.indexOf(name)).reduce((sum, before) => sum + sizeOf(space.parts[before]), 0)
  return { space: achieved, desired, achievedAt: offsetOf("achieved_goal"), desiredAt: offsetOf("desired_goal") }
}
