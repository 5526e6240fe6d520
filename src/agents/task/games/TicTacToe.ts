/**
 * Makes games of tic-tac-toe in words. `players` is the game for two agents. The tasks of a data set are games against
 * an opponent; whether the agent plays X or O is random. Winning gives 1 point, a draw half a point. A protocol for
 * self-play, `SelfPlay`, plays the same games without the opponent.
 *
 * @example
 * ```yaml
 * train_dataset: { type: tic_tac_toe, num_tasks: 1000, seed: 1, opponent: optimal }
 * ```
 */
import { Schema } from "effect"
import { fraction, intBetween, withDefault } from "../../../base/config/fields.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { playOptimally, playRandomly, turned, wins } from "../../../base/games/ticTacToe.ts"
import { make as against, type TextPolicy } from "../Against.ts"
import { make, type MultiTextEnv } from "../MultiTextEnv.ts"
import { isThought, neutral } from "./aloud.ts"
import { levelFields, levelKind, shuffled } from "./levels.ts"

const marks = ["X", "O"] as const
const letters = "abc"

/** The rules that a game can have. */
export interface TicTacToeRules {
  /** What players observe: sentences with the board in three lines, or only the board's nine places in one line. */
  readonly observation: "words" | "board"
  /** The effect of an invalid move: the player moves again, or loses. */
  readonly invalidMoves: "again" | "lose"
  /** The points of both players for a draw. */
  readonly draw: number
  /** The places that are taken before the game begins, by X and O in turn. */
  readonly opening: ReadonlyArray<number>
}

const usual: TicTacToeRules = { observation: "words", invalidMoves: "again", draw: 0.5, opening: [] }

