/**
 * Makes the env of one agent of a game that runs elsewhere, such as PettingZoo's, in which opponents play the other
 * agents. The masks of the rows tell whose turn it is: an agent that waits may only choose 0. If an agent that acts has
 * no choice but 0, it is treated as waiting.
 */
import { Effect, type Scope } from "effect"
import type { Stream } from "../../../base/rng/Rng.ts"
import { actionReader } from "../Batch.ts"
import type { ActionOf, Env } from "../Env.ts"
import { rowSpaceOf } from "../Env.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { asyncBatchOf } from "../internal/asyncEpisodes.ts"
import { type AsyncColumns, type AsyncKernel, command } from "../internal/asyncKernel.ts"
import { elsewhere } from "../internal/elsewhere.ts"
import { arraysFor } from "../internal/episodes.ts"
import type { OpenKernel } from "../internal/kernels.ts"
import { unflatten } from "../internal/values.ts"
import { type ActionSpace, choicesOf, isWhole, sizeOf } from "../Space.ts"
import { formIn, nameOf, type Opponents, type AgainstOptions } from "./against.ts"
import { mostWaiting } from "./courses.ts"
import { noAction } from "./Game.ts"
import type { OpponentQuestion, Later, Now, Responder } from "./opponents.ts"

/** A game that runs elsewhere. */
export type GameElsewhere = Env & { readonly agents: ReadonlyArray<string> }

/** Makes the env of one agent of a game whose rows `openGames` opens. */
export const againstElsewhere = (
  game: GameElsewhere,
  openGames: OpenKernel,
  opponents: Opponents,
  options: AgainstOptions,
): Env => {
  const { agents, observationSpace, actionSpace, maxSteps } = game
  const id = nameOf(game, opponents, options)
  const forms = agents.map((agent) => formIn(game, opponents, agent, options.as))
  const fixedSeat = options.as === undefined ? undefined : agents.indexOf(options.as)
  const env: Env = {
    id,
    observationSpace,
    actionSpace,
    ...(maxSteps !== undefined && { maxSteps }),
    ...elsewhere({ id, actionSpace }, game.actionMask !== undefined),
    open: (numEnvs, batch) =>
      asyncBatchOf(env, numEnvs, batch, (columns) => openKernel({ game, forms, fixedSeat }, openGames, columns)),
  }
  return env
}

/** A game of a batch during one step of the env. */
interface PendingGame {
  /**
   * `own`: the trained agent takes its action; `others`: opponents play until it acts again, or the game ends; `first`:
   * opponents play until its first turn.
   */
  phase: "own" | "others" | "first"
  /** Whether the next exchange starts a new game. */
  starts: boolean
  /** The number of steps that the game has taken so far in this step of the env. */
  rounds: number
}

/**
 * The opponents, by the numbers of the agents that they play, and (`fixedSeat`) the trained agent, if it is always the
 * same.
 */
interface Players {
  readonly game: GameElsewhere
  readonly forms: ReadonlyArray<Now | Later>
  readonly fixedSeat: number | undefined
}

/** A question to an opponent that answers by Effects. `target` is the row into which its action is written. */
type PendingQuestion = OpponentQuestion & { readonly target: number }

/** The games of a batch, with a row for each agent. */
interface Games extends Players {
  /** The rows of the env, one for each game. */
  readonly columns: AsyncColumns
  /** The rows of the games, one for each agent. */
  readonly rows: AsyncColumns
  readonly kernel: AsyncKernel
  readonly later: ReadonlyArray<Later>
  readonly opened: ReadonlyArray<Responder>
  /** The number of agents, the length of a row, and the length of the observation in it. */
  readonly count: number
  readonly rowSize: number
  readonly size: number
  /** The mask of an agent that waits: it allows only the first choice of each element. */
  readonly waitingMask: ReadonlyArray<number>
  /** The number of games that each env has begun in the current step. */
  readonly begun: Int32Array
  /** For each game: the number of the trained agent, the random numbers, and how often the others have moved. */
  readonly seats: Int32Array
  readonly randoms: Array<Stream>
  readonly moves: Int32Array
  readonly memories: Array<Array<ReadonlyArray<number> | null>>
  /** The actions of all agents. */
  readonly actions: Float32Array | Int32Array
  readonly ownAction: ReturnType<typeof actionReader>
  readonly noAnswer: ActionOf<ActionSpace>
  /** Whether the first games have begun. */
  hasBegun: boolean
}

