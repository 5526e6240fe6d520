/**
 * Draws board games, with keys for the actions below the board. Each game's function in `boards.ts` finds the pieces in
 * the numbers of a state; this file draws the pieces of all games.
 */
import * as pageText from "./pageText.ts"
import { picturesOf } from "./pictures.ts"
import type { EnvDrawing, StagePoint, EnvStage } from "./shapes.ts"

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

/** Returns the direction of an arrow as [right, down], each −1, 0 or 1. */
const directionOf = (arrow: string): StagePoint => {
  const at = arrows.indexOf(arrow)
  return [(at % 3) - 1, Math.floor(at / 3) - 1]
}

/**
 * Draws a piece in a square of side 1 around (0, 0). `detail` is the piece's own number, `move` the agent's direction.
 */
type PaintPiece = (stage: EnvStage, detail: number, move: StagePoint, isSmall: boolean) => void

/** The letter of each kind of piece in a terminal, and its drawing. */
export const pieces: Readonly<Record<string, readonly [letter: string, paint: PaintPiece]>> = {
  wall: [
    "█",
    ({ slab, faded, colours }) => {
      slab(-0.505, -0.505, 1.01, 1.01, 0, colours.stone)
      faded(0.1, () => slab(-0.505, -0.505, 1.01, 0.14, 0, "#fff"))
    },
  ],
  hedge: [
    "▒",
    ({ slab, disc, faded, dark }) => {
      slab(-0.505, -0.44, 1.01, 0.94, 0.2, dark ? "#2f6b57" : "#6a9c78")
      faded(0.16, () => disc(-0.2, -0.12, 0.16, "#fff"))
      faded(0.12, () => disc(0.22, 0.12, 0.14, "#000"))
    },
  ],
  door: [
    "╫",
    ({ slab, disc, shape, colours }) => {
      slab(-0.5, -0.5, 1, 1, 0, colours.stone)
      slab(-0.38, -0.44, 0.76, 0.94, 0.1, colours.pole)
      disc(0, -0.06, 0.11, colours.ink)
      shape(colours.ink, [-0.04, 0], [0.04, 0], [0.09, 0.24], [-0.09, 0.24])
    },
  ],
  opening: [
    "·",
    ({ slab, faded, colours }) => {
      slab(-0.5, -0.5, 1, 0.1, 0, colours.pole)
      slab(-0.5, 0.4, 1, 0.1, 0, colours.pole)
      faded(0.14, () => slab(-0.5, -0.4, 1, 0.8, 0, colours.pole))
    },
  ],
  goal: [
    "★",
    ({ shape, faded, disc, colours, turn }) => {
      faded(0.18, () => disc(0, 0, 0.48, colours.goal))
      const point = (index: number): StagePoint => {
        const far = index % 2 === 0 ? 0.38 : 0.16
        return [far * Math.sin((index * turn) / 10), -far * Math.cos((index * turn) / 10)]
      }
      shape(colours.goal, ...Array.from({ length: 10 }, (_, index) => point(index)))
    },
  ],
  key: [
    "⚷",
    ({ ring, line, colours, dark }) => {
      const gold = dark ? colours.joint : "#c8961f"
      ring(-0.18, 0, 0.15, gold, 0.1)
      line(gold, 0.1, [-0.02, 0], [0.36, 0])
      line(gold, 0.09, [0.2, 0.02], [0.2, 0.15])
      line(gold, 0.09, [0.34, 0.02], [0.34, 0.17])
    },
  ],
  apple: [
    "●",
    ({ disc, line, faded, colours, dark }) => {
      disc(-0.1, 0.06, 0.24, colours.pole)
      disc(0.1, 0.06, 0.24, colours.pole)
      line(dark ? "#a58467" : "#6b4f3a", 0.07, [0, -0.14], [0.07, -0.34])
      faded(0.35, () => disc(-0.14, -0.03, 0.07, "#fff"))
    },
  ],
  agent: [
    "☻",
    ({ disc, faded, colours }, _, [across, down], isSmall) => {
      // On a large board, with small cells, the agent is larger and has a halo, to be seen.
      if (isSmall) faded(0.25, () => disc(0, 0, 2.6, colours.act))
      const size = isSmall ? 1.1 : 0.38
      disc(0, 0, size, isSmall ? colours.act : colours.body)
      faded(0.16, () => disc(-0.28 * size, -0.34 * size, 0.46 * size, "#fff"))
      for (const eye of [-0.34, 0.34]) {
        const [x, y] = [(eye + across * 0.2) * size, (down * 0.26 - 0.08) * size]
        disc(x, y, 0.24 * size, "#fff")
        disc(x + across * 0.09 * size, y + down * 0.09 * size, 0.13 * size, "#20222e")
      }
    },
  ],
  ball: [
    "●",
    ({ disc, faded, colours }) => {
      disc(0, 0, 0.34, colours.pole)
      faded(0.4, () => disc(-0.1, -0.11, 0.1, "#fff"))
    },
  ],
  trail: ["∘", ({ disc, faded, colours }) => faded(0.3, () => disc(0, 0, 0.22, colours.pole))],
  brick: [
    "▓",
    ({ slab, faded, colours }, row) => {
      slab(-0.46, -0.4, 0.92, 0.8, 0.14, [colours.goal, colours.body, colours.joint][row % 3])
      faded(0.2, () => slab(-0.38, -0.33, 0.76, 0.13, 0.065, "#fff"))
    },
  ],
  paddle: [
    "▬",
    ({ slab, faded, colours }) => {
      slab(-0.5, -0.3, 1, 0.56, 0.26, colours.act)
      faded(0.3, () => slab(-0.36, -0.22, 0.72, 0.12, 0.06, "#fff"))
    },
  ],
  cross: [
    "×",
    ({ line, colours }) => {
      line(colours.pole, 0.15, [-0.26, -0.26], [0.26, 0.26])
      line(colours.pole, 0.15, [-0.26, 0.26], [0.26, -0.26])
    },
  ],
  nought: ["○", ({ ring, colours }) => ring(0, 0, 0.28, colours.body, 0.15)],
}

export const drawBoard: EnvDrawing<BoardValues>["draw"] = (stage, state, [action], values) => {
  const { colours, faded, line, slab, border, arrow, words, keys, letter, within } = stage
  const { rows, columns, moves, look, pieces, width } = values
  const cell = 408 / Math.max(rows, columns)
  const corner: StagePoint = [(width - columns * cell) / 2, 44 + (408 - rows * cell) / 2]
  const isSmall = cell < 12
  const seen = look(state, values, (kind, place) => [kind, Math.floor(place / columns), place % columns])
  const move: StagePoint | undefined = moves[action]
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
    if ((kind !== "agent" && kind !== "paddle") || move === undefined || isSmall) continue
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
  /** The direction of each action's key, such as `↑↓←→`; `·` stays. Without this, an action is a place on the board. */
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
