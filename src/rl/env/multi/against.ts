/**
 * Makes the env of one agent of a game, in which opponents play the other agents. A step lasts until the trained agent
 * acts again or the game ends; its reward is the sum of the agent's rewards in between.
 */
import { Predicate } from "effect"
import { invalid } from "../../../base/EnvError.ts"
import type { Env } from "../Env.ts"
import { asyncBatchOf } from "../internal/asyncEpisodes.ts"
import { elsewhere } from "../internal/elsewhere.ts"
import { type ActionSpace, choicesOf, type Space } from "../Space.ts"
import { openKernel } from "./againstBatch.ts"
import { type Course, coursesOf, type SeatedGame } from "./courses.ts"
import { actingAgents, type Game, hasMasks, maskAt } from "./Game.ts"
import { formOf, type Later, type Now, type Opponent, type PlayedGame } from "./opponents.ts"

/** The opponents, which play the other agents: one opponent for all of them, or one for each by name. */
export type Opponents<A extends ActionSpace = ActionSpace, O extends Space = Space> =
  | Opponent<A, O>
  | { readonly [agent: string]: Opponent<A, O> }

export interface AgainstOptions {
  /** The name of the agent that is trained. Default: each episode draws one. */
  readonly as?: string
  /** The id of the env. Default: the game's id, followed by "against" and the kind of the opponents. */
  readonly id?: string
}

/** Makes the env of one agent of a game. */
export const againstEnv = <A extends ActionSpace, O extends Space>(
  game: Game<unknown, A, O>,
  opponents: Opponents<A, O>,
  options: AgainstOptions = {},
): Env<SeatedGame, A, O> => {
  const { agents, observationSpace, actionSpace, renderText, renderSvg, maxSteps } = game
  const id = nameOf(game, opponents, options)
  const { as } = options
  const forms = agents.map((agent) => formIn(game, opponents, agent, as))
  const courses = coursesOf(game, forms, as === undefined ? undefined : agents.indexOf(as))
  const facts = {
    id,
    observationSpace,
    actionSpace,
    // The game's time limit counts the steps of all agents. If they take turns, a step of this env is several of those.
    ...(maxSteps !== undefined && game.turn === undefined && { maxSteps }),
    ...(renderText && { renderText: ({ position }: SeatedGame) => renderText.call(game, position.inner) }),
    ...(renderSvg && { renderSvg: ({ position }: SeatedGame) => renderSvg.call(game, position.inner) }),
  }
  const maskOf = ({ position, seat }: SeatedGame): ArrayLike<number | boolean> =>
    // A game can be truncated in another agent's turn, when the game has no mask for this one.
    (actingAgents(game, position).includes(seat) ? maskAt(game, position, seat) : undefined) ?? allowAll(actionSpace)
  if (forms.some((form) => form._tag === "Later")) {
    const env: Env<SeatedGame, A, O> = {
      ...facts,
      ...elsewhere(facts, hasMasks(game)),
      open: (numEnvs, batch) =>
        asyncBatchOf(env, numEnvs, batch, (columns) => openKernel({ env, game, forms, courses, maskOf }, columns)),
    }
    return env
  }
  return {
    ...facts,
    reset: (random) => atOnce(courses.reset(random)),
    observe: ({ position, seat }) => game.observe(position.inner, seat),
    ...(hasMasks(game) && { actionMask: maskOf }),
    step: (state, action, random) => atOnce(courses.step(state, action, random)),
  }
}

/** Returns the id of a game's env. Throws an `EnvError` if the trained agent is not one of the game's. */
export const nameOf = (game: PlayedGame, opponents: Opponents, { as, id }: AgainstOptions): string => {
  if (as !== undefined && !game.agents.includes(as)) {
    throw invalid(game.id, `"as" must be one of ${game.agents.join(", ")}, found ${as}`)
  }
  return id ?? `${game.id} against ${describe(opponents)}`
}

const allowAll = (space: ActionSpace): ReadonlyArray<boolean> =>
  (choicesOf(space) ?? []).flatMap((count) => Array.from({ length: count }, () => true))

const describe = (opponents: Opponents): string =>
  typeof opponents === "string" ? opponents : Predicate.isTagged(opponents, "Later") ? "past selves" : "opponents"

/** Tells whether opponents are an object with one for each agent's name. */
const areByName = (opponents: Opponents): opponents is { readonly [agent: string]: Opponent } =>
  Predicate.isObject(opponents) && !Predicate.isTagged(opponents, "Later") && !("actAll" in opponents)

/** Returns the opponent that plays an agent. The agent that is always trained needs none. */
export const formIn = (game: PlayedGame, opponents: Opponents, agent: string, as: string | undefined): Now | Later => {
  if (!areByName(opponents)) return formOf(game, opponents)
  const byName: Readonly<Record<string, Opponent | undefined>> = opponents
  const unknown = Object.keys(byName).find((name) => !game.agents.includes(name))
  if (unknown !== undefined) {
    throw invalid(game.id, `opponents: there is no agent "${unknown}"; expected ${game.agents.join(", ")}`)
  }
  const opponent = byName[agent]
  if (opponent !== undefined) return formOf(game, opponent)
  if (agent === as) return formOf(game, "random")
  throw invalid(
    game.id,
    `opponents: nobody plays ${agent}; name an opponent for it, or choose the trained agent by "as"`,
  )
}

/** Runs a course (see `courses.ts`) whose opponents all answer at once. */
const atOnce = <T>(course: Course<T>): T => {
  const result = course.next([])
  if (result.done === true) return result.value
  throw new Error("an opponent that answers at once was asked by an Effect")
}