interface TicTacToeState {
  /** The nine places, row by row from the top: 0 is free, 1 is X, 2 is O. */
  readonly board: ReadonlyArray<number>
  readonly next: number
  /** The message to the player who moves again after an invalid move; null after a valid move. */
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

/**
 * Returns the place that an action names: `b2`, `B2.`, `play b2`; undefined if it names none or several. If players observe
 * only the board, they may also write the number of a place, from 1 at the top left to 9 at the bottom right.
 */
const placeOf = (action: string, { observation }: TicTacToeRules): number | undefined => {
  const number = observation === "board" ? /^\s*([1-9])\s*$/.exec(action) : null
  if (number !== null) return Number(number[1]) - 1
  const named = new Set(Array.from(action.toLowerCase().matchAll(/\b([abc])([123])\b/g), ([place]) => place))
  if (named.size !== 1) return undefined
  const [place] = named
  return 3 * (3 - Number(place[1])) + letters.indexOf(place[0])
}

const free = (board: ReadonlyArray<number>): string =>
  board.flatMap((who, place) => (who === 0 ? [nameOf(place)] : [])).join(", ")

const signs = ["123456789", "abcdefghi", "ABCDEFGHI"]

/** Formats a board in one line, from the point of view of player 1. Every character shows the place and its owner. */
const inLine = (board: ReadonlyArray<number>): string => board.map((who, place) => signs[who][place]).join("")

const howTo = "Three in a row win: across, down or diagonally. Answer with a free place, such as b2."

/** Returns the observation that a player gets; after the game, it shows the final board. */
const seenBy = (
  player: Mark,
  { board, next, note }: TicTacToeState,
  { observation, opening }: TicTacToeRules,
  over: boolean,
): string => {
  if (observation === "board") return inLine(marks.indexOf(player) === 0 ? board : turned(board))
  const moves = board.filter((who) => who !== 0).length - opening.length
  const turn = marks[next] === player ? `Your move. Free: ${free(board)}` : `${marks[next]} is to move.`
  const lines = [
    ...(note === null || marks[next] !== player ? [] : [note]),
    `Tic-tac-toe. You are ${player}.${moves < 2 ? ` ${howTo}` : ""}`,
    boardText(board),
    ...(over ? [] : [turn]),
  ]
  return lines.join("\n")
}

const both = <A>(of: (mark: Mark) => A): Readonly<Record<Mark, A>> => ({ X: of("X"), O: of("O") })

const scene = (state: TicTacToeState, rules: TicTacToeRules, over: boolean) => ({
  state,
  toMove: over ? [] : [marks[state.next]],
  observations: both((mark) => seenBy(mark, state, rules, over)),
  terminated: over,
})

/** Makes the step after an invalid move: the board stays unchanged, and the same player moves again. */
const again = (state: TicTacToeState, note: string, rules: TicTacToeRules) => ({
  ...scene({ ...state, note }, rules, false),
  feedback: { [marks[state.next]]: neutral(note) },
})

/** Makes the step after an invalid move if such a move loses the game. */
const forfeited = (state: TicTacToeState, note: string, rules: TicTacToeRules) => ({
  ...scene(state, rules, true),
  feedback: both((mark) => ({
    score: mark === marks[state.next] ? 0 : 1,
    target: null,
    message: mark === marks[state.next] ? `${note} You lose.` : `The move of ${marks[state.next]} is invalid. You win.`,
  })),
})

const moved = (state: TicTacToeState, place: number, rules: TicTacToeRules) => {
  const mover = marks[state.next]
  const board = state.board.with(place, state.next + 1)
  const won = wins(board, 0, state.next + 1)
  const drawn = !won && isOver(board)
  const end = (mark: Mark): string => {
    if (won) return mark === mover ? " You win." : " You lose."
    return drawn ? " A draw." : ""
  }
  return {
    ...scene({ board, next: 1 - state.next, note: null }, rules, isOver(board)),
    feedback: both((mark) => ({
      score: drawn ? rules.draw : won && mark === mover ? 1 : 0,
      target: null,
      message: `${mover} takes ${nameOf(place)}.${end(mark)}`,
    })),
  }
}

/** Returns the board after moves at these places, by X and O in turn. */
const boardAfter = (opening: TicTacToeRules["opening"]): ReadonlyArray<number> =>
  Array.from({ length: 9 }, (_, place) => {
    const at = opening.indexOf(place)
    return at < 0 ? 0 : (at % 2) + 1
  })

/** Draws an opening: random moves that do not end the game. */
const drawnOpening = (length: number, chance: Stream): TicTacToeRules["opening"] => {
  for (;;) {
    const opening = shuffled([0, 1, 2, 3, 4, 5, 6, 7, 8], chance).slice(0, length)
    if (!isOver(boardAfter(opening))) return opening
  }
}

/**
 * Makes the game for two players, X and O, who move in turn; X begins, unless an opening has an odd number of moves.
 *
 * @example
 * ```ts
 * const game = TextTicTacToe.playersOf({ observation: "board", invalidMoves: "lose", opening: [4, 0] })
 * const { observations } = yield* game.begin(Rng.stream(1))
 * observations["X"] // "A234e6789"
 * ```
 */
export const playersOf = (options: Partial<TicTacToeRules> = {}): MultiTextEnv => {
  const rules = { ...usual, ...options }
  const { opening, invalidMoves } = rules
  const invalid = invalidMoves === "lose" ? forfeited : again
  const first = boardAfter(opening)
  return make<TicTacToeState>({
    id: "tic_tac_toe",
    type: "tic_tac_toe",
    players: marks,
    maxSteps: 30,
    begin: () => scene({ board: first, next: opening.length % 2, note: null }, rules, false),
    step: (state, actions) => {
      const { board, next } = state
      const action = actions[marks[next]]
      if (isThought(action)) return again(state, "OK.", rules)
      const place = placeOf(action, rules)
      if (place === undefined) return invalid(state, `That names no place. Free: ${free(board)}`, rules)
      return board[place] === 0
        ? moved(state, place, rules)
        : invalid(state, `${nameOf(place)} is taken. Free: ${free(board)}`, rules)
    },
  })
}

/** The game for two players with the usual rules: an invalid move changes nothing, but takes a step. */
export const players: MultiTextEnv = playersOf()

/** Reads the board from an observation: 0 is free, 1 a mark of the observing player, 2 of the other. */
export const boardOf = (observation: string): ReadonlyArray<number> => {
  if (/^[1-9a-i]{9}$/i.test(observation))
    return Array.from(observation, (sign, place) => signs.findIndex((all) => all[place] === sign))
  const rows = Array.from(observation.matchAll(/^[123] ([.XO]) ([.XO]) ([.XO])$/gm), ([, ...cells]) => cells).flat()
  const board = rows.map((cell) => [".", "X", "O"].indexOf(cell))
  return /You are O/.test(observation) ? turned(board) : board
}

/** Makes a policy from a function that chooses a free place of a board. */
const playing =
  (choose: (board: ReadonlyArray<number>, random: Stream) => number, name = nameOf): TextPolicy =>
  (observation, random) =>
    name(choose(boardOf(observation), random))

const choices = { random: playRandomly, optimal: playOptimally }

/** A policy that takes a random free place. */
export const random: TextPolicy = playing(choices.random)
/** A policy that plays perfectly, so it never loses. */
export const optimal: TextPolicy = playing(choices.optimal)

const numberOf = (place: number): string => String(place + 1)

/** The largest number of moves in an opening; after these, a game can still be won. */
const longestOpening = 6

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("tic_tac_toe"), "tic_tac_toe"),
  ...levelFields,
  /** The opponent: `random` draws its moves, `optimal` plays perfectly. Self-play has none. */
  opponent: withDefault(Schema.Literals(["random", "optimal"]), "random"),
  /**
   * `words` describes the game in sentences. `board` is for small models: it shows only the nine places, such as `1b3D56789`.
   * A free place is shown by its number, the agent's own by a small letter, the other player's by a capital letter. With
   * `board`, the number of a place is also a valid move.
   */
  observation: withDefault(Schema.Literals(["words", "board"]), "words"),
  /** The effect of an invalid move: `again` lets the player move again, `lose` ends the game. */
  invalidMoves: withDefault(Schema.Literals(["again", "lose"]), "again"),
  /** The points for a draw. With 1, the mean score is the share of games that were not lost. */
  draw: withDefault(fraction, 0.5),
  /** The player whose moves an agent imitates in supervised steps. */
  demonstration: withDefault(Schema.Literals(["random", "optimal"]), "optimal"),
  /** The largest number of random moves with which a game begins. */
  opening: withDefault(intBetween(0, longestOpening), 0),
})
export const kind = levelKind("tic_tac_toe", Config, (config, id, level, chance) => {
  const { opponent, observation, invalidMoves, draw } = config
  const drawn = marks[chance.integer(2)]
  const length = config.opening === 0 ? 0 : chance.integer(config.opening + 1)
  const opening = drawnOpening(length, chance)
  // After four moves, the next player can win at once, so the agent plays that side.
  const player = length < 4 ? drawn : marks[length % 2]
  const metadata = { level, player, opponent }
  const game = playersOf({ observation, invalidMoves, draw, opening })
  const demonstrate = playing(choices[config.demonstration], observation === "board" ? numberOf : nameOf)
  return against(game, { id, type: "tic_tac_toe", metadata, player, others: playing(choices[opponent]), demonstrate })
})
