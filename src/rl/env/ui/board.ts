/**
 * Makes the ui modules of board games, i.e. the JavaScript that renders them in a browser, as texts. In `boards.ts` is
 * the code that finds a game's pieces in a state; in this file is the code that renders the pieces of all games.
 */
import { scene } from "./scene.ts"

/** Tells how a game on a board is rendered: which pieces a state has, and which keys are shown below the board. */
export interface Drawing {
  /**
   * The text of a function `look` from a state to `{ pieces: [[kind, row, column, detail?], …], note, row?, next? }`.
   * Later pieces are rendered on top; the kinds are those of `pieces` below; `piece(kind, place)` makes a piece from
   * the number of its place. `note` is a text, `row` the places of a winning row, `next` the kind of the next piece.
   */
  readonly look: string
  /** The direction of each action's key, such as `↑↓←→`; `·` stays. Without this, an action is a place on the board. */
  readonly moves?: string
}

/** The arrows of the nine directions in three rows of three: an arrow's row and column tell its direction. */
const arrows = "↖↑↗←·→↙↓↘"

/** Returns the direction of an arrow as [right, down], each −1, 0 or 1. */
const directionOf = (arrow: string): readonly [number, number] => {
  const at = arrows.indexOf(arrow)
  return [(at % 3) - 1, Math.floor(at / 3) - 1]
}

/** Returns the text of the ui module that renders a game on a board of `size` rows and columns. */
export const board = (id: string, size: number, { look, moves = "" }: Drawing): string =>
  scene(id, look + drawing, { rows: size, columns: size, moves: Array.from(moves, directionOf) })

