/**
 * Makes games of tic-tac-toe in words. `players` is the game for two agents. The tasks of a data set are games against
 * an opponent; whether the agent plays X or O is random. Winning gives 1 point, a draw half a point.
 *
 * @example
 * ```yaml
 * train_dataset: { type: tic_tac_toe, num_tasks: 1000, seed: 1, opponent: optimal }
 * ```
 */
import { Schema } from "effect"
import { withDefault } from "../../config/fields.ts"
import type { Stream } from "../../rng/Rng.ts"
import { playOptimally, playRandomly, turned, wins } from "../../env/games/TicTacToe.ts"
import { make as against, type Policy } from "../Against.ts"
import { make, type MultiTextEnv } from "../MultiTextEnv.ts"
import { isThought, neutral } from "./aloud.ts"
import { levelFields, levelKind } from "./levels.ts"

const marks = ["X", "O"] as const
const letters = "abc"

interface State {
  /** The nine places, row by row from the top: 0 is free, 1 is X, 2 is O. */
  readonly board: ReadonlyArray<number>
  readonly next: number
  /** The message to the player whose turn it is after an invalid move of this player; null after a valid move. */
  readonly note: string | null
}

type Mark = (typeof marks)[number]

const isOver = (board: ReadonlyArray<number>): boolean => wins(board, 0, 1) || wins(board, 0, 2) || !board.includes(0)

/** Returns the name of a place. As in chess, `a1` is the place at the bottom left. */
const nameOf = (place: number): string => `${letters[place % 3]}${3 - Math.floor(place / 3)}`

const boardText = (board: ReadonlyArray<number>): string =>
  [
    ...[0, 1, 2].map(
      (row) => `${3 - row} ${[0, 1, 2].map((column) => [".", "X", "O"][board[3 * row + column]]).join(" ")}`,
    ),
    "  a b c",
  ].join("\n")

/** Returns the place that an action names: `b2`, `B2.`, `play b2`; undefined if it names none or several. */
const placeOf = (action: string): number | undefined => {
  const named = new Set(Array.from(action.toLowerCase().matchAll(/\b([abc])([123])\b/g), ([place]) => place))
  if (named.size !== 1) return undefined
  const [place] = named
  return 3 * (3 - Number(place[1])) + letters.indexOf(place[0])
}

const free = (board: ReadonlyArray<number>): string =>
  board.flatMap((who, place) => (who === 0 ? [nameOf(place)] : [])).join(", ")

const howTo = "Three in a row win: across, down or diagonally. Answer with a free place, such as b2."

/** Returns the observation that a player gets; after the game, it shows the final board. */
const seenBy = (player: Mark, { board, next, note }: State): string => {
  const isFirst = board.filter((who) => who !== 0).length < 2
  const turn = marks[next] === player ? `Your move. Free: ${free(board)}` : `${marks[next]} is to move.`
  const lines = [
    ...(note === null || marks[next] !== player ? [] : [note]),
    `Tic-tac-toe. You are ${player}.${isFirst ? ` ${howTo}` : ""}`,
    boardText(board),
    ...(isOver(board) ? [] : [turn]),
  ]
  return lines.join("\n")
}

const both = <A>(of: (mark: Mark) => A): Readonly<Record<Mark, A>> => ({ X: of("X"), O: of("O") })

const scene = (state: State) => {
  const over = isOver(state.board)
  return {
    state,
    toMove: over ? [] : [marks[state.next]],
    observations: both((mark) => seenBy(mark, state)),
    terminated: over,
  }
}

/** Makes the step after an invalid move: the board stays unchanged, and the same player moves again. */
const again = (state: State, note: string) => ({
  ...scene({ ...state, note }),
  feedback: { [marks[state.next]]: neutral(note) },
})

const moved = (state: State, place: number) => {
  const mover = marks[state.next]
  const board = state.board.with(place, state.next + 1)
  const won = wins(board, 0, state.next + 1)
  const drawn = !won && isOver(board)
  const end = (mark: Mark): string => (won ? (mark === mover ? " You win." : " You lose.") : drawn ? " A draw." : "")
  return {
    ...scene({ board, next: 1 - state.next, note: null }),
    feedback: both((mark) => ({
      score: drawn ? 0.5 : won && mark === mover ? 1 : 0,
      target: null,
      message: `${mover} takes ${nameOf(place)}.${end(mark)}`,
    })),
  }
}

/** The game for two players, X and O; X begins. An invalid move changes nothing, but takes a step. */
export const players: MultiTextEnv = make<State>({
  id: "tic_tac_toe",
  type: "tic_tac_toe",
  players: marks,
  maxSteps: 30,
  begin: () => scene({ board: Array.from({ length: 9 }, () => 0), next: 0, note: null }),
  step: (state, actions) => {
    const { board, next } = state
    const action = actions[marks[next]]
    if (isThought(action)) return again(state, "OK.")
    const place = placeOf(action)
    if (place === undefined) return again(state, `That names no place. Free: ${free(board)}`)
    return board[place] === 0 ? moved(state, place) : again(state, `${nameOf(place)} is taken. Free: ${free(board)}`)
  },
})

/** Reads the board from an observation: 0 is free, 1 a mark of the observing player, 2 of the other. */
export const boardOf = (observation: string): ReadonlyArray<number> => {
  const rows = Array.from(observation.matchAll(/^[123] ([.XO]) ([.XO]) ([.XO])$/gm), ([, ...cells]) => cells).flat()
  const board = rows.map((cell) => [".", "X", "O"].indexOf(cell))
  return /You are O/.test(observation) ? turned(board) : board
}

/** Makes a policy from a function that chooses a free place of a board. */
const playing =
  (choose: (board: ReadonlyArray<number>, random: Stream) => number): Policy =>
  (observation, random) =>
    nameOf(choose(boardOf(observation), random))

/** A policy that takes a random free place. */
export const random: Policy = playing(playRandomly)
/** A policy that plays perfectly: it never loses. */
export const optimal: Policy = playing(playOptimally)

const policies = { random, optimal }

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("tic_tac_toe"), "tic_tac_toe"),
  ...levelFields,
  /** The opponent: `random` draws its moves, `optimal` plays perfectly. */
  opponent: withDefault(Schema.Literals(["random", "optimal"]), "random"),
})
export type Config = typeof Config.Type

export const kind = levelKind("tic_tac_toe", Config, ({ opponent }, id, level, chance) => {
  const player = marks[chance.integer(2)]
  const metadata = { level, player, opponent }
  return against(players, { id, type: "tic_tac_toe", metadata, player, others: policies[opponent] })
})
