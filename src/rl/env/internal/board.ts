/**
 * Makes envs of board games from their rules: the env and its fast batch. An observation is planes, i.e. grids of zeros
 * and ones, one for each kind of thing on the board. It only computes; the games in `games`, `grid` and `pixel` use it.
 */
import type { Stream } from "../../../base/rng/Rng.ts"
import { type EnvDefinition, type Env, make } from "../Env.ts"
import { type EnvGraph, withGraph } from "../EnvGraph.ts"
import { withRecipe } from "../recipe.ts"
import { type Box, box, discrete, type Discrete } from "../Space.ts"
import { batchOf, copyFrom, type KernelArrays, type EnvKernel, streamsOf } from "./episodes.ts"

/**
 * The rules of a game on a board. A state is a few whole numbers, which the functions change in place; it begins at
 * `at` in an array that may hold many states. The env and its fast batch are both made from these rules.
 */
export interface Rules {
  /** The size of a state. Its first number tells whether the game is over. */
  readonly stateSize: number
  /** Writes the first state of an episode into `state` from `at` on. The caller has set all its numbers to 0. */
  readonly reset: (state: Int32Array, at: number, random: Stream) => void
  /** Makes a move, sets the state's first number if the move ends the game, and returns the reward. */
  readonly step: (state: Int32Array, at: number, action: number, random: Stream) => number
  /** Writes an observation [planes, size, size] into `into` from `to` on. The caller has set its numbers to 0. */
  readonly show: (state: Int32Array, at: number, into: Float32Array, to: number) => void
}

export interface BoardGame extends Pick<
  EnvDefinition<Int32Array, Discrete>,
  "id" | "maxSteps" | "renderText" | "renderSvg" | "ui"
> {
  /** The name and options that a config gives for this game. Missing if a config cannot describe the game fully. */
  readonly recipe?: { readonly name: string; readonly options: object }
  /** The names of the planes of an observation. */
  readonly planes: ReadonlyArray<string>
  /** The shape of an observation. Default: [planes, size, size], an image. */
  readonly shape?: ReadonlyArray<number>
  /** The number of rows, which is also the number of columns. */
  readonly size: number
  /** The number of actions, which are the integers from 0. */
  readonly actions: number
  readonly rules: Rules
  /** The same rules as expressions of tensors; a state has the same numbers in the same order. */
  readonly graph?: () => Omit<EnvGraph, "start" | "stateSize">
}

export type BoardEnv = Env<Int32Array, Discrete, Box>

/** Makes the env of a game. Its `batch` keeps all states in one array. */
export const boardEnv = (game: BoardGame): BoardEnv => {
  const { recipe, planes, size, shape = [planes.length, size, size], actions, rules, graph, ...definition } = game
  const { stateSize } = rules
  const observationSize = planes.length * size * size
  const observe = (state: Int32Array): Float32Array => {
    const seen = new Float32Array(observationSize)
    rules.show(state, 0, seen, 0)
    return seen
  }

  const kernel = ({ numEnvs, observations, rewards, terminated }: KernelArrays): EnvKernel => {
    const states = new Int32Array(numEnvs * stateSize)
    const { streams, save, load } = streamsOf(game.id, numEnvs)
    const writeObservation = (index: number): void => {
      observations.fill(0, index * observationSize, (index + 1) * observationSize)
      rules.show(states, index * stateSize, observations, index * observationSize)
    }
    return {
      start: (index, random) => {
        streams[index] = random
        states.fill(0, index * stateSize, (index + 1) * stateSize)
        rules.reset(states, index * stateSize, random)
        writeObservation(index)
      },
      advance: (taken, waiting) => {
        for (let index = 0; index < numEnvs; index++) {
          if (waiting[index] !== 0) continue
          const at = index * stateSize
          rewards[index] = rules.step(states, at, taken[index], streams[index])
          terminated[index] = states[at] !== 0 ? 1 : 0
          writeObservation(index)
        }
      },
      stateAt: (index) => states.slice(index * stateSize, (index + 1) * stateSize),
      save: () => ({ states: states.slice(), ...save() }),
      load: (saved, streamOf) => {
        copyFrom(game.id, saved, "states", states)
        load(saved, streamOf)
      },
    }
  }

  const env: BoardEnv = make({
    ...definition,
    observationSpace: box(0, 1, shape),
    actionSpace: discrete(actions),
    reset: (random) => {
      const state = new Int32Array(stateSize)
      rules.reset(state, 0, random)
      return state
    },
    observe,
    step: (state, action, random) => {
      const next = state.slice()
      const reward = rules.step(next, 0, action, random)
      return { state: next, reward, terminated: next[0] !== 0 }
    },
    batch: (numEnvs, options) => batchOf(env, numEnvs, options, kernel),
  })
  const started = new Int32Array(stateSize)
  const start = (into: Float32Array, at: number, random: Stream): void => {
    started.fill(0)
    rules.reset(started, 0, random)
    into.set(started, at)
  }
  withGraph(env, graph && (() => ({ ...graph(), start, stateSize })))
  return recipe === undefined ? env : withRecipe(env, recipe.name, recipe.options)
}

/** Sets the element of a plane in row `y` and column `x` to 1. The observation begins at offset `to` of `into`. */
export const mark = (into: Float32Array, to: number, plane: number, size: number, y: number, x: number): void => {
  into[to + (plane * size + y) * size + x] = 1
}

// The change of row and column by each of the actions up, down, left and right.
export const rowStep = [-1, 1, 0, 0]
export const columnStep = [0, 0, -1, 1]

/** Returns the action to take: with this probability the last one, else `action`. Stores it in the state at `slot`. */
export const sticky = (
  state: Int32Array,
  slot: number,
  action: number,
  probability: number,
  random: Stream,
): number => {
  const taken = probability > 0 && random.uniformDouble() < probability ? state[slot] : action
  state[slot] = taken
  return taken
}
