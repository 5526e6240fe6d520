/**
 * DeepSea: a diver sinks one row a step through n rows and must swim right in every one of them to reach the treasure in
 * the last corner. Each swim to the right costs a little, so that random play learns to stay left and finds the treasure
 * in one of 2ⁿ episodes. It is bsuite's test of deep exploration (Osband et al. 2019, arXiv:1703.07608; bsuite is
 * arXiv:1908.03568).
 *
 * Actions: 0 and 1; which of them swims right differs from place to place and is drawn from `mappingSeed`. The observation is
 * the board, n rows of n numbers: 1 at the diver's place, all 0 after the last step. The rewards are −`moveCost` / n for a
 * swim to the right and 1 for the treasure, so the best return is 1 − `moveCost`. With `stochastic`, a swim to the right
 * fails with probability 1 / n, and the last row's first and last places add standard normal noise to the reward.
 */
import * as Schema from "effect/Schema"
import { bounded, real } from "../../../base/config/fields.ts"
import { stream, type Stream } from "../../../base/rng/Rng.ts"
import * as G from "../../../tensor/graph/ops.ts"
import type { EnvGraph } from "../EnvGraph.ts"
import { checkOptions, checkWhole } from "../../../base/EnvError.ts"
import { boardEnv, type BoardEnv, type Rules } from "../internal/board.ts"
import { flagged, numbersOf } from "../internal/stateTensors.ts"
import { boardPictures } from "../ui/board.ts"
import { deepSea } from "../ui/boards.ts"

export const DeepSeaOptions = Schema.Struct({
  /** The number of rows, and of columns. Default: 10. */
  size: Schema.optionalKey(bounded("cells")),
  /** Whether swims to the right may fail and the last row's rewards are noisy. Default: false. */
  stochastic: Schema.optionalKey(Schema.Boolean),
  /** The cost of a swim to the right, times the size. Default: 0.01. */
  moveCost: Schema.optionalKey(real),
  /** The seed from which the actions that swim right are drawn, one for each place. Default: 42. */
  mappingSeed: Schema.optionalKey(bounded("seed")),
  /** Whether these actions are drawn; otherwise action 1 always swims right. Default: true. */
  randomActions: Schema.optionalKey(Schema.Boolean),
})
export type DeepSeaOptions = typeof DeepSeaOptions.Type

// These are offsets in a state: whether the episode is over, and the diver's row and column.
const over = 0
const row = 1
const column = 2

/** Returns for each place, row by row, the action that swims right. */
export const mappingOf = (size: number, mappingSeed: number): Int32Array => {
  const random = stream(mappingSeed, "deep-sea", size)
  return Int32Array.from({ length: size * size }, () => random.integer(2))
}

interface Sea {
  readonly size: number
  readonly cost: number
  readonly mapping: Int32Array
}

const rulesFor = ({ size, cost, mapping }: Sea, stochastic: boolean): Rules => {
  const last = size - 1
  const noiseAt = (atRow: number, atColumn: number, random: Stream): number =>
    stochastic && atRow === last && (atColumn === 0 || atColumn === last) ? random.normal() : 0
  return {
    stateSize: 3,
    reset: () => {},
    step: (state, at, action, random) => {
      const [atRow, atColumn] = [state[at + row], state[at + column]]
      const isRight = action === mapping[atRow * size + atColumn]
      const reward = (isRight && atColumn === last ? 1 : 0) + noiseAt(atRow, atColumn, random)
      const fails = isRight && stochastic && random.uniformDouble() <= 1 / size
      const move = isRight ? Number(!fails) : -1
      state[at + column] = Math.min(Math.max(atColumn + move, 0), last)
      state[at + row] = atRow + 1
      state[at + over] = atRow === last ? 1 : 0
      return isRight ? reward - cost : reward
    },
    show: (state, at, into, to) => {
      if (state[at + row] < size) into[to + state[at + row] * size + state[at + column]] = 1
    },
  }
}

const graphFor = ({ size, cost, mapping }: Sea): Omit<EnvGraph, "start" | "stateSize"> => {
  const places = size * size
  const actions = G.constant(mapping)
  return {
    shortest: size,
    observe: (state) => {
      // After the last step the diver is in the row below the board, whose places are cut off.
      const place = G.add(G.mul(numbersOf(state, row), size), numbersOf(state, column))
      const board = G.oneHot(G.cast(place, "i32"), places + size)
      return G.slice(board, [0, 0], [state.shape[0], places])
    },
    step: (state, action) => {
      const [atRow, atColumn] = [numbersOf(state, row), numbersOf(state, column)]
      const place = G.minimum(G.add(G.mul(atRow, size), atColumn), places - 1)
      const isRight = G.equal(action, G.gather(actions, G.cast(place, "i32")))
      const found = G.and(isRight, G.greater(atColumn, size - 1.5))
      const moved = G.clip(G.add(atColumn, G.where(isRight, 1, -1)), 0, size - 1)
      const below = G.add(atRow, 1)
      const terminated = G.greater(below, size - 0.5)
      return {
        state: G.concat([flagged(terminated), G.expandDims(below, 1), G.expandDims(moved, 1)], 1),
        reward: G.where(found, 1 - cost, G.where(isRight, -cost, 0)),
        terminated,
      }
    },
  }
}

/** Makes the env with other options: `DeepSea.make({ size: 20 })`. */
export const make = (options: DeepSeaOptions = {}): BoardEnv => {
  checkOptions("DeepSea", options, DeepSeaOptions)
  const { size = 10, stochastic = false, moveCost = 0.01, mappingSeed = 42, randomActions = true } = options
  const id = `DeepSea${stochastic ? "Stochastic" : ""}-${size}-v0`
  checkWhole(id, size, 2, `DeepSea: size ${size}`)
  const mapping = randomActions ? mappingOf(size, mappingSeed) : new Int32Array(size * size).fill(1)
  const sea = { size, cost: moveCost / size, mapping }
  return boardEnv({
    id,
    recipe: { name: "DeepSea", options },
    planes: ["diver"],
    shape: [size, size],
    size,
    actions: 2,
    ...boardPictures(id, size, deepSea, { moves: randomActions ? "·" : "←→" }),
    rules: rulesFor(sea, stochastic),
    // A graph form draws no random numbers in its steps.
    ...(!stochastic && { graph: () => graphFor(sea) }),
  })
}

/** The env with its default options: `Batch.make(DeepSea.env, 16)`. */
export const env: BoardEnv = make()
export const large: BoardEnv = make({ size: 20 })
export const stochastic: BoardEnv = make({ stochastic: true })
