/**
 * Plays a game against opponents in courses: generators that yield the questions to opponents, and get their answers.
 * An env whose opponents answer at once runs a course in its `step`; a batch runs the courses of all its games
 * together, so that an opponent gets all questions at once.
 */
import { invalid } from "../../../base/EnvError.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { ActionOf, EnvTransition } from "../Env.ts"
import type { ActionSpace } from "../Space.ts"
import { actingAgents, advance, begin, type Game, maskAt, noAction, type GamePosition } from "./Game.ts"
import type { OpponentAnswer, OpponentQuestion, Later, Now } from "./opponents.ts"

/** The state of a game that is played from the side of one agent, the trained one. */
export interface SeatedGame {
  readonly position: GamePosition
  /** The number of the agent that is trained. */
  readonly seat: number
  /** The memories of the opponents, by the numbers of their agents. */
  readonly memories: ReadonlyArray<ReadonlyArray<number> | null>
}

/** The largest number of steps that the trained agent may wait for its turn. */
export const mostWaiting = 10_000

export type Course<T> = Generator<ReadonlyArray<Omit<OpponentQuestion, "row">>, T, ReadonlyArray<OpponentAnswer>>

/** Returns the functions that make the course of a reset and the course of a step. */
export const coursesOf = (game: Game, forms: ReadonlyArray<Now | Later>, fixedSeat: number | undefined) => {
  /** Takes one step of the game. The trained agent takes the action `own`, if it acts. */
  const oneStep = function* (
    { position, seat, memories }: SeatedGame,
    own: ActionOf<ActionSpace>,
    random: Stream,
  ): Course<{
    readonly state: SeatedGame
    readonly reward: number
    readonly isOver: boolean
    readonly isTruncated: boolean
  }> {
    const actions = game.agents.map((_, agent) => (agent === seat ? own : noAction(game.actionSpace)))
    const remembered = [...memories]
    const asked: Array<Omit<OpponentQuestion, "row">> = []
    for (const agent of actingAgents(game, position)) {
      if (agent === seat) continue
      const form = forms[agent]
      const observation = game.observe(position.inner, agent)
      const mask = maskAt(game, position, agent)
      if (form._tag === "Now") actions[agent] = form.play(observation, { agent: game.agents[agent], mask, random })
      else asked.push({ agent, observation, mask, memory: memories[agent] })
    }
    if (asked.length > 0) {
      const answers = yield asked
      for (const [at, { agent }] of asked.entries()) {
        actions[agent] = answers[at].action
        remembered[agent] = answers[at].memory
      }
    }
    const next = advance(game, position, actions, random)
    const isOver = next.isOver || next.position.left[seat]
    const state = { position: next.position, seat, memories: remembered }
    return { state, reward: next.rewards[seat], isOver, isTruncated: next.isTruncated }
  }
  /** Tells whether the trained agent acts now. Throws if it has waited too long for its turn. */
  const acts = ({ position, seat }: SeatedGame, waited: number): boolean => {
    if (actingAgents(game, position).includes(seat)) return true
    if (waited < mostWaiting) return false
    throw invalid(
      game.id,
      `${waited} steps passed without a turn of ${game.agents[seat]}; "maxSteps" can end such games`,
    )
  }

  const step = function* (
    before: SeatedGame,
    action: ActionOf<ActionSpace>,
    random: Stream,
  ): Course<EnvTransition<SeatedGame>> {
    let next = yield* oneStep(before, action, random)
    let { reward } = next
    for (let waited = 0; !next.isOver && !next.isTruncated && !acts(next.state, waited); waited++) {
      next = yield* oneStep(next.state, noAction(game.actionSpace), random)
      reward += next.reward
    }
    return { state: next.state, reward, terminated: next.isOver, truncated: next.isTruncated && !next.isOver }
  }

  const reset = function* (random: Stream): Course<SeatedGame> {
    // If a game ends before the agent's first turn, begin another one.
    for (let attempts = 0; attempts < 100; attempts++) {
      const seat = fixedSeat ?? random.integer(game.agents.length)
      let state: SeatedGame = { position: begin(game, random), seat, memories: game.agents.map(() => null) }
      let isOver = false
      for (let waited = 0; !isOver && !acts(state, waited); waited++) {
        const next = yield* oneStep(state, noAction(game.actionSpace), random)
        state = next.state
        isOver = next.isOver || next.isTruncated
      }
      if (!isOver) return state
    }
    throw invalid(game.id, "a hundred games ended before the first turn of the trained agent")
  }
  return { reset, step }
}

export type Courses = ReturnType<typeof coursesOf>
