/**
 * MinAtar's Seaquest (Young and Tian 2019, arXiv:1903.03176): a submarine shoots fish and other submarines, which is worth 1
 * each, and takes up to six divers on board. It needs air: at the surface it gets new air for one of its divers. With six, it
 * gives up all of them, and is paid 1 for each tenth of the air that is left. The game ends when the submarine is hit, has no
 * air, or surfaces without a diver. Enemies come more often and move faster after each surfacing. There is no time limit.
 *
 * Actions are MinAtar's: nothing, left, up, right, down, fire. The observation's planes of 10 × 10 zeros and ones: the
 * submarine's front and back, its bullets, trail (the place behind each fish, enemy submarine or diver), enemy bullets, fish,
 * enemy submarines, gauge of the air, gauge of the divers on board, divers. Unlike in MinAtar, a new episode forgets the last
 * action, so that each episode can be replayed alone.
 */
import { checkOptions } from "../../../base/EnvError.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import { type BoardEnv, mark } from "../internal/board.ts"
import { seaquest } from "../ui/minAtarBoards.ts"
import { actions, coin, minAtarEnv, moved, RampedOptions, side } from "./minAtar.ts"
import * as Moving from "./moving.ts"

const mostAir = 200
const firstSpawnInterval = 20
const diverInterval = 30
const firstMoveWait = 5
const leastMoveWait = 2
const diverWait = 5
const shotInterval = 5
const enemyShotWait = 10
const mostDivers = 6
const deepest = side - 2

// These are offsets in a state. `faces` is 1 if the submarine faces to the right. `isSurfaced` is 1 from one step at the
// surface until it dives. `aboard` can be below 0: MinAtar takes one diver more than there are when it pays for six.
const over = 0
const lastAction = 1
const subX = 2
const subY = 3
const faces = 4
const air = 5
const aboard = 6
const isSurfaced = 7
const untilShot = 8
const spawnInterval = 9
const untilSpawn = 10
const untilDiver = 11
const moveWait = 12
const ramps = 13

// The lists of moving things. An enemy is on the board for at most 60 steps at first, when one comes every 20 steps, and in
// the end for 30 steps, when one comes every step; so 64 are enough. A bullet is there for at most ten steps, and an enemy
// submarine shoots every eleventh.
const bullets: Moving.MovingList = { from: 14, size: 3, most: 4 }
const enemyBullets: Moving.MovingList = { from: bullets.from + Moving.numbersIn(bullets), size: 3, most: 64 }
const fish: Moving.MovingList = { from: enemyBullets.from + Moving.numbersIn(enemyBullets), size: 4, most: 64 }
/** An enemy submarine has a fifth number, the steps until it shoots. */
const subs: Moving.MovingList = { from: fish.from + Moving.numbersIn(fish), size: 5, most: 64 }
const divers: Moving.MovingList = { from: subs.from + Moving.numbersIn(subs), size: 4, most: 4 }
const untilEnemyShot = 4
const enemies = [subs, fish]
const timers = [untilSpawn, untilDiver, untilShot]

/** An enemy begins at an edge, unless another one comes the opposite way in its row. */
const spawnEnemy = (state: Int32Array, at: number, random: Stream): void => {
  const isToRight = coin(random) ? 1 : 0
  const isSub = random.uniformDouble() < 1 / 3
  const y = 1 + random.integer(deepest)
  for (const list of enemies) {
    const count = Moving.countOf(state, at, list)
    for (let index = 0; index < count; index++) {
      const enemy = Moving.thingOf(at, list, index)
      if (state[enemy + Moving.row] === y && state[enemy + Moving.toRight] !== isToRight) return
    }
  }
  const x = isToRight === 1 ? 0 : side - 1
  if (isSub) Moving.add(state, at, subs, x, y, isToRight, state[at + moveWait], enemyShotWait)
  else Moving.add(state, at, fish, x, y, isToRight, state[at + moveWait])
}

const spawnDiver = (state: Int32Array, at: number, random: Stream): void => {
  const isToRight = coin(random)
  Moving.add(state, at, divers, isToRight ? 0 : side - 1, 1 + random.integer(deepest), isToRight ? 1 : 0, diverWait)
}

const spawn = (state: Int32Array, at: number, random: Stream): void => {
  if (state[at + untilSpawn] === 0) {
    spawnEnemy(state, at, random)
    state[at + untilSpawn] = state[at + spawnInterval]
  }
  if (state[at + untilDiver] === 0) {
    spawnDiver(state, at, random)
    state[at + untilDiver] = diverInterval
  }
}

