/**
 * MinAtar's Space Invaders (Young and Tian 2019, arXiv:1903.03176): a cannon shoots aliens, which march from side to side,
 * come down by a row at each side, and shoot back. The reward is 1 for each alien that is hit. Few aliens march faster. When
 * all are hit, new ones come, which march a little faster. The game ends when a bullet or an alien hits the cannon, or when
 * the aliens turn and one is at the bottom. There is no time limit, and nothing is random but the repetition of actions.
 *
 * Actions are MinAtar's minimal set: nothing, left, right, fire. The observation's planes of 10 × 10 zeros and ones: cannon,
 * alien, the aliens again if they march to the left, and to the right, the cannon's bullets, the aliens' bullets. Unlike in
 * MinAtar, a new episode forgets the last action, so that each episode can be replayed alone.
 */
import { checkOptions } from "../../../base/EnvError.ts"
import * as G from "../../../tensor/graph/ops.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import { type BoardEnv, mark } from "../internal/board.ts"
import { flagged, lookUp, numbersOf } from "../internal/stateTensors.ts"
import { spaceInvaders } from "../ui/minAtarBoards.ts"
import { actions, boardOf, type GraphForm, minAtarEnv, moved, places, RampedOptions, side } from "./minAtar.ts"

const shotInterval = 5
const enemyShotInterval = 10
const firstMoveInterval = 12
const leastMoveInterval = 6
const lastRow = places - side

// These are offsets in a state. The aliens' `heading` is 1 to the right and −1 to the left. From `bullets` on, there are
// three boards of zeros and ones.
const over = 0
const lastAction = 1
const cannon = 2
const heading = 3
const moveInterval = 4
const untilMove = 5
const untilEnemyShot = 6
const untilShot = 7
const ramps = 8
const bullets = 9
const enemyBullets = bullets + places
const aliens = enemyBullets + places

/** Tells whether there is an alien at a place of a first wave. */
const isInWave = (place: number): boolean => place < 4 * side && place % side >= 2 && place % side < 8

const bringWave = (state: Int32Array, at: number): void => {
  for (let place = 0; place < places; place++) state[at + aliens + place] = isInWave(place) ? 1 : 0
}

const countAliens = (state: Int32Array, at: number): number => {
  let count = 0
  for (let place = 0; place < places; place++) count += state[at + aliens + place]
  return count
}

const isInColumn = (state: Int32Array, at: number, column: number): boolean => {
  for (let place = column; place < places; place += side) if (state[at + aliens + place] === 1) return true
  return false
}

/** Moves the aliens down by a row; those of the last row come to the first. The game is over then, but MinAtar shows it. */
const comeDown = (state: Int32Array, at: number): void => {
  const from = at + aliens
  for (let column = 0; column < side; column++) {
    const last = state[from + lastRow + column]
    if (last === 1) state[at + over] = 1
    for (let place = lastRow + column; place >= side; place -= side) state[from + place] = state[from + place - side]
    state[from + column] = last
  }
}

const march = (state: Int32Array, at: number): void => {
  state[at + untilMove] = Math.min(countAliens(state, at), state[at + moveInterval])
  const from = at + aliens
  const isToLeft = state[at + heading] < 0
  if (isInColumn(state, at, isToLeft ? 0 : side - 1)) {
    state[at + heading] = -state[at + heading]
    comeDown(state, at)
  } else if (isToLeft) {
    // The first column has no aliens, so that all rows can be moved at once.
    state.copyWithin(from, from + 1, from + places)
    state[from + places - 1] = 0
  } else {
    state.copyWithin(from + 1, from, from + places - 1)
    state[from] = 0
  }
}

/** The lowest alien of the column that is nearest to the cannon shoots; of two columns, the left one. */
const shootBack = (state: Int32Array, at: number): void => {
  const x = state[at + cannon]
  for (let far = 0; far < side; far++) {
    for (let column = x - far; column <= x + far; column += Math.max(1, 2 * far)) {
      if (column < 0 || column >= side || !isInColumn(state, at, column)) continue
      let place = lastRow + column
      while (state[at + aliens + place] === 0) place -= side
      state[at + enemyBullets + place] = 1
      return
    }
  }
}

const act = (state: Int32Array, at: number, action: number): void => {
  if (action === actions.fire && state[at + untilShot] === 0) {
    state[at + bullets + lastRow + state[at + cannon]] = 1
    state[at + untilShot] = shotInterval
  } else if (action === actions.left) state[at + cannon] = moved(state[at + cannon], -1)
  else if (action === actions.right) state[at + cannon] = moved(state[at + cannon], 1)
}

const moveBullets = (state: Int32Array, at: number): void => {
  const [up, down] = [at + bullets, at + enemyBullets]
  state.copyWithin(up, up + side, up + places)
  state.fill(0, up + lastRow, up + places)
  state.copyWithin(down + side, down, down + lastRow)
  state.fill(0, down, down + side)
}

