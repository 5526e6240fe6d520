/**
 * Makes tasks in a house with locked doors, described in words. The agent walks, takes keys and unlocks doors. Taking
 * the treasure gives the only point; it is behind a locked door if the house has any.
 *
 * @example
 * ```yaml
 * train_dataset: { type: key_door, num_tasks: 1000, seed: 1, rooms: 5, doors: 2 }
 * ```
 */
import { Schema } from "effect"
import { intBetween, withDefault } from "../../../base/config/fields.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { type DatasetKind, make as makeKind } from "../DatasetKind.ts"
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
import { levelFields, levels, oneOf, shuffled } from "./levels.ts"
import { ConfigError } from "../../../base/config/Config.ts"

export const colours = ["red", "blue", "green", "yellow", "white", "black", "brown", "purple"] as const

const roomNames = [
  ["hall", "kitchen", "library", "cellar", "garden", "study", "attic", "pantry", "stable", "chapel"],
  ["workshop", "gallery", "tower", "courtyard", "bedroom", "laundry", "armoury", "larder", "terrace", "nursery"],
].flat()

interface Way {
  readonly to: number
  /** The colour of the key that opens the door; null if there is no door, or if it is open. */
  readonly lock: string | null
}

/** A house. A room's number is its index in `rooms`. The agent begins in room 0; the treasure is in room `treasure`. */
export interface House {
  readonly rooms: ReadonlyArray<{
    readonly name: string
    readonly ways: Readonly<Partial<Record<CompassDirection, Way>>>
  }>
  /** The room of each key, by colour. */
  readonly keys: Readonly<Record<string, number>>
  readonly treasure: number
}

/** Draws a house of `count` rooms. Each is next to an earlier room; if it is locked, its key is in an earlier room. */
export const drawn = (count: number, doors: number, random: Stream): House => {
  // Rooms are placed on a square field that is wide enough for every room to find a free neighbouring place.
  const width = 2 * count + 1
  const placed = [Math.floor((width * width) / 2)]
  const ways: Array<Partial<Record<CompassDirection, Way>>> = [{}]
  const keys: Record<string, number> = {}
  // The treasure is in the last room, which is behind a locked door if the house has any.
  const locked = new Set(shuffled(roomNumbers(count - 1), random).slice(0, doors))
  if (doors > 0 && !locked.has(count - 1)) {
    locked.delete(Math.max(...locked))
    locked.add(count - 1)
  }
  const unusedColours = shuffled(colours, random).slice()
  while (placed.length < count) {
    const from = random.integer(placed.length)
    const direction = oneOf(directions, random)
    const place = neighbour(placed[from], direction, width, width)
    if (place === undefined || placed.includes(place)) continue
    const room = placed.length
    const lock = locked.has(room) ? (unusedColours.pop() ?? null) : null
    if (lock !== null) keys[lock] = random.integer(room)
    placed.push(place)
    ways[from][direction] = { to: room, lock }
    ways.push({ [opposite[direction]]: { to: from, lock } })
  }
  const names = shuffled(roomNames, random)
  return {
    rooms: ways.map((some, room) => ({ name: names[room], ways: some })),
    keys,
    treasure: count - 1,
  }
}

const roomNumbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, index) => index + 1)

export interface KeyDoorTaskOptions {
  readonly id: string
  readonly house: House
  readonly metadata?: Readonly<Record<string, unknown>>
}

interface HouseState {
  readonly room: number
  readonly held: ReadonlyArray<string>
  readonly opened: ReadonlyArray<string>
}

const commands =
  "You can: go north (east, south, west), take the red key, unlock the red door, take the treasure, look, inventory."

const plainOf = (action: string): string =>
  action
    .trim()
    .toLowerCase()
    .replace(/[.!]$/, "")
    .replace(/\b(the|a|an|my)\s+/g, "")
    .replace(/\s+/g, " ")

const isOpen = (lock: string | null, { opened }: HouseState): boolean => lock === null || opened.includes(lock)

/** Describes the room in which the player is. */
const observationOf = ({ rooms, keys, treasure }: House, state: HouseState): string => {
  const { name, ways } = rooms[state.room]
  const exits = directions.flatMap((direction) => {
    const way = ways[direction]
    if (way === undefined) return []
    if (way.lock === null) return [direction]
    return [`${direction} (a ${way.lock} door, ${isOpen(way.lock, state) ? "open" : "locked"})`]
  })
  const things = [
    ...Object.keys(keys).flatMap((colour) =>
      keys[colour] === state.room && !state.held.includes(colour) ? [`a ${colour} key`] : [],
    ),
    ...(state.room === treasure ? ["the treasure"] : []),
  ]
  return `You are in the ${name}. Ways lead ${listed(exits)}.${things.length === 0 ? "" : ` Here is ${listed(things)}.`}`
}

const go = (house: House, state: HouseState, direction: CompassDirection) => {
  const way = house.rooms[state.room].ways[direction]
  if (way === undefined) return continues(state, `No way leads ${direction}.\n${observationOf(house, state)}`)
  if (!isOpen(way.lock, state)) return continues(state, `The ${way.lock} door is locked.`)
  const next = { ...state, room: way.to }
  return continues(next, observationOf(house, next))
}