const openKernel = Effect.fnUntraced(function* (
  players: Players,
  openGames: OpenKernel,
  columns: AsyncColumns,
): Effect.fn.Return<AsyncKernel, EnvError, Scope.Scope> {
  const games = yield* open(players, openGames, columns)
  const { kernel, opened, count } = games
  return {
    exchange: (actions) => exchange(games, actions),
    ...(kernel.renderSvg && { renderSvg: (at: number) => kernel.renderSvg?.(at * count) ?? Effect.succeed("") }),
    others: {
      save: () => Object.assign({}, ...opened.map(({ save }) => save?.() ?? {})),
      load: (saved) =>
        Effect.gen(function* () {
          for (const { load } of opened) if (load !== undefined) yield* load(saved)
          games.hasBegun = true
        }),
    },
  }
})

/** Opens the games and the opponents that answer by Effects. */
const open = Effect.fnUntraced(function* (
  players: Players,
  openGames: OpenKernel,
  columns: AsyncColumns,
): Effect.fn.Return<Games, EnvError, Scope.Scope> {
  const { game, forms } = players
  const { agents, actionSpace } = game
  const { numEnvs } = columns
  const count = agents.length
  const rowSpace = rowSpaceOf(game)
  const begun = new Int32Array(numEnvs)
  const rows = rowsOf(columns, count, sizeOf(rowSpace), begun)
  const kernel = yield* openGames(rows)
  const later = [...new Set(forms.filter((form) => form._tag === "Later"))]
  const place = { id: game.id, rowSpace, actionSpace, rows: numEnvs, perRow: count - 1 }
  const opened = yield* Effect.forEach(later, (form) => form.open(place))
  return {
    ...players,
    columns,
    rows,
    kernel,
    later,
    opened,
    count,
    rowSize: sizeOf(rowSpace),
    size: sizeOf(game.observationSpace),
    waitingMask: (choicesOf(actionSpace) ?? []).flatMap((options) =>
      Array.from({ length: options }, (_, choice) => (choice === 0 ? 1 : 0)),
    ),
    begun,
    seats: new Int32Array(numEnvs),
    randoms: [],
    moves: new Int32Array(numEnvs),
    memories: [],
    actions: new (isWhole(actionSpace) ? Int32Array : Float32Array)(count * numEnvs * sizeOf(actionSpace)),
    ownAction: actionReader(actionSpace),
    noAnswer: noAction(actionSpace),
    hasBegun: false,
  }
})

/** Makes the rows of the agents. If several games begin in the same step, each has random numbers of its own. */
const rowsOf = (columns: AsyncColumns, count: number, rowSize: number, begun: Int32Array): AsyncColumns => {
  const numEnvs = count * columns.numEnvs
  return {
    ...arraysFor(numEnvs, rowSize, undefined),
    numEnvs,
    episodes: new Int32Array(numEnvs),
    elapsed: new Int32Array(numEnvs),
    commands: new Uint8Array(numEnvs),
    nextEpisode: (row) => {
      const at = Math.floor(row / count)
      const random = columns.nextEpisode(at)
      return begun[at] === 0 ? random : random.child("again", begun[at])
    },
  }
}

const maskAt = ({ rows, rowSize, size }: Games, row: number): Float32Array =>
  rows.observations.subarray(row * rowSize + size, (row + 1) * rowSize)

/** Tells whether the agent of a row acts now: its mask allows more than waiting. */
const acts = (games: Games, row: number): boolean =>
  games.rowSize === games.size || maskAt(games, row).some((allowed, at) => allowed !== games.waitingMask[at])

const put = ({ actions, game }: Games, row: number, action: ActionOf<ActionSpace>): void => {
  if (typeof action === "number") actions[row] = action
  else actions.set(action, row * sizeOf(game.actionSpace))
}

/** Prepares a game that has just begun: draws the trained agent, and resets the opponents' memories. */
const prepare = (games: Games, at: number): void => {
  const { game, fixedSeat, rows, count, randoms, seats, memories, moves, begun } = games
  randoms[at] = rows.nextEpisode(at * count).child("against")
  seats[at] = fixedSeat ?? randoms[at].child("seat").integer(count)
  memories[at] = game.agents.map(() => null)
  moves[at] = 0
  begun[at]++
}

/** Writes the actions of a game's other agents, or collects the questions for opponents that answer by Effects. */
const playOthers = (games: Games, at: number, asked: ReadonlyArray<Array<PendingQuestion>>): void => {
  const { game, forms, rows, rowSize, size, count, seats, moves, memories, randoms, later } = games
  const move = moves[at]++
  for (const [agent, form] of forms.entries()) {
    const row = at * count + agent
    if (agent === seats[at]) continue
    put(games, row, games.noAnswer)
    if (!acts(games, row)) continue
    const observation = unflatten(game.observationSpace, rows.observations, row * rowSize)
    const mask = rowSize > size ? maskAt(games, row).slice() : undefined
    if (form._tag === "Now") {
      const random = randoms[at].child("move", move, agent)
      put(games, row, form.play(observation, { agent: game.agents[agent], mask, random }))
    } else {
      const memory = memories[at][agent]
      asked[later.indexOf(form)].push({ row: at, agent, observation, mask, memory, target: row })
    }
  }
}

