/** Keeps the rows of each game together in batches that have a row for each agent of each game. */
import type { Env } from "../Env.ts"
import { invalid } from "../../../base/EnvError.ts"

/**
 * Returns the number of rows of a game: its number of agents, or 1. Throws an `EnvError` unless `numEnvs` is a
 * multiple.
 */
export const rowsOfGame = ({ id, agents }: Pick<Env, "id" | "agents">, numEnvs: number): number => {
  if (agents === undefined) return 1
  const { length: count } = agents
  if (numEnvs % count === 0) return count
  throw invalid(
    id,
    `it has a row for each of its ${count} agents; expected a multiple of ${count} as the number of envs, found ${numEnvs}`,
  )
}

/** Extends a mask to whole games: if one row of a game is marked, marks all its rows. */
export const ofWholeGames = (mask: Uint8Array, count: number): Uint8Array =>
  count === 1
    ? mask
    : mask.map((_, index) => Math.max(...mask.subarray(index - (index % count), index - (index % count) + count)))
