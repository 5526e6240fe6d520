/**
 * Draws board games, with keys for the actions below the board. Each game's function in `boards.ts` or
 * `minAtarBoards.ts` finds the pieces in the numbers of a state, and `pieces.ts` draws them.
 */
import * as pageText from "./pageText.ts"
import { picturesOf } from "./pictures.ts"
import { pieces } from "./pieces.ts"
import type { EnvDrawing, StagePoint } from "./shapes.ts"

/** The board of a game. */
interface Board {
  readonly rows: number
  readonly columns: number
  /** Whether the player changes with every move, as in self-play. */
  readonly turns: boolean
}

interface BoardValues extends Board {
  /** The direction of each action's key, [right, down]. If the list is empty, an action is a place on the board. */
  readonly moves: ReadonlyArray<StagePoint>
  readonly look: Look
  readonly pieces: typeof pieces
}

/** A piece: its kind (a key of `pieces` below), row and column, and a number that some kinds use. */
type BoardPiece = readonly [kind: string, row: number, column: number, detail?: number]

/** The visible part of a state: its pieces, of which later ones are drawn on top, and a note. */
interface SeenBoard {
  readonly pieces: ReadonlyArray<BoardPiece>
  readonly note: string
  /** The places of a winning row. */
  readonly row?: ReadonlyArray<number> | undefined
  /** The kind of the piece that an action places. */
  readonly next?: string
}

/** Finds the pieces of a state. `piece` makes a piece from the number of its place. */
type Look = (
  state: ReadonlyArray<number>,
  board: Board,
  piece: (kind: string, place: number) => BoardPiece,
) => SeenBoard

/** The function that finds the pieces of a state, and its source text, which browsers get. */
export interface BoardGame {
  readonly look: Look
  readonly source: string
}

/** The arrows of the nine directions in three rows of three: an arrow's row and column tell its direction. */
const arrows = "↖↑↗←·→↙↓↘"

/** The sign of an action that fires. Its key is to the right of the arrows. */
const fire = "✦"

/** Returns the direction of an arrow as [right, down], each −1, 0 or 1; that of the sign to fire is outside of them. */
const directionOf = (arrow: string): StagePoint => {
  if (arrow === fire) return [2, 0]
  const at = arrows.indexOf(arrow)
  return [(at % 3) - 1, Math.floor(at / 3) - 1]
}

export const drawBoard: EnvDrawing<BoardValues>["draw"] = (stage, state, [action], values) => {
  const { colours, faded, line, slab, border, arrow, words, keys, letter, within } = stage
  const { rows, columns, moves, look, pieces, width } = values
  const cell = 408 / Math.max(rows, columns)
  const corner: StagePoint = [(width - columns * cell) / 2, 44 + (408 - rows * cell) / 2]
  const isSmall = cell < 12
  const players = ["agent", "paddle", "chicken", "cannon", "sub"]
  const seen = look(state, values, (kind, place) => [kind, Math.floor(place / columns), place % columns])
  // An action that fires has no direction.
  const move = [moves[action]].find((direction) => direction !== undefined && direction[0] < 2)
  const inCell = (row: number, column: number, paint: () => void): void =>
    within(corner[0] + (column + 0.5) * cell, corner[1] + (row + 0.5) * cell, 0, cell, paint)

  slab(corner[0] - 6, corner[1] - 6, columns * cell + 12, rows * cell + 12, 12, colours.deep)
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (isSmall || (row + column) % 2 === 1) continue
      faded(0.35, () => slab(corner[0] + column * cell, corner[1] + row * cell, cell, cell, 0, colours.faint))
    }
  }
  for (const [kind, row, column, detail = 0] of seen.pieces) {
    inCell(row, column, () => {
      const [character, paint] = pieces[kind]
      paint(stage, detail, move ?? [0, 0], isSmall)
      letter(character, [0, 0])
    })
  }
  for (const [kind, row, column] of seen.pieces) {
    if (!players.includes(kind) || move === undefined || isSmall) continue
    const [across, down] = move
    inCell(row, column, () => arrow(across * 0.5, down * 0.5, across * 0.42, down * 0.42, colours.act, 0.13))
  }
  // Without moves, an action is a place on the board.
  if (moves.length === 0 && action !== undefined) {
    const [row, column] = [Math.floor(action / columns), action % columns]
    inCell(row, column, () => {
      const isTaken = seen.pieces.some(([, atRow, atColumn]) => atRow === row && atColumn === column)
      const { next } = seen
      if (!isTaken && next !== undefined) faded(0.35, () => pieces[next][1](stage, 0, [0, 0], isSmall))
      border(-0.44, -0.44, 0.88, 0.12, colours.act, 0.045)
    })
  }
  if (seen.row !== undefined) {
    const centre = (place: number): StagePoint => [
      corner[0] + ((place % columns) + 0.5) * cell,
      corner[1] + (Math.floor(place / columns) + 0.5) * cell,
    ]
    line(colours.goal, 10, ...seen.row.map(centre))
  }
  words(seen.note, 16, 22)
  const isFlat = moves.every(([, down]) => down === 0)
  keys(width / 2, 486, action, isFlat ? 40 : 20, ...moves)
}

/** Returns the drawing of a game on a board of this size: the board above, and below it the keys. */
const drawingOf = (size: number, { source }: BoardGame): EnvDrawing<BoardValues> => {
  const half = 204 / size
  return {
    width: 440,
    height: 520,
    terminal: {
      columns: 2 * size - 1,
      rows: size,
      empty: "· ",
      from: [16 + half, 44 + half],
      to: [424 - half, 452 - half],
    },
    source: { draw: pageText.drawBoard, look: source, pieces: pageText.pieces },
    draw: drawBoard,
  }
}

interface BoardMoves {
  /** The direction of each action's key, such as `↑↓←→`; `·` stays, `✦` fires. Without this, an action is a place on the board. */
  readonly moves?: string
  /** Whether the player changes with every move, as in self-play. Default: false. */
  readonly turns?: boolean
}

/** Returns the pictures of a game on a board of `size` rows and columns. */
export const boardPictures = (id: string, size: number, game: BoardGame, { moves = "", turns = false }: BoardMoves) =>
  picturesOf(id, drawingOf(size, game), {
    rows: size,
    columns: size,
    moves: Array.from(moves, directionOf),
    turns,
    look: game.look,
    pieces,
  })
