/**
 * MemoryChain: the first observations of an episode show bits, and after a delay the agent must name one of them. It is
 * bsuite's env of the experiments "memory length" (one bit, delays up to 100) and "memory size" (a delay of 2, up to 40
 * bits; Osband et al. 2020, arXiv:1908.03568). A policy without a memory has a mean return of 0.
 *
 * Actions: the value of the bit that is asked for, 0 or 1; all but the last are ignored. The observation has bits + 2 numbers:
 * the share of time that is left, from 1 to 0; the number of the bit that is asked for, only in the last observation before
 * the answer; and −1 or 1 for each bit, only in the first observations, which are two equal ones, as in bsuite. An episode
 * has `length` + 1 steps; the only reward is 1 or −1 for the last one.
 */
import * as Schema from "effect/Schema"
import { intBetween } from "../../../base/config/fields.ts"
import { checkOptions, checkWhole } from "../../../base/EnvError.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { Tensor } from "../../../tensor/graph/Tensor.ts"
import * as G from "../../../tensor/graph/ops.ts"
import * as Env from "../Env.ts"
import { type EnvGraph, withGraph } from "../EnvGraph.ts"
import { flagged, lookUp, numbersOf } from "../internal/stateTensors.ts"
import { withRecipe } from "../recipe.ts"
import { type Box, box, discrete, type Discrete } from "../Space.ts"
import { memoryChain } from "../ui/memoryChain.ts"
import { picturesOf } from "../ui/pictures.ts"

export const MemoryChainOptions = Schema.Struct({
  /** The number of observations from the bits to the question. Default: 10. */
  length: Schema.optionalKey(intBetween(1, 100_000)),
  /** The number of bits. Default: 1. */
  bits: Schema.optionalKey(intBetween(1, 1000)),
})
export type MemoryChainOptions = typeof MemoryChainOptions.Type

// These are offsets in a state: the number of steps so far, the bit that will be asked for, and the bits, each 0 or 1.
const taken = 0
const asked = 1
const first = 2

const graphFor = (length: number, bits: number, stateSize: number): EnvGraph => {
  const bitsOf = (state: Tensor): Tensor => G.slice(state, [0, first], [state.shape[0], bits])
  const column = (numbers: Tensor): Tensor => G.expandDims(numbers, 1)
  return {
    stateSize,
    shortest: length + 1,
    start: (into, at, random) => into.set(startOf(bits, random), at),
    observe: (state) => {
      const time = G.relu(G.sub(numbersOf(state, taken), 1))
      const isAsking = G.cast(G.equal(time, length - 1), "f32")
      const isShowing = G.cast(G.equal(time, 0), "f32")
      return G.concat(
        [
          column(G.sub(1, G.div(time, length))),
          column(G.mul(isAsking, numbersOf(state, asked))),
          G.mul(column(isShowing), G.sub(G.mul(bitsOf(state), 2), 1)),
        ],
        1,
      )
    },
    step: (state, action) => {
      const steps = numbersOf(state, taken)
      const terminated = G.greater(steps, length - 0.5)
      const isRight = G.equal(G.cast(action, "f32"), lookUp(bitsOf(state), G.cast(numbersOf(state, asked), "i32")))
      const answered = G.sub(G.mul(G.cast(isRight, "f32"), 2), 1)
      const rest = G.slice(state, [0, asked], [state.shape[0], 1 + bits])
      return {
        state: G.concat([column(G.add(steps, 1)), rest], 1),
        reward: G.reshape(G.mul(flagged(terminated), column(answered)), [state.shape[0]]),
        terminated,
      }
    },
  }
}

/** Draws the first state of an episode. */
const startOf = (bits: number, random: Stream): ReadonlyArray<number> => {
  const values = Array.from({ length: bits }, () => random.integer(2))
  return [0, random.integer(bits), ...values]
}

/** Makes the env with other options: `MemoryChain.make({ length: 30 })`. */
export const make = (options: MemoryChainOptions = {}): Env.Env<ReadonlyArray<number>, Discrete, Box> => {
  checkOptions("MemoryChain", options, MemoryChainOptions)
  const { length = 10, bits = 1 } = options
  const id = `MemoryChain-${length}-${bits}-v0`
  checkWhole(id, length, 1, `MemoryChain: a length of ${length} steps`)
  checkWhole(id, bits, 1, `MemoryChain: ${bits} bits`)
  const context = (bound: number) => Array.from({ length: bits }, () => bound)
  const env = Env.make({
    id,
    observationSpace: box([0, 0, ...context(-1)], [1, Math.max(1, bits - 1), ...context(1)]),
    actionSpace: discrete(2),
    rewardThreshold: 0.95,
    reset: (random): ReadonlyArray<number> => startOf(bits, random),
    observe: (state) => {
      const time = Math.max(0, state[taken] - 1)
      const shown = state.slice(first).map((bit) => (time === 0 ? 2 * bit - 1 : 0))
      return [1 - time / length, time === length - 1 ? state[asked] : 0, ...shown]
    },
    step: (state, action) => {
      const terminated = state[taken] === length
      const isRight = action === state[first + state[asked]]
      const answered = isRight ? 1 : -1
      return { state: state.with(taken, state[taken] + 1), reward: terminated ? answered : 0, terminated }
    },
    ...picturesOf(id, memoryChain, { length, bits }),
  })
  withGraph(env, () => graphFor(length, bits, first + bits))
  return withRecipe(env, "MemoryChain", options)
}

/** The env with its default options: `Batch.make(MemoryChain.env, 16)`. */
export const env = make()
