/**
 * Turns a game for several players into a task for one: policies play the others, and observe what those players would.
 *
 * @example
 * ```ts
 * const env = Against.make(TextTicTacToe.players, {
 *   id: "t-1",
 *   type: "tic_tac_toe",
 *   player: "X",
 *   others: TextTicTacToe.optimal,
 * })
 * ```
 */
import { Effect } from "effect"
import type { Stream } from "../rng/Rng.ts"
import { EnvError } from "../env/EnvError.ts"
import type { MultiTextEnv, MultiTextEpisode, MultiTextStep, Scene } from "./MultiTextEnv.ts"
import { make as makeText, type TextEnv } from "./TextEnv.ts"

/** A player that acts by itself, from its observation and a random stream of its own. */
export type Policy = (observation: string, random: Stream) => string

export interface Seat extends Pick<TextEnv, "id" | "type" | "maxSteps">, Partial<Pick<TextEnv, "metadata">> {
  /** The player that the agent plays. */
  readonly player: string
  /** Plays all other players. */
  readonly others: Policy
}

/** The number of moves that the other players may make in a row; with more moves, the step fails with an `EnvError`. */
const mostSteps = 1000

interface Table {
  readonly episode: MultiTextEpisode
  readonly now: Scene
}

/** Makes an env in which the agent plays one player and policies play the others. */
export const make = (game: MultiTextEnv, seat: Seat): TextEnv => {
  const { id, type, metadata = game.metadata, player, others, maxSteps = game.maxSteps } = seat

  /** Plays until the agent must move again or the game is over; `own` is the agent's next action. */
  const playOn = Effect.fnUntraced(function* ({ episode, now: first }: Table, own: string | null, random: Stream) {
    let now = first
    let left = own
    let last: MultiTextStep | null = null
    let score = 0
    let message = ""
    for (let step = 0; left !== null || !now.toMove.includes(player); step++) {
      if (step === mostSteps) {
        const message = `env "${id}": the others moved ${step} times without ending their turns`
        return yield* new EnvError({ env: id, message })
      }
      const actions: Record<string, string> = {}
      for (const who of now.toMove) {
        actions[who] =
          who === player ? (left ?? "") : others(now.observations[who] ?? "", random.child("others", step, who))
      }
      if (now.toMove.includes(player)) left = null
      last = yield* episode.step(actions)
      const feedback = last.feedback[player]
      if (feedback !== undefined) {
        score += feedback.score
        message = feedback.message
      }
      now = last
      if (last.terminated || last.truncated === true) break
    }
    return { table: { episode, now }, last, feedback: { score, target: null, message } }
  })

  return makeText<Table>({
    id,
    type,
    metadata,
    ...(maxSteps === undefined ? {} : { maxSteps }),
    begin: Effect.fnUntraced(function* (random: Stream) {
      const episode = yield* game.begin(random.child("game"))
      const { table } = yield* playOn({ episode, now: episode }, null, random)
      return { state: table, observation: table.now.observations[player] ?? "" }
    }),
    step: Effect.fnUntraced(function* (from: Table, action: string, random: Stream) {
      const { table, last, feedback } = yield* playOn(from, action, random)
      return {
        state: table,
        observation: table.now.observations[player] ?? null,
        feedback,
        terminated: last?.terminated ?? false,
        ...(last?.truncated === undefined ? {} : { truncated: last.truncated }),
        ...(last?.info === undefined ? {} : { info: last.info }),
      }
    }),
  })
}
