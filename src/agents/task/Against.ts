/**
 * Turns a game for several players into a task for one player, the agent. A policy plays each of the other players, from that
 * player's own observations. The task also has the original game, so that agents can play it against each other.
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
import type { Stream } from "../../base/rng/Rng.ts"
import { EnvError } from "../../base/EnvError.ts"
import type { MultiTextEnv, MultiTextEpisode, MultiTextStep, Scene } from "./MultiTextEnv.ts"
import { make as makeText, type TextEnv } from "./TextEnv.ts"

/** Returns the action of a player, from its observation and its own random stream. */
export type TextPolicy = (observation: string, random: Stream) => string

/**
 * The fields of the task, the agent's player, and the policy of the others. By default, `metadata` and `maxSteps` are those
 * of the game.
 */
export interface TextSeat
  extends Pick<TextEnv, "id" | "type" | "maxSteps" | "demonstrate">, Partial<Pick<TextEnv, "metadata">> {
  /** The player that the agent plays. */
  readonly player: string
  /** The policy of all other players. */
  readonly others: TextPolicy
}

/** The number of steps that the game may take without a turn of the agent. After that, the step fails with an `EnvError`. */
const mostSteps = 1000

/** The state of the task: the game's episode, and in `now` the players that act next and the players' observations. */
interface Table {
  readonly episode: MultiTextEpisode
  readonly now: Scene
}

/** Makes an env in which the agent plays one player and policies play the others. */
export const make = (game: MultiTextEnv, seat: TextSeat): TextEnv => {
  const { id, type, metadata = game.metadata, player, others, maxSteps = game.maxSteps, demonstrate } = seat

  /** Plays until it is the agent's turn or the game is over. `own` is the agent's action; null at the beginning. */
  const playOn = Effect.fnUntraced(function* ({ episode, now: first }: Table, own: string | null, random: Stream) {
    let now = first
    let pending = own
    let last: MultiTextStep | null = null
    let score = 0
    let message = ""
    for (let step = 0; pending !== null || !now.toMove.includes(player); step++) {
      if (step === mostSteps) {
        const message = `env "${id}": the others moved ${step} times without ending their turns`
        return yield* new EnvError({ env: id, message })
      }
      const actions: Record<string, string> = {}
      for (const who of now.toMove) {
        actions[who] =
          who === player ? (pending ?? "") : others(now.observations[who] ?? "", random.child("others", step, who))
      }
      if (now.toMove.includes(player)) pending = null
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

  const env = makeText<Table>({
    id,
    type,
    metadata,
    ...(maxSteps === undefined ? {} : { maxSteps }),
    ...(demonstrate === undefined ? {} : { demonstrate }),
    begin: Effect.fnUntraced(function* (random: Stream) {
      const episode = yield* game.begin(random.child("game"))
      const { table } = yield* playOn({ episode, now: episode }, null, random)
      return { state: table, observation: table.now.observations[player] ?? "" }
    }),
    step: Effect.fnUntraced(function* (before: Table, action: string, random: Stream) {
      const { table, last, feedback } = yield* playOn(before, action, random)
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
  return { ...env, game }
}
