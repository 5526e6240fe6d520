/**
 * Makes the env of a game in which one policy plays all agents: a batch has a row for each agent of each game. The rows of a
 * game are neighbours, and their episodes begin and end together.
 */
import { utf8 } from "../../../base/text/utf8.ts"
import { messageOf, oneLine } from "../../../base/text/text.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { actionReader } from "../Batch.ts"
import type { BatchEnv, EnvBatchOptions, Snapshot } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { batchOf, type KernelArrays, errorAt, type EnvKernel, streamsOf } from "../internal/episodes.ts"
import { ofWholeGames, rowsOfGame } from "../internal/games.ts"
import { fromText, toText } from "../internal/plainData.ts"
import { givenMaskWriter } from "../internal/rows.ts"
import { writerOf } from "../internal/values.ts"
import { type ActionSpace, choicesOf, sizeOf, type Space } from "../Space.ts"
import { actingAgents, advance, asPosition, begin, type Game, hasMasks, maskAt, type GamePosition } from "./Game.ts"

/** Makes the env whose batches have a row for each agent. Its `reset` and `step` throw: only a batch can step it. */
export const sharedEnv = <A extends ActionSpace, O extends Space>(
  game: Game<unknown, A, O>,
): Env<GamePosition, A, O> => {
  const { id, agents, observationSpace, actionSpace, maxSteps, renderText, renderSvg } = game
  const refuse = (): never => {
    throw invalid(
      id,
      "it has several agents, so a single state has no observation; MultiEnv.against makes an env of one agent",
    )
  }
  const env: Env<GamePosition, A, O> = {
    id,
    observationSpace,
    actionSpace,
    agents,
    ...(maxSteps !== undefined && { maxSteps }),
    reset: refuse,
    observe: refuse,
    step: refuse,
    ...(hasMasks(game) && { actionMask: refuse }),
    ...(renderText && { renderText: ({ inner }: GamePosition) => renderText.call(game, inner) }),
    ...(renderSvg && { renderSvg: ({ inner }: GamePosition) => renderSvg.call(game, inner) }),
    batch: (numEnvs, options) => batchOfAgents(env, game, numEnvs, options),
  }
  return env
}

const batchOfAgents = (env: Env, game: Game, numEnvs: number, options: EnvBatchOptions): BatchEnv => {
  const count = rowsOfGame(env, numEnvs)
  const batch = batchOf(env, numEnvs, options, (columns) => kernelOf(env, game, columns))
  return { ...batch, restart: (mask) => batch.restart(mask.length === numEnvs ? ofWholeGames(mask, count) : mask) }
}

/** Calls functions of the game; an exception becomes an error that says where it happened. */
const guarded = <T>(id: string, { episodes }: KernelArrays, index: number, step: number, body: () => T): T => {
  try {
    return body()
  } catch (error) {
    if (error instanceof EnvError && error.index !== undefined) throw error
    const what = error instanceof Error && !(error instanceof EnvError) ? `${error.name}: ` : ""
    const stack = error instanceof Error ? error.stack : undefined
    throw errorAt(id, index, episodes[index], step, oneLine(`${what}${messageOf(error)}`), stack)
  }
}

const kernelOf = (env: Env, game: Game, columns: KernelArrays): EnvKernel => {
  const { numEnvs, observations, rewards, terminated, truncated, episodes, elapsed } = columns
  const count = game.agents.length
  const size = sizeOf(env.observationSpace)
  const rowSize = sizeOf(rowSpaceOf(env))
  const write = writerOf(env.observationSpace, "observation")
  const choices = hasMasks(game) ? (choicesOf(env.actionSpace) ?? []) : []
  const writeMask = givenMaskWriter(choices)
  const waitingMask = choices.flatMap((options) => Array.from({ length: options }, (_, choice) => choice === 0))
  const freeMask = waitingMask.map(() => true)
  const actionAt = actionReader(env.actionSpace)
  const games: Array<GamePosition> = []
  const { streams, ...positions } = streamsOf(env.id, numEnvs / count)

  /**
   * Writes the row of an agent. For an agent that has left, the row is all zeros; for one that waits, the mask allows
   * only the choice 0.
   */
  const show = (index: number, step: number, isAway: boolean, isOver: boolean): void => {
    const agent = index % count
    const position = games[(index - agent) / count]
    if (isAway) observations.fill(0, index * rowSize, index * rowSize + size)
    const isActing = !isAway && !isOver && actingAgents(game, position).includes(agent)
    const mask = isOver ? freeMask : isActing ? (maskAt(game, position, agent) ?? freeMask) : waitingMask
    const problem =
      (isAway ? undefined : write(game.observe(position.inner, agent), observations, index * rowSize)) ??
      (choices.length === 0 ? undefined : writeMask(mask, observations, index * rowSize + size))
    if (problem !== undefined) throw errorAt(env.id, index, episodes[index], step, problem)
  }

  const start = (index: number, random: Stream): void =>
    guarded(env.id, columns, index, 0, () => {
      const agent = index % count
      // Rows begin in order, so the first agent's row begins the game.
      if (agent === 0) {
        streams[index / count] = random
        games[index / count] = begin(game, random)
      }
      show(index, 0, false, false)
    })

  const advanceGame = (first: number, actions: Float32Array | Int32Array): void => {
    const at = first / count
    const { left } = games[at]
    const taken = left.map((_, agent) => actionAt(actions, first + agent))
    const next = advance(game, games[at], taken, streams[at])
    games[at] = next.position
    for (let agent = 0; agent < count; agent++) {
      const index = first + agent
      rewards[index] = next.rewards[agent]
      const isAway = left[agent] || (next.position.left[agent] && !next.isOver)
      // When a game is truncated, an agent that has already left has no next state to bootstrap from, so its episode is
      // terminated.
      terminated[index] = next.isOver || (next.isTruncated && isAway) ? 1 : 0
      truncated[index] = next.isTruncated ? 1 : 0
      show(index, elapsed[index] + 1, isAway, next.isOver)
    }
  }

  return {
    start,
    advance: (actions, waiting) => {
      for (let first = 0; first < numEnvs; first += count) {
        if (waiting[first] === 0) guarded(env.id, columns, first, elapsed[first] + 1, () => advanceGame(first, actions))
      }
    },
    stateAt: (index) => games[Math.floor(index / count)],
    save: () => ({ states: utf8.encode(toText(games)), ...positions.save() }),
    load: (saved: Snapshot, streamOf) => {
      positions.load(saved, (at) => streamOf(at * count))
      for (const [at, position] of statesIn(env.id, saved, numEnvs / count).entries())
        games[at] = asPosition(env.id, position)
    },
  }
}

/** Reads the states of the games, which a snapshot holds as JSON text. */
export const statesIn = (id: string, saved: Snapshot, count: number): ReadonlyArray<unknown> => {
  const text = saved["states"]
  const states = text instanceof Uint8Array ? fromText(utf8.decode(text)) : undefined
  if (Array.isArray(states) && states.length === count) return states
  throw invalid(id, `the snapshot doesn't fit: it has no ${count} states`)
}