const drawing = String.raw`
function piece(kind, place) {
  return [kind, Math.floor(place / columns), place % columns]
}

const width = 440
const height = 520
const cell = 408 / Math.max(rows, columns)
const corner = [(width - columns * cell) / 2, 44 + (408 - rows * cell) / 2]

/** Each function draws within a square of side 1 around (0, 0). */
const pieces = {
  wall({ slab, faded, colours }) {
    slab(-0.505, -0.505, 1.01, 1.01, 0, colours.stone)
    faded(0.1, () => slab(-0.505, -0.505, 1.01, 0.14, 0, "#fff"))
  },
  hedge({ slab, disc, faded, dark }) {
    slab(-0.505, -0.44, 1.01, 0.94, 0.2, dark ? "#2f6b57" : "#6a9c78")
    faded(0.16, () => disc(-0.2, -0.12, 0.16, "#fff"))
    faded(0.12, () => disc(0.22, 0.12, 0.14, "#000"))
  },
  door({ slab, disc, shape, colours }) {
    slab(-0.5, -0.5, 1, 1, 0, colours.stone)
    slab(-0.38, -0.44, 0.76, 0.94, 0.1, colours.pole)
    disc(0, -0.06, 0.11, colours.ink)
    shape([[-0.04, 0], [0.04, 0], [0.09, 0.24], [-0.09, 0.24]], colours.ink)
  },
  opening({ slab, faded, colours }) {
    slab(-0.5, -0.5, 1, 0.1, 0, colours.pole)
    slab(-0.5, 0.4, 1, 0.1, 0, colours.pole)
    faded(0.14, () => slab(-0.5, -0.4, 1, 0.8, 0, colours.pole))
  },
  goal({ shape, faded, disc, colours }) {
    faded(0.18, () => disc(0, 0, 0.48, colours.goal))
    const point = (index) => {
      const far = index % 2 === 0 ? 0.38 : 0.16
      return [far * Math.sin((index * turn) / 10), -far * Math.cos((index * turn) / 10)]
    }
    shape(Array.from({ length: 10 }, (_, index) => point(index)), colours.goal)
  },
  key({ ring, line, colours, dark }) {
    const gold = dark ? colours.joint : "#c8961f"
    ring(-0.18, 0, 0.15, gold, 0.1)
    line([[-0.02, 0], [0.36, 0]], gold, 0.1)
    line([[0.2, 0.02], [0.2, 0.15]], gold, 0.09)
    line([[0.34, 0.02], [0.34, 0.17]], gold, 0.09)
  },
  apple({ disc, line, faded, colours, dark }) {
    disc(-0.1, 0.06, 0.24, colours.pole)
    disc(0.1, 0.06, 0.24, colours.pole)
    line([[0, -0.14], [0.07, -0.34]], dark ? "#a58467" : "#6b4f3a", 0.07)
    faded(0.35, () => disc(-0.14, -0.03, 0.07, "#fff"))
  },
  agent({ disc, faded, colours }, [across = 0, down = 0] = []) {
    // On a large board, with small cells, the agent is larger and has a halo, to be seen.
    if (cell < 12) faded(0.25, () => disc(0, 0, 2.6, colours.act))
    const size = cell < 12 ? 1.1 : 0.38
    disc(0, 0, size, cell < 12 ? colours.act : colours.body)
    faded(0.16, () => disc(-0.28 * size, -0.34 * size, 0.46 * size, "#fff"))
    for (const eye of [-0.34, 0.34]) {
      const [x, y] = [(eye + across * 0.2) * size, (down * 0.26 - 0.08) * size]
      disc(x, y, 0.24 * size, "#fff")
      disc(x + across * 0.09 * size, y + down * 0.09 * size, 0.13 * size, "#20222e")
    }
  },
  ball({ disc, faded, colours }) {
    disc(0, 0, 0.34, colours.pole)
    faded(0.4, () => disc(-0.1, -0.11, 0.1, "#fff"))
  },
  trail({ disc, faded, colours }) {
    faded(0.3, () => disc(0, 0, 0.22, colours.pole))
  },
  brick({ slab, faded, colours }, row) {
    slab(-0.46, -0.4, 0.92, 0.8, 0.14, [colours.goal, colours.body, colours.joint][row % 3])
    faded(0.2, () => slab(-0.38, -0.33, 0.76, 0.13, 0.065, "#fff"))
  },
  paddle({ slab, faded, colours }) {
    slab(-0.5, -0.3, 1, 0.56, 0.26, colours.act)
    faded(0.3, () => slab(-0.36, -0.22, 0.72, 0.12, 0.06, "#fff"))
  },
  cross({ line, colours }) {
    line([[-0.26, -0.26], [0.26, 0.26]], colours.pole, 0.15)
    line([[-0.26, 0.26], [0.26, -0.26]], colours.pole, 0.15)
  },
  nought({ ring, colours }) {
    ring(0, 0, 0.28, colours.body, 0.15)
  },
}

function draw(stage, state, [action]) {
  const { context, colours, faded, line, slab, disc, arrow, words, keys } = stage
  const seen = look(state, action)
  const move = moves[action]
  const within = (row, column, paint) => {
    context.save()
    context.translate(corner[0] + (column + 0.5) * cell, corner[1] + (row + 0.5) * cell)
    context.scale(cell, cell)
    paint()
    context.restore()
  }

  slab(corner[0] - 6, corner[1] - 6, columns * cell + 12, rows * cell + 12, 12, colours.deep)
  if (cell >= 12) {
    faded(0.35, () => {
      for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
          if ((row + column) % 2 === 0) slab(corner[0] + column * cell, corner[1] + row * cell, cell, cell, 0, colours.faint)
        }
      }
    })
  }
  for (const [kind, row, column, detail] of seen.pieces) {
    within(row, column, () => pieces[kind](stage, kind === "agent" ? move : detail))
  }
  for (const [kind, row, column] of seen.pieces) {
    const moves = kind === "agent" || kind === "paddle"
    if (!moves || move === undefined || cell < 12) continue
    const [across, down] = move
    within(row, column, () => arrow(across * 0.5, down * 0.5, across * 0.42, down * 0.42, colours.act, 0.13))
  }
  // Without moves, an action is a place on the board.
  if (moves.length === 0 && action !== undefined) {
    const [row, column] = [Math.floor(action / columns), action % columns]
    within(row, column, () => {
      const taken = seen.pieces.some(([, atRow, atColumn]) => atRow === row && atColumn === column)
      if (!taken) faded(0.35, () => pieces[seen.next](stage))
      context.beginPath()
      context.roundRect(-0.44, -0.44, 0.88, 0.88, 0.12)
      context.strokeStyle = colours.act
      context.lineWidth = 0.045
      context.stroke()
    })
  }
  if (seen.row !== undefined) {
    const centre = (place) => [
      corner[0] + ((place % columns) + 0.5) * cell,
      corner[1] + (Math.floor(place / columns) + 0.5) * cell,
    ]
    line(seen.row.map(centre), colours.goal, 10)
  }
  words(seen.note, 16, 22)
  const flat = moves.every(([, down]) => down === 0)
  keys(width / 2, 486, moves, action, flat ? 40 : 20)
}
`
