/**
 * Finds, for each board game, the pieces in the numbers of a state, for `board.ts` to draw. The offsets are those in the
 * env's file; a test compares the pieces with the env's observation. Browsers get these functions as text (`pageText.ts`).
 */
import type { BoardGame } from "./board.ts"
import * as pageText from "./pageText.ts"

export const catching: BoardGame = {
  source: pageText.catching,
  look: ([, paddle, , caught, , , ...balls], { rows }) => {
    const falling = balls.flatMap((column, row) => (column === 0 ? [] : [["ball", row, column - 1] as const]))
    return { pieces: [["paddle", rows - 1, paddle], ...falling], note: `caught ${caught}` }
  },
}

export const gridWorld: BoardGame = {
  source: pageText.gridWorld,
  look: ([, agent, goal, ...cells], _, piece) => {
    const walls = cells.flatMap((cell, place) => (cell === 0 ? [] : [piece("wall", place)]))
    return { pieces: [...walls, piece("goal", goal), piece("agent", agent)], note: agent === goal ? "there" : "" }
  },
}

export const keyDoor: BoardGame = {
  source: pageText.keyDoor,
  look: ([, agent, goal, held, ...rest], { rows, columns }, piece) => {
    const count = rest.length / 4
    const [walls, doors, keys, openings] = [0, 1, 2, 3].map((part) => rest.slice(part * count, (part + 1) * count))
    const stones = Array.from({ length: rows * columns }, (_, place) => place).filter((place) => {
      const [row, column] = [Math.floor(place / columns), place % columns]
      const edge = row === 0 || column === 0 || row === rows - 1 || column === columns - 1
      return edge || (walls.includes(column) && !openings.includes(place))
    })
    return {
      pieces: [
        ...stones.map((place) => piece("wall", place)),
        ...openings.map((place, index) => piece(doors[index] === 0 ? "opening" : "door", place)),
        ...keys.filter((place) => place !== 0).map((place) => piece("key", place)),
        piece("goal", goal),
        piece("agent", agent),
      ],
      note: ["no key", "a key"][held] ?? `${held} keys`,
    }
  },
}

export const pixelMaze: BoardGame = {
  source: pageText.pixelMaze,
  look: ([, agent, ...cells], _, piece) => {
    const kinds = ["", "wall", "apple", "goal"]
    const things = cells.flatMap((what, place) => (what === 0 ? [] : [piece(kinds[what], place)]))
    return { pieces: [...things, piece("agent", agent)], note: `apples ${cells.filter((what) => what === 2).length}` }
  },
}

export const applePicker: BoardGame = {
  source: pageText.applePicker,
  look: ([, agent, left, ...cells], { rows, columns }, piece) => {
    const hedges = Array.from({ length: rows * columns }, (_, place) => piece("hedge", place)).filter(
      ([, row, column]) => row % 6 === 3 && column % 12 !== 5 && column % 12 !== 6,
    )
    const apples = cells.flatMap((cell, place) => (cell === 0 ? [] : [piece("apple", place)]))
    return { pieces: [...hedges, ...apples, piece("agent", agent)], note: `apples ${left}` }
  },
}

/** After the last step the diver is below the last row. */
export const deepSea: BoardGame = {
  source: pageText.deepSea,
  look: ([over, row, column], { rows, columns }) => ({
    pieces: [
      ["goal", rows - 1, columns - 1],
      ["agent", Math.min(row, rows - 1), column],
    ],
    note: over === 1 ? "at the ground" : `row ${row + 1} of ${rows}`,
  }),
}

/** In self-play (`turns` is true) the numbers of stones tell which player is next. */
export const ticTacToe: BoardGame = {
  source: pageText.ticTacToe,
  look: ([over, ...cells], { turns }, piece) => {
    const rows = [
      [0, 1, 2],
      [3, 4, 5],
      [6, 7, 8],
      [0, 3, 6],
      [1, 4, 7],
      [2, 5, 8],
      [0, 4, 8],
      [2, 4, 6],
    ]
    const count = (who: number): number => cells.filter((cell) => cell === who).length
    const row = rows.find((line) => cells[line[0]] !== 0 && line.every((place) => cells[place] === cells[line[0]]))
    // A move onto a taken place ends the game without a new stone, but the env has swapped the players all the same.
    const isRefused = over === 1 && row === undefined && count(0) > 0
    const isCrossNext = !turns || (count(1) === count(2)) !== isRefused
    const kinds = isCrossNext ? ["cross", "nought"] : ["nought", "cross"]
    const stones = cells.flatMap((who, place) => (who === 0 ? [] : [piece(kinds[who - 1], place)]))
    const ended = isRefused ? "the place was taken" : "a draw"
    const unwon = over === 1 ? ended : `${kinds[0]} is next`
    return {
      pieces: stones,
      row,
      next: kinds[0],
      note: row === undefined ? unwon : `${kinds[cells[row[0]] - 1]} wins`,
    }
  },
}
