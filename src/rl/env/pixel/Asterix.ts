/**
 * MinAtar's Asterix (Young and Tian 2019, arXiv:1903.03176): enemies and gold cross eight rows from either side. The reward
 * is 1 for each gold that the player touches; the game ends when the player touches an enemy. Every 100 steps or so they come
 * more often and, every second time, move faster. There is no time limit.
 *
 * Actions are MinAtar's minimal set: nothing, left, up, right, down. The observation's planes of 10 × 10 zeros and ones:
 * player, enemy, trail (the place behind each enemy or gold), gold. Unlike in MinAtar, a new episode forgets the last action,
 * so that each episode can be replayed alone.
 */
import { checkOptions } from "../../../base/EnvError.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { type BoardEnv, mark } from "../internal/board.ts"
import { asterix } from "../ui/minAtarBoards.ts"
import { actions, coin, isOnBoard, minAtarEnv, moved, RampedOptions, side } from "./minAtar.ts"

const rampInterval = 100
const firstSpawnInterval = 10
const firstMoveInterval = 5

// These are offsets in a state. A thing is an enemy or gold; from `things` on, there are four numbers for each row that can
// have one.
const over = 0
const lastAction = 1
const playerX = 2
const playerY = 3
const spawnInterval = 4
const untilSpawn = 5
const moveInterval = 6
const untilMove = 7
const untilRamp = 8
const ramps = 9
const things = 10
const rows = 8

// These are the offsets in the numbers of a thing: whether there is one, its column, and 1 if it moves to the right.
const kind = 0
const column = 1
const toRight = 2
const thingSize = 3
const none = 0
const enemy = 1
const gold = 2

const thingAt = (at: number, row: number): number => at + things + row * thingSize

/** A new enemy or gold begins at an edge of a row that is empty; if no row is, nothing comes. */
const spawn = (state: Int32Array, at: number, random: Stream): void => {
  const isToRight = coin(random)
  const isGold = random.uniformDouble() < 1 / 3
  let free = 0
  for (let row = 0; row < rows; row++) if (state[thingAt(at, row) + kind] === none) free++
  if (free === 0) return
  let before = random.integer(free)
  let row = 0
  while (state[thingAt(at, row) + kind] !== none || before-- > 0) row++
  const thing = thingAt(at, row)
  state[thing + kind] = isGold ? gold : enemy
  state[thing + column] = isToRight ? 0 : side - 1
  state[thing + toRight] = isToRight ? 1 : 0
}

/** Lets the player meet the thing of a row, if both are at the same place; returns the reward. */
const meet = (state: Int32Array, at: number, row: number): number => {
  const thing = thingAt(at, row)
  const isMet = state[at + playerY] === row + 1 && state[at + playerX] === state[thing + column]
  if (!isMet || state[thing + kind] === none) return 0
  if (state[thing + kind] === enemy) {
    state[at + over] = 1
    return 0
  }
  state[thing + kind] = none
  return 1
}

const moveThings = (state: Int32Array, at: number): number => {
  let reward = 0
  for (let row = 0; row < rows; row++) {
    const thing = thingAt(at, row)
    if (state[thing + kind] === none) continue
    state[thing + column] += state[thing + toRight] === 1 ? 1 : -1
    if (isOnBoard(state[thing + column])) reward += meet(state, at, row)
    else state[thing + kind] = none
  }
  return reward
}

const ramp = (state: Int32Array, at: number): void => {
  if (state[at + spawnInterval] <= 1 && state[at + moveInterval] <= 1) return
  if (state[at + untilRamp] >= 0) {
    state[at + untilRamp]--
    return
  }
  if (state[at + moveInterval] > 1 && state[at + ramps] % 2 === 1) state[at + moveInterval]--
  if (state[at + spawnInterval] > 1) state[at + spawnInterval]--
  state[at + ramps]++
  state[at + untilRamp] = rampInterval
}

const reset = (state: Int32Array, at: number): void => {
  state[at + playerX] = 5
  state[at + playerY] = 5
  state[at + spawnInterval] = firstSpawnInterval
  state[at + untilSpawn] = firstSpawnInterval
  state[at + moveInterval] = firstMoveInterval
  state[at + untilMove] = firstMoveInterval
  state[at + untilRamp] = rampInterval
}

const stepWith =
  (isRamping: boolean) =>
  (state: Int32Array, at: number, action: number, random: Stream): number => {
    if (state[at + untilSpawn] === 0) {
      spawn(state, at, random)
      state[at + untilSpawn] = state[at + spawnInterval]
    }
    if (action === actions.left) state[at + playerX] = moved(state[at + playerX], -1)
    else if (action === actions.right) state[at + playerX] = moved(state[at + playerX], 1)
    else if (action === actions.up) state[at + playerY] = moved(state[at + playerY], -1, 1, rows)
    else if (action === actions.down) state[at + playerY] = moved(state[at + playerY], 1, 1, rows)
    let reward = 0
    for (let row = 0; row < rows; row++) reward += meet(state, at, row)
    if (state[at + untilMove] === 0) {
      state[at + untilMove] = state[at + moveInterval]
      reward += moveThings(state, at)
    }
    state[at + untilSpawn]--
    state[at + untilMove]--
    if (isRamping) ramp(state, at)
    return reward
  }

const show = (state: Int32Array, at: number, into: Float32Array, to: number): void => {
  mark(into, to, 0, side, state[at + playerY], state[at + playerX])
  for (let row = 0; row < rows; row++) {
    const thing = thingAt(at, row)
    if (state[thing + kind] === none) continue
    const x = state[thing + column]
    const behind = state[thing + toRight] === 1 ? x - 1 : x + 1
    mark(into, to, state[thing + kind] === gold ? 3 : 1, side, row + 1, x)
    if (isOnBoard(behind)) mark(into, to, 2, side, row + 1, behind)
  }
}

export const AsterixOptions = RampedOptions
export type AsterixOptions = RampedOptions

/** Makes the env with other options: `Asterix.make({ stickyActionProb: 0, difficultyRamping: false })`. */
export const make = (options: AsterixOptions = {}): BoardEnv => {
  checkOptions("Asterix", options, AsterixOptions)
  return minAtarEnv(
    {
      name: "Asterix",
      planes: ["player", "enemy", "trail", "gold"],
      minimalActions: ["nothing", "left", "up", "right", "down"],
      look: asterix,
      stateSize: things + rows * thingSize,
      lastAction,
      reset,
      step: stepWith(options.difficultyRamping ?? true),
      show,
    },
    options,
  )
}

/** The env with its default options: `Batch.make(Asterix.env, 32)`. */
export const env: BoardEnv = make()
