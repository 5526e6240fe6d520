/**
 * Finds, for each of MinAtar's games, the pieces in the numbers of a state, for `board.ts` to draw. The offsets are those in
 * the env's file; a test compares the pieces with the env's observation. Browsers get these functions as text.
 */
import type { BoardGame } from "./board.ts"
import * as pageText from "./pageText.ts"

export const breakout: BoardGame = {
  source: pageText.breakout,
  look: ([, paddle, ballX, ballY, , lastX, lastY, , , ...bricks], { rows, columns }) => {
    const standing = bricks.flatMap((cell, place) => (cell === 1 ? [place] : []))
    return {
      pieces: [
        ...standing.map((place) => {
          const row = Math.floor(place / columns)
          return ["brick", 1 + row, place % columns, row] as const
        }),
        ["trail", lastY, lastX],
        ["paddle", rows - 1, paddle],
        ["ball", ballY, ballX],
      ],
      note: `bricks ${standing.length}`,
    }
  },
}

export const asterix: BoardGame = {
  source: pageText.asterix,
  look: ([, , x, y, , , , , , ramps, ...things]) => {
    const rows = Array.from({ length: things.length / 3 }, (_, row) => row)
    const pieces = rows
      .filter((row) => things[3 * row] !== 0)
      .map((row) => {
        const [kind, column, toRight] = things.slice(3 * row, 3 * row + 3)
        return [kind === 1 ? "enemy" : "gold", row + 1, column, toRight === 1 ? 1 : -1] as const
      })
    return { pieces: [...pieces, ["agent", y, x]], note: `level ${ramps}` }
  },
}

export const freeway: BoardGame = {
  source: pageText.freeway,
  look: ([, , chicken, , left, ...cars]) => {
    const lanes = Array.from({ length: cars.length / 3 }, (_, lane) => lane)
    const pieces = lanes.map((lane) => ["car", lane + 1, cars[3 * lane], cars[3 * lane + 2]] as const)
    return { pieces: [...pieces, ["chicken", chicken, 4]], note: `steps left ${left + 1}` }
  },
}

export const seaquest: BoardGame = {
  source: pageText.seaquest,
  look: (state, { columns }) => {
    const [, , x, y, faces, air, aboard, , , , , , , ramps, ...rest] = state
    const sides = [-1, 1]
    // Each list begins with the number of its things; the sizes are those in the env's file.
    const lists = [
      { kind: "bullet", size: 3, most: 4 },
      { kind: "enemyBullet", size: 3, most: 64 },
      { kind: "fish", size: 4, most: 64 },
      { kind: "enemySub", size: 5, most: 64 },
      { kind: "diver", size: 4, most: 4 },
    ]
    let from = 0
    const things = lists.flatMap(({ kind, size, most }) => {
      const first = from + 1
      // A state may come from somebody else's file.
      const count = Math.min(rest[from], most)
      from += 1 + size * most
      return Array.from({ length: count }, (_, index) => {
        const [column, row, toRight] = rest.slice(first + index * size)
        return [kind, row, column, kind.endsWith("ullet") ? 1 : sides[toRight]] as const
      })
    })
    const cells = Array.from({ length: columns }, (_, cell) => cell)
    const gauge = cells.filter((cell) => cell < Math.floor(air / 20)).map((cell) => ["air", 9, cell] as const)
    const saved = cells.filter((cell) => cell < aboard).map((cell) => ["saved", 9, 8 - cell] as const)
    return {
      pieces: [...gauge, ...saved, ["sub", y, x, sides[faces]], ...things],
      note: `level ${ramps}, air ${Math.max(0, air)}, divers ${Math.max(0, aboard)}`,
    }
  },
}

export const spaceInvaders: BoardGame = {
  source: pageText.spaceInvaders,
  look: ([, , cannon, heading, , , , , ramps, ...boards], { rows, columns }, piece) => {
    const places = rows * columns
    const board = (kind: string, from: number, detail: number) =>
      boards.slice(from * places, (from + 1) * places).flatMap((cell, place) => {
        const [, row, column] = piece(kind, place)
        return cell === 0 ? [] : [[kind, row, column, detail] as const]
      })
    const aliens = board("alien", 2, heading)
    return {
      pieces: [...aliens, ["cannon", rows - 1, cannon], ...board("bullet", 0, 0), ...board("enemyBullet", 1, 0)],
      note: `level ${ramps}, aliens ${aliens.length}`,
    }
  },
}
