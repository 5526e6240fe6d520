/**
 * KeyDoor: a maze with keys and locked doors, drawn at random for every episode. Walls split the field into rooms. The
 * agent is in the first room, the goal in the last, and every room but the last has a key. Walking onto a key takes it;
 * walking into a door with a key opens it and uses the key up. The only reward is 1 at the goal, which ends the
 * episode.
 *
 * Actions: up, down, left, right. The observation's planes (grids of zeros and ones): wall, door, goal, key (a held key
 * is at the agent's place), agent.
 */
import * as Schema from "effect/Schema"
import { bounded, intBetween } from "../../../base/config/fields.ts"
import * as G from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { stream, type Stream } from "../../../base/rng/Rng.ts"
import type { EnvGraph } from "../EnvGraph.ts"
import { boardEnv, type BoardEnv, columnStep, mark, rowStep, type Rules } from "../internal/board.ts"
import { flagged, numbersOf } from "../internal/stateTensors.ts"
import { boardPictures } from "../ui/board.ts"
import { keyDoor } from "../ui/boards.ts"
import { checkOptions, checkWhole, EnvError } from "../../../base/EnvError.ts"

export const KeyDoorOptions = Schema.Struct({
  /** Width and height, including the walls around the field. Default: 8. */
  size: Schema.optionalKey(bounded("cells")),
  /** The number of rooms; there is one door and one key less. Default: 2. */
  rooms: Schema.optionalKey(intBetween(1, 1000)),
  /** Truncates episodes at this many steps. Default: 4 × size². */
  maxSteps: Schema.optionalKey(bounded("count")),
  /** Draws one layout from this seed for all episodes. Default: each episode draws a new layout. */
  layoutSeed: Schema.optionalKey(bounded("seed")),
  id: Schema.optionalKey(Schema.NonEmptyString),
})
export type KeyDoorOptions = typeof KeyDoorOptions.Type

// These are offsets in a state: whether the game is over, the places of agent and goal, and the number of keys held.
// From `walls` on follow four lists with one number for each wall between rooms: its column, the place of its door, the
// place of the key in the room before it, and the place of its opening (where its door is or was). An opened door or a
// taken key has place 0, a corner of the field.
const over = 0
const agent = 1
const goal = 2
const held = 3
const walls = 4

/** The shape of a field: where its lists begin in a state, and the numbers of its walls and places. */
interface FieldShape {
  readonly size: number
  readonly rooms: number
  readonly count: number
  readonly columns: number
  readonly doors: number
  readonly keys: number
  readonly openings: number
}

const fieldOf = (size: number, rooms: number): FieldShape => {
  const count = rooms - 1
  const doors = walls + count
  return { size, rooms, count, columns: walls, doors, keys: doors + count, openings: doors + 2 * count }
}

/** Draws a place inside the field, in a column from `from` to `to` − 1. */
const drawIn = ({ size }: FieldShape, random: Stream, from: number, to: number): number =>
  (1 + random.integer(size - 2)) * size + from + random.integer(to - from)

/**
 * Chooses the columns of the walls at random, in increasing order, with at least one free column before, between and
 * after them. Besides these, `spare` columns are free: sorted random numbers, one for each wall, say how many of them
 * are to the left of the wall.
 */
const chooseWallColumns = (
  { size, rooms, count, columns }: FieldShape,
  state: Int32Array,
  at: number,
  random: Stream,
) => {
  const spare = size - 2 - count - rooms
  for (let wall = 0; wall < count; wall++) state[at + columns + wall] = random.integer(spare + 1)
  state.subarray(at + columns, at + columns + count).sort()
  for (let wall = 0; wall < count; wall++) state[at + columns + wall] += 2 * (wall + 1)
}

/** Draws the walls, doors, keys and places of a field. */
const layOut = (field: FieldShape, state: Int32Array, at: number, random: Stream): void => {
  const { size, count, columns, doors, keys, openings } = field
  chooseWallColumns(field, state, at, random)
  for (let wall = 0; wall < count; wall++) {
    const column = state[at + columns + wall]
    const before = wall === 0 ? 0 : state[at + columns + wall - 1]
    state[at + doors + wall] = drawIn(field, random, column, column + 1)
    state[at + openings + wall] = state[at + doors + wall]
    state[at + keys + wall] = drawIn(field, random, before + 1, column)
  }
  do state[at + agent] = drawIn(field, random, 1, state[at + columns])
  while (state[at + agent] === state[at + keys])
  state[at + goal] = drawIn(field, random, state[at + columns + count - 1] + 1, size - 1)
}