/** Removes the aliens at places of bullets, and these bullets; returns their number. */
const hit = (state: Int32Array, at: number): number => {
  let hits = 0
  for (let place = 0; place < places; place++) {
    if (state[at + aliens + place] === 0 || state[at + bullets + place] === 0) continue
    state[at + aliens + place] = 0
    state[at + bullets + place] = 0
    hits++
  }
  return hits
}

const reset = (state: Int32Array, at: number): void => {
  state[at + cannon] = 5
  state[at + heading] = -1
  state[at + moveInterval] = firstMoveInterval
  state[at + untilMove] = firstMoveInterval
  state[at + untilEnemyShot] = enemyShotInterval
  bringWave(state, at)
}

const stepWith =
  (isRamping: boolean) =>
  (state: Int32Array, at: number, action: number): number => {
    act(state, at, action)
    moveBullets(state, at)
    const below = lastRow + state[at + cannon]
    if (state[at + enemyBullets + below] === 1 || state[at + aliens + below] === 1) state[at + over] = 1
    if (state[at + untilMove] === 0) {
      march(state, at)
      if (state[at + aliens + below] === 1) state[at + over] = 1
    }
    if (state[at + untilEnemyShot] === 0) {
      state[at + untilEnemyShot] = enemyShotInterval
      shootBack(state, at)
    }
    const reward = hit(state, at)
    if (state[at + untilShot] > 0) state[at + untilShot]--
    state[at + untilMove]--
    state[at + untilEnemyShot]--
    if (countAliens(state, at) === 0) {
      if (isRamping && state[at + moveInterval] > leastMoveInterval) {
        state[at + moveInterval]--
        state[at + ramps]++
      }
      bringWave(state, at)
    }
    return reward
  }

const show = (state: Int32Array, at: number, into: Float32Array, to: number): void => {
  mark(into, to, 0, side, side - 1, state[at + cannon])
  const direction = to + (state[at + heading] < 0 ? 2 : 3) * places
  for (let place = 0; place < places; place++) {
    const alien = state[at + aliens + place]
    into[to + places + place] = alien
    into[direction + place] = alien
    into[to + 4 * places + place] = state[at + bullets + place]
    into[to + 5 * places + place] = state[at + enemyBullets + place]
  }
}

// What follows are the same rules as expressions of tensors. Boards are [N, places].

const total = (board: Tensor): Tensor => G.sum(board, 1)

/** Returns a board whose cells are moved by a number of places; zeros come in. */
const shifted = (board: Tensor, by: number): Tensor => {
  const [count] = board.shape
  const kept = G.slice(board, [0, Math.max(0, -by)], [count, places - Math.abs(by)])
  return G.pad(kept, [0, Math.max(0, by)], [0, Math.max(0, -by)])
}

const columnOf = (board: Tensor, column: number): Tensor =>
  G.reshape(G.slice(gridOf(board), [0, 0, column], [board.shape[0], side, 1]), [board.shape[0], side])

const gridOf = (board: Tensor): Tensor => G.reshape(board, [board.shape[0], side, side])

/** Returns the aliens after a march, the new heading, and whether the game ends by it. */
const marchedOf = (board: Tensor, direction: Tensor) => {
  const isToLeft = G.less(direction, 0)
  const atEdge = G.where(isToLeft, total(columnOf(board, 0)), total(columnOf(board, side - 1)))
  const turns = G.greater(atEdge, 0)
  const [count] = board.shape
  const bottom = G.slice(board, [0, lastRow], [count, side])
  const down = G.concat([bottom, G.slice(board, [0, 0], [count, lastRow])], 1)
  const across = G.where(G.expandDims(isToLeft, 1), shifted(board, -1), shifted(board, 1))
  return {
    board: G.where(G.expandDims(turns, 1), down, across),
    heading: G.where(turns, G.neg(direction), direction),
    ends: G.and(turns, G.greater(total(bottom), 0)),
  }
}

/** Returns a board with a one at the place of the alien that shoots. */
const shooterOf = (board: Tensor, cannonX: Tensor): Tensor => {
  const columns = G.constant(Float32Array.from({ length: side }, (_, column) => column))
  const rowNumbers = G.constant(
    Float32Array.from({ length: side }, (_, row) => row),
    [side, 1],
  )
  const has = G.max(gridOf(board), 1)
  // Each column's distance; of two at the same distance the left one is a little nearer, and an empty one is far away.
  const distance = G.add(G.abs(G.sub(columns, G.expandDims(cannonX, 1))), G.mul(columns, 1 / 64))
  const column = G.argMax(G.neg(G.add(distance, G.mul(G.sub(1, has), 64))))
  const lowest = lookUp(G.max(G.mul(gridOf(board), rowNumbers), 1), column)
  return G.oneHot(G.add(G.mul(G.cast(lowest, "i32"), side), column), places)
}

