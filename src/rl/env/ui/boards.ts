/**
 * Defines, for each board game, the JavaScript that finds the pieces in the numbers of a state; `board.ts` makes a ui
 * module from it. The offsets are those in the env's file; a test compares the pieces with the env's observation.
 */
import type { Drawing } from "./board.ts"

export const breakout: Drawing = {
  moves: "·←→",
  look: String.raw`
function look([, paddle, ballX, ballY, , lastX, lastY, , , ...bricks]) {
  const standing = bricks.flatMap((cell, place) =>
    cell === 1 ? [["brick", 1 + Math.floor(place / columns), place % columns, Math.floor(place / columns)]] : [],
  )
  return {
    pieces: [...standing, ["trail", lastY, lastX], ["paddle", rows - 1, paddle], ["ball", ballY, ballX]],
    note: "bricks " + standing.length,
  }
}
`,
}

export const catching: Drawing = {
  moves: "←·→",
  look: String.raw`
function look([, paddle, , caught, , , ...balls]) {
  const falling = balls.flatMap((column, row) => (column === 0 ? [] : [["ball", row, column - 1]]))
  return { pieces: [["paddle", rows - 1, paddle], ...falling], note: "caught " + caught }
}
`,
}

export const gridWorld: Drawing = {
  moves: "↑↗→↘↓↙←↖",
  look: String.raw`
function look([, agent, goal, ...cells]) {
  const walls = cells.flatMap((cell, place) => (cell === 0 ? [] : [piece("wall", place)]))
  return { pieces: [...walls, piece("goal", goal), piece("agent", agent)], note: agent === goal ? "there" : "" }
}
`,
}

export const keyDoor: Drawing = {
  moves: "↑↓←→",
  look: String.raw`
function look([, agent, goal, held, ...rest]) {
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
    note: held === 0 ? "no key" : held === 1 ? "a key" : held + " keys",
  }
}
`,
}

export const pixelMaze: Drawing = {
  moves: "↑↓←→",
  look: String.raw`
function look([, agent, ...cells]) {
  const kinds = [undefined, "wall", "apple", "goal"]
  const things = cells.flatMap((what, place) => (what === 0 ? [] : [piece(kinds[what], place)]))
  return {
    pieces: [...things, piece("agent", agent)],
    note: "apples " + cells.filter((what) => what === 2).length,
  }
}
`,
}

export const applePicker: Drawing = {
  moves: "↑↓←→",
  look: String.raw`
const hedges = Array.from({ length: rows * columns }, (_, place) => piece("hedge", place))
  .filter(([, row, column]) => row % 6 === 3 && column % 12 !== 5 && column % 12 !== 6)

function look([, agent, left, ...cells]) {
  const apples = cells.flatMap((cell, place) => (cell === 0 ? [] : [piece("apple", place)]))
  return { pieces: [...hedges, ...apples, piece("agent", agent)], note: "apples " + left }
}
`,
}

/** Returns the code for tic-tac-toe. In self-play (`turns` is true) the numbers of stones tell which player is next. */
export const ticTacToe = (turns: boolean): Drawing => ({
  look: String.raw`
const turns = ${turns}
const rowsOfThree = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]]

function look([over, ...cells]) {
  const count = (who) => cells.filter((cell) => cell === who).length
  const row = rowsOfThree.find((line) => cells[line[0]] !== 0 && line.every((place) => cells[place] === cells[line[0]]))
  // A move onto a taken place ends the game without a new stone, but the env has swapped the players all the same.
  const refused = over === 1 && row === undefined && count(0) > 0
  const crossNext = !turns || (count(1) === count(2)) !== refused
  const kinds = crossNext ? ["cross", "nought"] : ["nought", "cross"]
  const stones = cells.flatMap((who, place) => (who === 0 ? [] : [piece(kinds[who - 1], place)]))
  const won = row === undefined ? "" : kinds[cells[row[0]] - 1] + " wins"
  return {
    pieces: stones,
    row,
    next: kinds[0],
    note: won !== "" ? won : refused ? "the place was taken" : over === 1 ? "a draw" : kinds[0] + " is next",
  }
}
`,
})