const isWall = (field: FieldShape, state: Int32Array, at: number, row: number, column: number): boolean => {
  const { size, count, columns, openings } = field
  if (row === 0 || column === 0 || row === size - 1 || column === size - 1) return true
  for (let wall = 0; wall < count; wall++) {
    if (state[at + columns + wall] === column) return state[at + openings + wall] !== row * size + column
  }
  return false
}

/** Returns the index of the door or key at a place, −1 if none. `things` is the offset of all doors or all keys. */
const thingAt = ({ count }: FieldShape, state: Int32Array, things: number, place: number): number => {
  for (let index = 0; index < count; index++) if (state[things + index] === place) return index
  return -1
}

/** Returns the rules of a field, whose places are numbered row by row; a wall between rooms is a column. */
const rulesFor = (size: number, rooms: number, layoutSeed: number | undefined): Rules => {
  const field = fieldOf(size, rooms)
  const { count, doors, keys, openings } = field
  return {
    stateSize: openings + count,
    reset: (state, at, random) =>
      layOut(field, state, at, layoutSeed === undefined ? random : stream(layoutSeed, "key-door", size, rooms)),
    step: (state, at, action) => {
      const from = state[at + agent]
      const row = Math.floor(from / size) + rowStep[action]
      const column = (from % size) + columnStep[action]
      const to = row * size + column
      if (isWall(field, state, at, row, column)) return 0
      const door = thingAt(field, state, at + doors, to)
      if (door >= 0) {
        if (state[at + held] === 0) return 0
        state[at + held]--
        state[at + doors + door] = 0
      }
      state[at + agent] = to
      const key = thingAt(field, state, at + keys, to)
      if (key >= 0) {
        state[at + held]++
        state[at + keys + key] = 0
      }
      if (to !== state[at + goal]) return 0
      state[at + over] = 1
      return 1
    },
    show: (state, at, into, to) => {
      for (let row = 0; row < size; row++) {
        for (let column = 0; column < size; column++) {
          if (isWall(field, state, at, row, column)) mark(into, to, 0, size, row, column)
        }
      }
      const put = (plane: number, where: number): void => {
        into[to + plane * size * size + where] = 1
      }
      for (let wall = 0; wall < count; wall++) {
        if (state[at + doors + wall] !== 0) put(1, state[at + doors + wall])
        if (state[at + keys + wall] !== 0) put(3, state[at + keys + wall])
      }
      put(2, state[at + goal])
      put(4, state[at + agent])
      if (state[at + held] !== 0) put(3, state[at + agent])
    },
  }
}