const graphFor = (isRamping: boolean): GraphForm => ({
  // The first bullet is shot in step 11 from a row not below the fourth, and then falls by six rows.
  shortest: 17,
  observe: (state) => {
    const [count] = state.shape
    const bottom = G.pad(G.oneHot(G.cast(numbersOf(state, cannon), "i32"), side), [0, lastRow], [0, 0])
    const isToLeft = G.expandDims(G.less(numbersOf(state, heading), 0), 1)
    const board = boardOf(state, aliens)
    const none = G.constant(new Float32Array(count * places), [count, places])
    return G.concat(
      [
        bottom,
        board,
        G.where(isToLeft, board, none),
        G.where(isToLeft, none, board),
        boardOf(state, bullets),
        boardOf(state, enemyBullets),
      ],
      1,
    )
  },
  step: (state, action) => {
    const fires = G.and(G.equal(action, actions.fire), G.equal(numbersOf(state, untilShot), 0))
    const by = G.sub(G.cast(G.equal(action, actions.right), "f32"), G.cast(G.equal(action, actions.left), "f32"))
    const from = numbersOf(state, cannon)
    const x = G.clip(G.add(from, by), 0, side - 1)
    const below = G.add(G.cast(x, "i32"), lastRow)
    const shot = G.mul(G.oneHot(G.add(G.cast(from, "i32"), lastRow), places), flagged(fires))
    const flying = shifted(G.maximum(boardOf(state, bullets), shot), -side)
    const falling = shifted(boardOf(state, enemyBullets), side)

    const before = boardOf(state, aliens)
    const marches = G.equal(numbersOf(state, untilMove), 0)
    const marched = marchedOf(before, numbersOf(state, heading))
    const board = G.where(G.expandDims(marches, 1), marched.board, before)
    const struck = G.add(G.add(lookUp(falling, below), lookUp(before, below)), lookUp(board, below))
    const isOver = G.or(G.greater(struck, 0), G.and(marches, marched.ends))

    const shoots = G.equal(numbersOf(state, untilEnemyShot), 0)
    const hits = G.mul(board, flying)
    const rest = G.sub(board, hits)
    const isCleared = G.equal(total(rest), 0)
    const interval = numbersOf(state, moveInterval)
    const isFaster = G.cast(G.and(isCleared, G.greater(interval, isRamping ? leastMoveInterval : Infinity)), "f32")
    const wait = G.where(marches, G.minimum(total(before), interval), numbersOf(state, untilMove))
    const wave = G.constant(Float32Array.from({ length: places }, (_, place) => (isInWave(place) ? 1 : 0)))
    const numbers = [
      G.cast(isOver, "f32"),
      numbersOf(state, lastAction),
      x,
      G.where(marches, marched.heading, numbersOf(state, heading)),
      G.sub(interval, isFaster),
      G.sub(wait, 1),
      G.sub(G.where(shoots, enemyShotInterval, numbersOf(state, untilEnemyShot)), 1),
      G.maximum(G.sub(G.where(fires, shotInterval, numbersOf(state, untilShot)), 1), 0),
      G.add(numbersOf(state, ramps), isFaster),
    ]
    const boards = [
      G.sub(flying, hits),
      G.maximum(falling, G.mul(shooterOf(board, x), flagged(shoots))),
      G.where(G.expandDims(isCleared, 1), wave, rest),
    ]
    return {
      state: G.concat([...numbers.map((number) => G.expandDims(number, 1)), ...boards], 1),
      reward: total(hits),
      terminated: isOver,
    }
  },
})

export const SpaceInvadersOptions = RampedOptions
export type SpaceInvadersOptions = RampedOptions

/** Makes the env with other options: `SpaceInvaders.make({ stickyActionProb: 0, difficultyRamping: false })`. */
export const make = (options: SpaceInvadersOptions = {}): BoardEnv => {
  checkOptions("SpaceInvaders", options, SpaceInvadersOptions)
  const isRamping = options.difficultyRamping ?? true
  return minAtarEnv(
    {
      name: "SpaceInvaders",
      planes: ["cannon", "alien", "alien_left", "alien_right", "friendly_bullet", "enemy_bullet"],
      minimalActions: ["nothing", "left", "right", "fire"],
      look: spaceInvaders,
      stateSize: aliens + places,
      lastAction,
      reset,
      step: stepWith(isRamping),
      show,
      graph: () => graphFor(isRamping),
    },
    options,
  )
}

/** The env with its default options: `Batch.make(SpaceInvaders.env, 32)`. */
export const env: BoardEnv = make()