const act = (state: Int32Array, at: number, action: number): void => {
  if (action === actions.fire && state[at + untilShot] === 0) {
    Moving.add(state, at, bullets, state[at + subX], state[at + subY], state[at + faces])
    state[at + untilShot] = shotInterval
  } else if (action === actions.left || action === actions.right) {
    const isRight = action === actions.right
    state[at + subX] = moved(state[at + subX], isRight ? 1 : -1)
    state[at + faces] = isRight ? 1 : 0
  } else if (action === actions.up) state[at + subY] = moved(state[at + subY], -1)
  else if (action === actions.down) state[at + subY] = moved(state[at + subY], 1, 0, deepest)
}

const isAtSub = (state: Int32Array, at: number, thing: number): boolean =>
  Moving.isAt(state, thing, state[at + subX], state[at + subY])

const endIfHit = (state: Int32Array, at: number, thing: number): void => {
  if (isAtSub(state, at, thing)) state[at + over] = 1
}

/** Moves a bullet of the player's; returns the reward. It hits only one enemy, and a fish before a submarine. */
const moveBullet = (state: Int32Array, at: number, index: number): number => {
  const bullet = Moving.thingOf(at, bullets, index)
  const isOnBoard = Moving.advance(state, bullet)
  const [x, y] = [state[bullet + Moving.column], state[bullet + Moving.row]]
  const hit = isOnBoard && (removeAt(state, at, fish, x, y) || removeAt(state, at, subs, x, y))
  if (hit || !isOnBoard) Moving.remove(state, at, bullets, index)
  return hit ? 1 : 0
}

/** Removes the first thing at a place; returns whether there was one. */
const removeAt = (state: Int32Array, at: number, list: Moving.MovingList, x: number, y: number): boolean => {
  const index = Moving.firstAt(state, at, list, x, y)
  if (index >= 0) Moving.remove(state, at, list, index)
  return index >= 0
}

/** Tells whether a thing that waits between its moves moves now, and counts its wait. */
const movesNow = (state: Int32Array, thing: number, wait: number): boolean => {
  const isNow = state[thing + Moving.untilMove] === 0
  state[thing + Moving.untilMove] = isNow ? wait : state[thing + Moving.untilMove] - 1
  return isNow
}

/** Moves a diver, whom the submarine takes on board where they meet. */
const moveDiver = (state: Int32Array, at: number, index: number): number => {
  const diver = Moving.thingOf(at, divers, index)
  const hasRoom = state[at + aboard] < mostDivers
  const isMet = hasRoom && isAtSub(state, at, diver)
  if (!isMet && !movesNow(state, diver, diverWait)) return 0
  const isGone = !isMet && !Moving.advance(state, diver)
  const isTaken = isMet || (hasRoom && isAtSub(state, at, diver))
  if (isTaken) state[at + aboard]++
  if (isTaken || isGone) Moving.remove(state, at, divers, index)
  return 0
}

/** An enemy submarine shoots when its wait is over. */
const shoot = (state: Int32Array, at: number, sub: number): void => {
  if (state[sub + untilEnemyShot] > 0) {
    state[sub + untilEnemyShot]--
    return
  }
  state[sub + untilEnemyShot] = enemyShotWait
  const { column, row, toRight } = Moving
  Moving.add(state, at, enemyBullets, state[sub + column], state[sub + row], state[sub + toRight])
}

/** Moves an enemy; returns 1 if it moves into a bullet of the player's. */
const moveEnemy = (state: Int32Array, at: number, list: Moving.MovingList, index: number): number => {
  const enemy = Moving.thingOf(at, list, index)
  endIfHit(state, at, enemy)
  const isMoved = movesNow(state, enemy, state[at + moveWait])
  const isOnBoard = !isMoved || Moving.advance(state, enemy)
  endIfHit(state, at, enemy)
  const [x, y] = [state[enemy + Moving.column], state[enemy + Moving.row]]
  const isHit = isMoved && isOnBoard && !isAtSub(state, at, enemy) && removeAt(state, at, bullets, x, y)
  // An enemy submarine shoots even in the step in which it is hit.
  if (list === subs) shoot(state, at, enemy)
  if (isHit || !isOnBoard) Moving.remove(state, at, list, index)
  return isHit ? 1 : 0
}

const moveSub = (state: Int32Array, at: number, index: number): number => moveEnemy(state, at, subs, index)
const moveFish = (state: Int32Array, at: number, index: number): number => moveEnemy(state, at, fish, index)

const moveEnemyBullet = (state: Int32Array, at: number, index: number): number => {
  const bullet = Moving.thingOf(at, enemyBullets, index)
  endIfHit(state, at, bullet)
  if (Moving.advance(state, bullet)) endIfHit(state, at, bullet)
  else Moving.remove(state, at, enemyBullets, index)
  return 0
}

