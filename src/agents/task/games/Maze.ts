/**
 * Makes mazes in words: an observation only has the agent's place and the directions in which it can walk. Reaching the exit
 * gives 1 point.
 *
 * @example
 * ```yaml
 * train_dataset: { type: text_maze, num_tasks: 1000, seed: 1, size: 5 }
 * ```
 */
import { Schema } from "effect"
import { intBetween, withDefault } from "../../../base/config/fields.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { TextEnv } from "../TextEnv.ts"
import { ends, game, continues } from "./aloud.ts"
import {
  neighbour,
  type CompassDirection,
  directionOf,
  directions,
  listed,
  opposite,
  pathBetween,
} from "./directions.ts"
import { levelFields, levelKind, shuffled } from "./levels.ts"

/** A maze with exactly one path between any two places. */
export interface Maze {
  readonly size: number
  readonly start: number
  readonly exit: number
  /** The directions in which the agent can walk from each place. */
  readonly ways: ReadonlyArray<ReadonlyArray<CompassDirection>>
}

/** Draws a maze by depth-first search in random directions. The exit is the place farthest from the start. */
export const drawn = (size: number, random: Stream): Maze => {
  const ways: Array<Array<CompassDirection>> = Array.from({ length: size * size }, () => [])
  const start = random.integer(size * size)
  const distances = new Map([[start, 0]])
  const path = [start]
  let exit = start
  while (path.length > 0) {
    const here = path[path.length - 1]
    const chosen = shuffled(directions, random).find((direction) => {
      const target = neighbour(here, direction, size, size)
      return target !== undefined && !distances.has(target)
    })
    const target = chosen === undefined ? undefined : neighbour(here, chosen, size, size)
    if (chosen === undefined || target === undefined) {
      path.pop()
      continue
    }
    ways[here].push(chosen)
    ways[target].push(opposite[chosen])
    distances.set(target, path.length)
    if (path.length > (distances.get(exit) ?? 0)) exit = target
    path.push(target)
  }
  return { size, start, exit, ways: ways.map((some) => directions.filter((direction) => some.includes(direction))) }
}

/** Returns the directions of the shortest path from a place to the exit. */
export const wayOut = ({ size, ways, exit }: Maze, from: number): ReadonlyArray<CompassDirection> =>
  pathBetween(from, exit, (place) =>
    ways[place].map((direction) => [direction, neighbour(place, direction, size, size) ?? place] as const),
  ).map(([direction]) => direction)

export interface MazeTaskOptions {
  readonly id: string
  readonly maze: Maze
  readonly metadata?: Readonly<Record<string, unknown>>
}

interface MazeState {
  readonly place: number
}

export const make = ({ id, maze, metadata = {} }: MazeTaskOptions): TextEnv => {
  const { size, ways, start, exit } = maze
  const viewFrom = ({ place }: MazeState): string => {
    const [row, column] = [Math.floor(place / size) + 1, (place % size) + 1]
    return `You are at row ${row}, column ${column}. Ways lead ${listed(ways[place])}.`
  }
  return game<MazeState>({
    id,
    type: "text_maze",
    metadata,
    maxSteps: 4 * size * size,
    begin: () => ({
      state: { place: start },
      observation: `Find the way out of a maze of ${size} rows and ${size} columns; row 1 is in the north, column 1 in the west. Go north, east, south or west.\n${viewFrom({ place: start })}`,
    }),
    step: (state, action) => {
      const direction = directionOf(action)
      if (direction === undefined) {
        return continues(state, `That is no way to go. Answer with ${directions.join(", ")}.\n${viewFrom(state)}`)
      }
      const target = neighbour(state.place, direction, size, size)
      if (target === undefined || !ways[state.place].includes(direction)) {
        return continues(state, `There is a wall in the ${direction}.\n${viewFrom(state)}`)
      }
      const next: MazeState = { place: target }
      return target === exit ? ends(next, { score: 1, message: "You are out." }) : continues(next, viewFrom(next))
    },
  })
}

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("text_maze"), "text_maze"),
  ...levelFields,
  /** The number of rows, which is also the number of columns. */
  size: withDefault(intBetween(2, 50), 5),
})
export const kind = levelKind("text_maze", Config, ({ size }, id, level, random) =>
  make({ id, maze: drawn(size, random), metadata: { level, size } }),
)