const take = ({ keys }: House, state: HouseState, colour: string) => {
  if (state.held.includes(colour)) return continues(state, `You have the ${colour} key already.`)
  if (keys[colour] !== state.room) return continues(state, `There is no ${colour} key here.`)
  return continues({ ...state, held: [...state.held, colour] }, `You take the ${colour} key.`)
}

/** Unlocks the door of this colour; without a colour, the only locked door of the room. */
const unlock = ({ rooms }: House, state: HouseState, wanted: string | undefined) => {
  const doors = directions
    .map((direction) => rooms[state.room].ways[direction]?.lock ?? null)
    .filter((lock) => lock !== null)
  const locked = doors.filter((lock) => !isOpen(lock, state))
  const colour = wanted ?? (locked.length === 1 ? locked[0] : undefined)
  if (colour === undefined) {
    return continues(
      state,
      locked.length === 0 ? "There is no locked door here." : "Say which door: unlock the red door.",
    )
  }
  if (!doors.includes(colour)) return continues(state, `There is no ${colour} door here.`)
  if (isOpen(colour, state)) return continues(state, `The ${colour} door is open already.`)
  if (!state.held.includes(colour)) return continues(state, `You don't have the ${colour} key.`)
  return continues({ ...state, opened: [...state.opened, colour] }, `The ${colour} door is open now.`)
}

const step = (house: House, state: HouseState, action: string) => {
  const plain = plainOf(action)
  const direction = directionOf(plain)
  if (direction !== undefined) return go(house, state, direction)
  if (/^(look|look around|l)$/.test(plain)) return continues(state, observationOf(house, state))
  if (/^(inventory|i)$/.test(plain)) {
    const held = listed(state.held.map((colour) => `a ${colour} key`))
    return continues(state, held === "" ? "You have nothing." : `You have ${held}.`)
  }
  if (/^(?:take|get|pick up|grab) treasure$/.test(plain)) {
    return state.room === house.treasure
      ? ends(state, { score: 1, message: "You have the treasure." })
      : continues(state, "There is no treasure here.")
  }
  const key = /^(?:take|get|pick up|grab) (\w+) key$/.exec(plain)
  if (key !== null) return take(house, state, key[1])
  const door = /^(?:unlock|open)(?: (\w+))? door(?: with (?:\w+ )?key)?$/.exec(plain)
  if (door !== null) return unlock(house, state, door[1])
  return continues(state, `That can't be done here. ${commands}`)
}

export const make = ({ id, house, metadata = {} }: KeyDoorTaskOptions): TextEnv =>
  game<HouseState>({
    id,
    type: "key_door",
    metadata,
    maxSteps: 10 * house.rooms.length,
    begin: () => {
      const state: HouseState = { room: 0, held: [], opened: [] }
      return {
        state,
        observation: `Find the treasure in this house, and take it. ${commands}\n${observationOf(house, state)}`,
      }
    },
    step: (state, action) => step(house, state, action),
  })

/** Returns actions that lead to the treasure and take it. They fetch a key when its locked door is reached. */
export const solution = ({ rooms, keys, treasure }: House): ReadonlyArray<string> => {
  const waysOf = (room: number) =>
    directions.flatMap((direction) => {
      const way = rooms[room].ways[direction]
      return way === undefined ? [] : [[direction, way.to] as const]
    })
  const actions: Array<string> = []
  const held = new Set<string>()
  const opened = new Set<string>()
  let here = 0
  const walk = (to: number): void => {
    for (const [direction, next] of pathBetween(here, to, waysOf)) {
      const lock = rooms[here].ways[direction]?.lock ?? null
      if (lock !== null && !opened.has(lock)) {
        if (!held.has(lock)) {
          // Walk from the door to its key, and continue from there.
          walk(keys[lock])
          actions.push(`take the ${lock} key`)
          held.add(lock)
          return walk(to)
        }
        actions.push(`unlock the ${lock} door`)
        opened.add(lock)
      }
      actions.push(`go ${direction}`)
      here = next
    }
  }
  walk(treasure)
  return [...actions, "take the treasure"]
}

const most = roomNames.length

export const Config = Schema.Struct({
  type: withDefault(Schema.Literal("key_door"), "key_door"),
  ...levelFields,
  /** The number of rooms in the house. */
  rooms: withDefault(intBetween(2, most), 5),
  /** The number of rooms that are behind a locked door. */
  doors: withDefault(intBetween(0, colours.length), 2),
})
export const kind: DatasetKind = makeKind({
  type: "key_door",
  schema: Config,
  open: (config, { from }) => {
    const { rooms, doors } = config
    if (doors >= rooms) return ConfigError.at(from, "doors", `expected fewer than the ${rooms} rooms, found ${doors}`)
    return levels(config, (index, id, random) =>
      make({ id, house: drawn(rooms, doors, random), metadata: { level: index + 1, rooms, doors } }),
    )
  },
})