const ramp = (state: Int32Array, at: number): void => {
  if (state[at + spawnInterval] <= 1 && state[at + moveWait] <= leastMoveWait) return
  if (state[at + moveWait] > leastMoveWait && state[at + ramps] % 2 === 1) state[at + moveWait]--
  if (state[at + spawnInterval] > 1) state[at + spawnInterval]--
  state[at + ramps]++
}

const gaugeOf = (left: number): number => Math.floor((left * 10) / mostAir)

/** Gives new air for a diver, or for six and a reward. */
const surface = (state: Int32Array, at: number, isRamping: boolean): number => {
  state[at + isSurfaced] = 1
  const isPaid = state[at + aboard] === mostDivers
  const reward = isPaid ? gaugeOf(state[at + air]) : 0
  state[at + aboard] = isPaid ? -1 : state[at + aboard] - 1
  state[at + air] = mostAir
  if (isRamping) ramp(state, at)
  return reward
}

const breathe = (state: Int32Array, at: number, isRamping: boolean): number => {
  if (state[at + air] <= 0) state[at + over] = 1
  if (state[at + subY] > 0) {
    state[at + air]--
    state[at + isSurfaced] = 0
    return 0
  }
  if (state[at + isSurfaced] === 1) return 0
  if (state[at + aboard] !== 0) return surface(state, at, isRamping)
  state[at + over] = 1
  return 0
}

const reset = (state: Int32Array, at: number): void => {
  state[at + subX] = 5
  state[at + air] = mostAir
  state[at + isSurfaced] = 1
  state[at + spawnInterval] = firstSpawnInterval
  state[at + untilSpawn] = firstSpawnInterval
  state[at + untilDiver] = diverInterval
  state[at + moveWait] = firstMoveWait
}

const stepWith =
  (isRamping: boolean) =>
  (state: Int32Array, at: number, action: number, random: Stream): number => {
    spawn(state, at, random)
    act(state, at, action)
    const reward =
      Moving.sumReversed(state, at, bullets, moveBullet) +
      Moving.sumReversed(state, at, divers, moveDiver) +
      Moving.sumReversed(state, at, subs, moveSub) +
      Moving.sumReversed(state, at, enemyBullets, moveEnemyBullet) +
      Moving.sumReversed(state, at, fish, moveFish)
    for (const timer of timers) if (state[at + timer] > 0) state[at + timer]--
    return reward + breathe(state, at, isRamping)
  }

const trail = 3
const shown: ReadonlyArray<readonly [Moving.MovingList, Moving.ShownIn]> = [
  [bullets, { plane: 2 }],
  [enemyBullets, { plane: 4 }],
  [fish, { plane: 5, trail }],
  [subs, { plane: 6, trail }],
  [divers, { plane: 9, trail }],
]

const show = (state: Int32Array, at: number, into: Float32Array, to: number): void => {
  const [x, y] = [state[at + subX], state[at + subY]]
  mark(into, to, 0, side, y, x)
  mark(into, to, 1, side, y, state[at + faces] === 1 ? x - 1 : x + 1)
  for (const [list, planes] of shown) Moving.markAll(state, at, list, planes, into, to)
  // A state may come from a file, so both rows of cells are bounded.
  const gauge = Math.min(gaugeOf(state[at + air]), side)
  const carried = Math.min(state[at + aboard], mostDivers)
  for (let cell = 0; cell < gauge; cell++) mark(into, to, 7, side, side - 1, cell)
  for (let cell = 1; cell <= carried; cell++) mark(into, to, 8, side, side - 1, side - 1 - cell)
}

export const SeaquestOptions = RampedOptions
export type SeaquestOptions = RampedOptions

/** Makes the env with other options: `Seaquest.make({ stickyActionProb: 0, difficultyRamping: false })`. */
export const make = (options: SeaquestOptions = {}): BoardEnv => {
  checkOptions("Seaquest", options, SeaquestOptions)
  return minAtarEnv(
    {
      name: "Seaquest",
      planes: [
        "sub_front",
        "sub_back",
        "friendly_bullet",
        "trail",
        "enemy_bullet",
        "enemy_fish",
        "enemy_sub",
        "oxygen_gauge",
        "diver_gauge",
        "diver",
      ],
      minimalActions: ["nothing", "left", "up", "right", "down", "fire"],
      look: seaquest,
      stateSize: divers.from + Moving.numbersIn(divers),
      lastAction,
      reset,
      step: stepWith(options.difficultyRamping ?? true),
      show,
    },
    options,
  )
}

/** The env with its default options: `Batch.make(Seaquest.env, 32)`. */
export const env: BoardEnv = make()