const graphFor = (size: number, rooms: number): Omit<EnvGraph, "start" | "stateSize"> => {
  const count = rooms - 1
  const places = size * size
  const numbers = Array.from({ length: places }, (_, place) => place)
  const columnOf = Float32Array.from(numbers, (place) => place % size)
  const isEdge = (place: number): boolean => {
    const [row, column] = [Math.floor(place / size), place % size]
    return row === 0 || column === 0 || row === size - 1 || column === size - 1
  }
  const edge = Float32Array.from(numbers, (place) => (isEdge(place) ? 1 : 0))
  // The place to which each action leads from each place. The agent is never at the edge, so it never leaves the field.
  const targets = Int32Array.from({ length: places * rowStep.length }, (_, at) => {
    const [place, action] = [Math.floor(at / rowStep.length), at % rowStep.length]
    return Math.max(0, Math.min(places - 1, place + rowStep[action] * size + columnStep[action]))
  })
  /** Returns the four lists of a state, each [N, count]: columns of walls, doors, keys and openings. */
  const listsOf = (state: Tensor): ReadonlyArray<Tensor> =>
    [0, 1, 2, 3].map((list) => G.slice(state, [0, walls + list * count], [state.shape[0], count]))
  const any = (conditions: Tensor): Tensor => G.greater(G.sum(G.cast(conditions, "f32"), 1), 0)
  /** Marks the places of a list [N, count] in a plane [N, places]; place 0 stands for nothing. */
  const marked = (list: Tensor): Tensor =>
    G.sum(G.mul(G.oneHot(G.cast(list, "i32"), places), G.expandDims(G.cast(G.greater(list, 0), "f32"), 2)), 1)
  const at = (state: Tensor, offset: number): Tensor => G.oneHot(G.cast(numbersOf(state, offset), "i32"), places)
  return {
    // Each room but the last takes a step to its key and one into its door, and the last a step to the goal.
    shortest: 2 * count + 1,
    observe: (state) => {
      const [columns, doors, keys, openings] = listsOf(state)
      const inColumn = G.equal(G.expandDims(columns, 2), G.constant(columnOf, [1, 1, places]))
      const isClosed = G.notEqual(G.expandDims(openings, 2), G.constant(numbers, [1, 1, places]))
      const inside = G.max(G.cast(G.and(inColumn, isClosed), "f32"), 1)
      const holds = flagged(G.greater(numbersOf(state, held), 0))
      const planes = [
        G.maximum(inside, G.constant(edge, [1, places])),
        marked(doors),
        at(state, goal),
        G.maximum(marked(keys), G.mul(at(state, agent), holds)),
        at(state, agent),
      ]
      return G.concat(planes, 1)
    },
    step: (state, action) => {
      const [columns, doors, keys, openings] = listsOf(state)
      const from = numbersOf(state, agent)
      const to = G.gather(G.constant(targets), G.add(G.mul(G.cast(from, "i32"), rowStep.length), action))
      const place = G.expandDims(G.cast(to, "f32"), 1)
      const column = G.expandDims(G.gather(G.constant(columnOf), to), 1)
      const intoWall = any(G.and(G.equal(columns, column), G.notEqual(openings, place)))
      const blocked = G.or(G.greater(G.gather(G.constant(edge), to), 0), intoWall)
      const [doorHere, keyHere] = [G.equal(doors, place), G.equal(keys, place)]
      const keysHeld = numbersOf(state, held)
      const locked = G.and(any(doorHere), G.equal(keysHeld, 0))
      const moves = G.not(G.or(blocked, locked))
      const moved = G.expandDims(moves, 1)
      const countOf = (here: Tensor): Tensor => G.cast(G.and(moves, any(here)), "f32")
      const heldNow = G.add(G.sub(keysHeld, countOf(doorHere)), countOf(keyHere))
      const reached = G.and(moves, G.equal(G.cast(to, "f32"), numbersOf(state, goal)))
      const without = (list: Tensor, here: Tensor): Tensor => G.where(G.and(moved, here), 0, list)
      return {
        state: G.concat(
          [
            flagged(reached),
            G.where(moved, place, G.expandDims(from, 1)),
            G.expandDims(numbersOf(state, goal), 1),
            G.expandDims(heldNow, 1),
            columns,
            without(doors, doorHere),
            without(keys, keyHere),
            openings,
          ],
          1,
        ),
        reward: G.cast(reached, "f32"),
        terminated: reached,
      }
    },
  }
}

/** Makes the env with other options: `KeyDoor.make({ size: 10 })`. */
export const make = (options: KeyDoorOptions = {}): BoardEnv => {
  checkOptions("KeyDoor", options, KeyDoorOptions)
  const { size = 8, rooms = 2, layoutSeed } = options
  const named = rooms === 2 ? `${size}x${size}` : `${size}x${size}-${rooms}rooms`
  const { id = `KeyDoor-${named}-v0`, maxSteps = 4 * size * size } = options
  const least = 2 * rooms + 1
  checkWhole(id, rooms, 2, `KeyDoor: ${rooms} rooms`)
  if (!Number.isInteger(size) || size < least) {
    const message = `KeyDoor: size ${size}; for ${rooms} rooms it must be a whole number of at least ${least}`
    throw new EnvError({ env: id, message })
  }
  return boardEnv({
    id,
    recipe: { name: "KeyDoor", options },
    planes: ["wall", "door", "goal", "key", "agent"],
    size,
    actions: 4,
    ...boardPictures(id, size, keyDoor, { moves: "↑↓←→" }),
    maxSteps,
    rules: rulesFor(size, rooms, layoutSeed),
    graph: () => graphFor(size, rooms),
  })
}

/** The env with its default options: `Batch.make(KeyDoor.env, 32)`. */
export const env: BoardEnv = make()
export const small: BoardEnv = make({ size: 6 })
/** A field with three rooms: random play almost never reaches the goal. */
export const large: BoardEnv = make({ size: 10, rooms: 3 })
