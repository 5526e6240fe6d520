import type { Stream } from "../../rng/Rng.ts"
import { type Definition, type Env, make } from "../Env.ts"
import { withRecipe } from "../recipe.ts"
import { box, discrete, type Discrete } from "../Space.ts"
import { palette, svg } from "./draw.ts"
import { batchOf, copyFrom, type Columns, type Kernel, streamsOf } from "./episodes.ts"

/**
 * The rules of a game on a board. A state is a few whole numbers, which are changed in place and observed as planes of zeros
 * and ones. The rules are written once; both the pure env and the fast batch are made from them.
 */
export interface Rules {
  /** The size of a state. Its first number tells whether the game is over. */
  readonly stateSize: number
  /** Writes the first state of an episode into `state` at `at`, where all numbers are 0. */
  readonly reset: (state: Int32Array, at: number, random: Stream) => void
  /** Makes a move, sets the state's first number if the move ends the game, and returns the reward. */
  readonly step: (state: Int32Array, at: number, action: number, random: Stream) => number
  /** Writes the observation, of shape [planes, size, size], into `into` at `to`, where all numbers are 0. */
  readonly show: (state: Int32Array, at: number, into: Float32Array, to: number) => void
}

export interface BoardGame extends Pick<Definition<Int32Array, Discrete>, "id" | "maxSteps" | "ui"> {
  /** The name and options of the game in a config, if these describe it fully. */
  readonly recipe?: { readonly name: string; readonly options: object }
  readonly planes: ReadonlyArray<Plane>
  /** The number of rows, and of columns. */
  readonly size: number
  readonly actions: number
  readonly rules: Rules
}

/** The meaning of a plane and how it is drawn. Later planes are drawn on top. */
interface Plane {
  readonly name: string
  readonly letter: string
  readonly colour: string
}

export type BoardEnv = Env<Int32Array, Discrete>

export const boardEnv = (game: BoardGame): BoardEnv => {
  const { recipe, planes, size, actions, rules, ...definition } = game
  const { stateSize } = rules
  const observationSize = planes.length * size * size
  const observe = (state: Int32Array): Float32Array => {
    const seen = new Float32Array(observationSize)
    rules.show(state, 0, seen, 0)
    return seen
  }

  const kernel = ({ numEnvs, observations, rewards, terminated }: Columns): Kernel => {
    const states = new Int32Array(numEnvs * stateSize)
    const { streams, save, load } = streamsOf(game.id, numEnvs)
    const look = (index: number): void => {
      observations.fill(0, index * observationSize, (index + 1) * observationSize)
      rules.show(states, index * stateSize, observations, index * observationSize)
    }
    return {
      start: (index, random) => {
        streams[index] = random
        states.fill(0, index * stateSize, (index + 1) * stateSize)
        rules.reset(states, index * stateSize, random)
        look(index)
      },
      advance: (taken, waiting) => {
        for (let index = 0; index < numEnvs; index++) {
          if (waiting[index] !== 0) continue
          const at = index * stateSize
          rewards[index] = rules.step(states, at, taken[index], streams[index])
          terminated[index] = states[at] !== 0 ? 1 : 0
          look(index)
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
    observationSpace: box(0, 1, [planes.length, size, size]),
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
    renderText: (state) => drawText(game, observe(state)),
    renderSvg: (state) => drawSvg(game, observe(state)),
    batch: (numEnvs, options) => batchOf(env, numEnvs, options, kernel),
  })
  return recipe === undefined ? env : withRecipe(env, recipe.name, recipe.options)
}

/** Returns the topmost plane at each place, row by row. */
const topsOf = ({ planes, size }: BoardGame, seen: Float32Array): ReadonlyArray<ReadonlyArray<Plane | undefined>> => {
  const top = (y: number, x: number) => planes.findLast((_, plane) => seen[(plane * size + y) * size + x] !== 0)
  return Array.from({ length: size }, (_row, y) => Array.from({ length: size }, (_place, x) => top(y, x)))
}

const drawText = (game: BoardGame, seen: Float32Array): string =>
  topsOf(game, seen)
    .map((row) => row.map((top) => top?.letter ?? "·").join(" "))
    .join("\n")

const cell = 24

const drawSvg = (game: BoardGame, seen: Float32Array): string => {
  const squares = topsOf(game, seen).flatMap((row, y) =>
    row.map(
      (top, x) =>
        `<rect x="${x * cell}" y="${y * cell}" width="${cell - 1}" height="${cell - 1}" rx="2" fill="${top?.colour ?? palette.paper}"/>`,
    ),
  )
  return svg(game.id, game.size * cell, game.size * cell, squares)
}

/** Sets the element of a plane at a place to 1. */
export const mark = (into: Float32Array, to: number, plane: number, size: number, y: number, x: number): void => {
  into[to + (plane * size + y) * size + x] = 1
}

/** The steps of the actions up, down, left and right. */
export const rowStep = [-1, 1, 0, 0]
export const columnStep = [0, 0, -1, 1]

/** Repeats the last action with this probability (Machado et al. 2018). The state keeps the last action at `slot`. */
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