const answerAll = Effect.fnUntraced(function* (games: Games, asked: ReadonlyArray<ReadonlyArray<PendingQuestion>>) {
  for (const [index, questions] of asked.entries()) {
    if (questions.length === 0) continue
    const answers = yield* games.opened[index].answer(questions)
    for (const [number, { row, agent, target }] of questions.entries()) {
      put(games, target, answers[number].action)
      games.memories[row][agent] = answers[number].memory
    }
  }
})

/** Copies the row of a game's trained agent to the env's row. */
const copyRow = ({ count, seats, rowSize }: Games, into: Float32Array, at: number, from: Float32Array): void => {
  const row = at * count + seats[at]
  into.set(from.subarray(row * rowSize, (row + 1) * rowSize), at * rowSize)
}

/** Reads the result of an exchange for one game. Returns whether the env's step (or reset) is complete. */
const finish = (games: Games, at: number, pending: PendingGame): boolean => {
  const { columns, rows, count, seats } = games
  if (pending.starts) {
    prepare(games, at)
    pending.starts = false
    pending.phase = "first"
  } else finishMove(games, at, pending)
  if (!acts(games, at * count + seats[at])) return false
  if (pending.phase === "others" && columns.commands[at] === command.lastStep) {
    copyRow(games, columns.finalObservations, at, rows.observations)
    pending.starts = true
    return false
  }
  copyRow(games, columns.observations, at, rows.observations)
  return true
}

/** Adds the result of a step of the game to the env's step, and prepares the next game if this one is over. */
const finishMove = (games: Games, at: number, pending: PendingGame): void => {
  const { columns, rows, count, seats } = games
  const row = at * count + seats[at]
  const isOver = (rows.terminated[row] | rows.truncated[row]) !== 0
  if (pending.phase !== "first") {
    columns.rewards[at] += rows.rewards[row]
    if (isOver) {
      columns.terminated[at] = rows.terminated[row]
      columns.truncated[at] = rows.truncated[row]
      copyRow(games, columns.finalObservations, at, rows.finalObservations)
    }
  }
  if (isOver) {
    // The next game has begun already, by the seed that was sent with this step.
    prepare(games, at)
    pending.phase = "first"
  } else if (pending.phase === "own") pending.phase = "others"
}

/** Returns a `PendingGame` for each game that a command steps or starts. */
const pendingGamesOf = ({ columns }: Games): Map<number, PendingGame> => {
  const { numEnvs, commands, rewards, terminated } = columns
  const running = new Map<number, PendingGame>()
  for (let at = 0; at < numEnvs; at++) {
    if (commands[at] === command.none) continue
    const starts = commands[at] === command.start
    running.set(at, { phase: "own", starts, rounds: 0 })
    if (!starts) rewards[at] = terminated[at] = 0
  }
  return running
}

/** Carries out the commands: steps the games until each trained agent acts again. */
const exchange = Effect.fnUntraced(function* (
  games: Games,
  envActions: Float32Array | Int32Array,
): Effect.fn.Return<void, EnvError> {
  const { game, rows, opened, kernel, count, seats, ownAction, noAnswer } = games
  // Reset opponents such as past selves only when the first episodes begin, not when the batch is reset later.
  if (!games.hasBegun) for (const { reset = Effect.void } of opened) yield* reset
  games.hasBegun = true
  games.begun.fill(0)
  const running = pendingGamesOf(games)
  while (running.size > 0) {
    rows.commands.fill(command.none)
    rows.truncated.fill(0)
    const asked = opened.map((): Array<PendingQuestion> => [])
    for (const [at, pending] of running) {
      if (pending.rounds++ === mostWaiting) {
        return yield* invalid(game.id, `${mostWaiting} steps passed without a turn of ${game.agents[seats[at]]}`)
      }
      rows.commands.fill(pending.starts ? command.start : command.step, at * count, (at + 1) * count)
      if (pending.starts) continue
      put(games, at * count + seats[at], pending.phase === "own" ? ownAction(envActions, at) : noAnswer)
      playOthers(games, at, asked)
    }
    yield* answerAll(games, asked)
    yield* kernel.exchange(games.actions)
    for (const [at, pending] of running) {
      if (finish(games, at, pending)) running.delete(at)
    }
  }
})
