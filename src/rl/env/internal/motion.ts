/** Makes envs, and their fast batches, from rules for a state of a few real numbers. `classic` and `hill.ts` use it. */
import type { Stream } from "../../../base/rng/Rng.ts"
import { type EnvDefinition, type Env, make } from "../Env.ts"
import { type EnvGraph, withGraph } from "../EnvGraph.ts"
import { type ActionSpace, type Box, sizeOf } from "../Space.ts"
import { batchOf, type KernelArrays, copyFrom, type EnvKernel } from "./episodes.ts"

type MotionState = ReadonlyArray<number>

/** The result of one step of an env. The header of the env's file explains the numbers of `state` and `observation`. */
export interface Moved {
  readonly state: MotionState
  /** The observation, rounded to float32. */
  readonly observation: MotionState
  readonly reward: number
  readonly terminated: boolean
}

/** The arrays that `advance` writes: float32 rewards in a batch, a float64 reward in the env's own `step`. */
interface MotionResults extends Pick<KernelArrays, "observations" | "terminated"> {
  readonly rewards: Float32Array | Float64Array
}

/**
 * The rules of an env whose state is a few real numbers. Their functions change states in place, in an array that may
 * hold many states; `at` is the offset of a state in this array.
 */
export interface Motion<A extends ActionSpace = ActionSpace> extends Omit<
  EnvDefinition<MotionState, A>,
  "reset" | "observe" | "step" | "batch"
> {
  /** The names of the state's numbers in a snapshot, in their order. */
  readonly columns: ReadonlyArray<string>
  /** The names of numbers stored after each state, which `observe` computes and the next step uses. Default: none. */
  readonly derived?: ReadonlyArray<string>
  /** Writes the first state of an episode into `states`, from index `at` on. */
  readonly reset: (states: Float64Array, at: number, random: Stream) => void
  /** Writes the observation of a state into `into` at `to`. Default: the observation is the state. */
  readonly observe?: (states: Float64Array, at: number, into: Float32Array, to: number) => void
  /** The same rules as expressions of tensors; `start` and the size of a state follow from the other fields. */
  readonly graph?: Omit<EnvGraph, "start" | "stateSize">
  /** Steps each env whose `waiting` is 0: moves its state and writes its observation, reward and `terminated`. */
  readonly advance: (
    states: Float64Array,
    results: MotionResults,
    actions: ArrayLike<number>,
    waiting: ArrayLike<number>,
  ) => void
}

/** Clips a value to −`limit` … `limit`. */
export const clip = (value: number, limit: number): number => Math.min(Math.max(value, -limit), limit)

/** Makes an env from its rules. Also returns `dynamics`, a function that computes one step from any state. */
export const motionEnv = <A extends ActionSpace>(motion: Motion<A>) => {
  const { columns, derived = [], reset, advance, graph, ...definition } = motion
  const names = [...columns, ...derived].map((name) => `state.${name}`)
  const width = names.length
  const size = sizeOf(motion.observationSpace)
  const observe: NonNullable<Motion["observe"]> =
    motion.observe ?? ((states, at, into, to) => into.set(states.subarray(at, at + size), to))
  const stateAt = (states: Float64Array, index: number): MotionState => listOf(states, index * width, columns.length)

  // The env's own `step` copies the state into these arrays, as a batch of one env, and moves it by `advance`.
  const oneState = new Float64Array(width)
  const result = { observations: new Float32Array(size), rewards: new Float64Array(1), terminated: new Uint8Array(1) }
  const noneWaiting = new Uint8Array(1)
  const oneAction = Float64Array.of(0)
  const observationOf = (state: ArrayLike<number>): MotionState => {
    for (let at = 0; at < columns.length; at++) oneState[at] = state[at]
    observe(oneState, 0, result.observations, 0)
    return listOf(result.observations, 0, size)
  }
  const step = (state: ArrayLike<number>, action: number | ArrayLike<number>) => {
    for (let at = 0; at < columns.length; at++) oneState[at] = state[at]
    if (derived.length > 0) observe(oneState, 0, result.observations, 0)
    oneAction[0] = typeof action === "number" ? action : action[0]
    advance(oneState, result, oneAction, noneWaiting)
    return { state: stateAt(oneState, 0), reward: result.rewards[0], terminated: result.terminated[0] !== 0 }
  }
  const dynamics = (state: ArrayLike<number>, action: number | ArrayLike<number>): Moved => {
    const moved = step(state, action)
    return { ...moved, observation: listOf(result.observations, 0, size) }
  }

  const kernel = (results: KernelArrays): EnvKernel => {
    const { numEnvs, observations } = results
    const states = new Float64Array(numEnvs * width)
    return {
      start: (index, random) => {
        reset(states, index * width, random)
        observe(states, index * width, observations, index * size)
      },
      advance: (actions, waiting) => advance(states, results, actions, waiting),
      stateAt: (index) => stateAt(states, index),
      save: () =>
        Object.fromEntries(names.map((name, at) => [name, states.filter((_, index) => index % width === at)])),
      load: (saved) => {
        const column = new Float64Array(numEnvs)
        for (const [at, name] of names.entries()) {
          copyFrom(motion.id, saved, name, column)
          for (let index = 0; index < numEnvs; index++) states[index * width + at] = column[index]
        }
      },
    }
  }

  const env: Env<MotionState, A, Box> = make({
    ...definition,
    reset: (random): MotionState => {
      reset(oneState, 0, random)
      return stateAt(oneState, 0)
    },
    observe: motion.observe === undefined ? (state) => state : observationOf,
    step,
    batch: (numEnvs, options) => batchOf(env, numEnvs, options, kernel),
  })
  const start = (into: Float32Array, at: number, random: Stream): void => {
    reset(oneState, 0, random)
    for (let number = 0; number < columns.length; number++) into[at + number] = oneState[number]
  }
  return { env: withGraph(env, graph && { ...graph, start, stateSize: columns.length }), dynamics }
}

/** Copies `length` numbers from the index `from` on to a list. A loop is much faster here than Array.from. */
const listOf = (numbers: Float32Array | Float64Array, from: number, length: number): MotionState => {
  const list: Array<number> = []
  for (let at = from; at < from + length; at++) list.push(numbers[at])
  return list
}
