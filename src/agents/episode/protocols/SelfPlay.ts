/**
 * Defines the protocol in which one agent plays all players of a task's game, such as both X and O of a tic-tac-toe task.
 * `play` returns a rollout for each player, with that player's rewards. The task's own policy for the other players is not
 * used.
 *
 * @example
 * ```ts
 * const protocol = SelfPlay.make(agent)
 * const { tasks } = yield* Datasets.open({ type: "tic_tac_toe", num_tasks: 100 }, { baseDir: "." })
 * const env = yield* tasks.at(0)
 * const rollouts = yield* protocol.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * rollouts.map(({ meta }) => meta.player) // ["X", "O"]
 * ```
 */
import { Effect } from "effect"
import type { Agent } from "../../agent/Agent.ts"
import type { Protocol } from "../Protocol.ts"
import { ProtocolError } from "../ProtocolError.ts"
import * as MultiAgentSync from "./MultiAgentSync.ts"

const name = "SelfPlay"

/** Makes the protocol. Clones of the agent, which share its memory, play each player of each episode. */
export const make = (agent: Agent, options: MultiAgentSync.MultiAgentOptions = {}): Protocol => {
  const players = MultiAgentSync.make(agent, options)
  return {
    name,
    play: ({ env, ...episode }) => {
      const { id, type, game } = env
      if (game !== undefined) return players.play({ ...episode, env: game })
      const message = `${id}: expected a game for several players, such as tic_tac_toe; ${type} is for one`
      return Effect.fail(new ProtocolError({ protocol: name, rollout: episode.id, message }))
    },
  }
}
