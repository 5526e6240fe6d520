/**
 * Implements auto-reset for a batch of envs: `same-step` starts the next episode in the step that ends one, `next-step`
 * starts it in the following step, whose action is ignored and whose reward is 0, and `disabled` waits for `restart`.
 * Also applies the time limit, gives each episode its own random stream, and takes snapshots. The built-in envs and
 * `Batch.make` call `batchOf` with a kernel, which holds the states of the envs.
 */
import { Schema } from "effect"
import { type Stream, stream } from "../../../base/rng/Rng.ts"
import type { BatchArrays, BatchEnv, BatchOptions, Snapshot } from "../BatchEnv.ts"
import { type Env, rowSpaceOf } from "../Env.ts"
import { EnvError, invalid } from "../../../base/EnvError.ts"
import { optionsOf, sizeOf } from "../Space.ts"
import { forbiddenProblemIn } from "./rows.ts"
import { stepsTaken } from "./stepsTaken.ts"
import { utf8 } from "../../../base/config/utf8.ts"

/** The arrays that a kernel writes, and the progress of each env. */
export interface Columns extends Omit<BatchArrays, "finalObservations"> {
  readonly numEnvs: number
  /** The number of each env's current episode, from 0. */
  readonly episodes: Int32Array
  /** The number of steps in each env's current episode. */
  readonly elapsed: Int32Array
}

/** The part of a batch that holds and steps the states; `batchOf` adds the rest, such as resets. */
export interface Kernel {
  /** Starts an episode of an env and writes its first observation. */
  readonly start: (index: number, random: Stream) => void
  /**
   * Steps each env whose `waiting` is 0 (1 means that its episode has ended): writes its observation, reward and
   * `terminated`, and sets `truncated` (0 before the call) if the env itself cuts the episode off.
   */
  readonly advance: (actions: Float32Array | Int32Array, waiting: Uint8Array) => void
  /** Returns copies of the states, as typed arrays. */
  readonly save: () => Snapshot
  /** Copies saved states back; `streamOf` returns the random stream of an env's current episode. */
  readonly load: (snapshot: Snapshot, streamOf: (index: number) => Stream) => void
  /** Returns the state of one env, for rendering. */
  readonly stateAt: (index: number) => unknown
}

/** Stands for no time limit: the largest number that `elapsed`, an Int32Array, can count to. */
export const noLimit = 0x7fffffff

/** Makes a batch of an env. `kernelOf` makes the kernel, which writes its results to the arrays that it receives. */
export const batchOf = (
  env: Env,
  numEnvs: number,
  options: BatchOptions,
  kernelOf: (columns: Columns) => Kernel,
): BatchEnv => {
  const { actionSpace } = env
  const observationSpace = rowSpaceOf(env)
  const observationSize = sizeOf(observationSpace)
  const actionSize = sizeOf(actionSpace)
  /** The number of choices that each element of an action has; undefined if actions are real numbers. */
  const choices = optionsOf(actionSpace)
  const forbidden = forbiddenProblemIn(observationSpace, actionSize)
  const limit = options.maxSteps ?? noLimit
  const { autoReset, firstIndex } = options

  const { observations, finalObservations, rewards, terminated, truncated } = arraysFor(
    numEnvs,
    observationSize,
    options.arrays,
  )
  const episodes = new Int32Array(numEnvs)
  const elapsed = new Int32Array(numEnvs)
  /** Marks with 1 the envs whose episode has ended and whose next one has not begun. */
  const waiting = new Uint8Array(numEnvs)
  const kernel = kernelOf({ numEnvs, observations, rewards, terminated, truncated, episodes, elapsed })

  let seed: number | undefined
  let path: ReadonlyArray<string | number> = []
  /** The stream (seed, ...path, firstIndex + i, "episode") of each env i: the parent of its episodes' streams. */
  let parents: ReadonlyArray<Stream> = []

  /** Stores the seed and the path of the random streams, and makes `parents` from them. */
  const seedStreams = (newSeed: number, newPath: ReadonlyArray<string | number>): void => {
    seed = newSeed
    path = newPath
    parents = Array.from({ length: numEnvs }, (_, index) => stream(newSeed, ...newPath, firstIndex + index, "episode"))
  }

  const begin = (index: number): void => {
    elapsed[index] = 0
    waiting[index] = 0
    kernel.start(index, parents[index].child(episodes[index]))
  }

  const fail = (index: number, message: string): EnvError =>
    errorAt(env.id, index, episodes[index], elapsed[index] + 1, message)

  const checkActions = (actions: Float32Array | Int32Array): void => {
    if (actions.length !== numEnvs * actionSize) {
      throw wrongLength(env.id, numEnvs, actionSize, actions)
    }
    if (choices !== undefined) {
      for (let index = 0, at = 0; index < numEnvs; index++) {
        for (let element = 0; element < actionSize; element++, at++) {
          const action = actions[at]
          // `>>> 0` changes every number except the whole numbers from 0 (below 2³²).
          if ((action >>> 0 !== action || action >= choices[element]) && waiting[index] === 0) {
            const where = actionSize === 1 ? "an action" : `a number as element ${element} of the action`
            throw fail(index, `expected ${where} from 0 to ${choices[element] - 1}, found ${action}`)
          }
        }
      }
      const found = forbidden?.(observations, actions, waiting)
      if (found !== undefined) throw fail(found.index, found.problem)
      return
    }
    for (let at = 0; at < actions.length; at++) {
      // The difference of a number with itself is 0 unless the number is NaN or infinite.
      if (actions[at] - actions[at] !== 0 && waiting[Math.floor(at / actionSize)] === 0) {
        throw fail(
          Math.floor(at / actionSize),
          `action element ${at % actionSize} is ${actions[at]}; expected a finite number`,
        )
      }
    }
  }

  /** Ends the current episode of an env: keeps its last observation, and resets the env or marks it as waiting. */
  const end = (index: number): void => {
    for (let at = index * observationSize; at < (index + 1) * observationSize; at++)
      finalObservations[at] = observations[at]
    if (autoReset === "same-step") {
      episodes[index]++
      begin(index)
    } else {
      waiting[index] = 1
    }
  }

  const step = (actions: Float32Array | Int32Array): void => {
    if (seed === undefined) throw invalid(env.id, "step before reset")
    if (autoReset === "disabled") {
      const ended = waiting.indexOf(1)
      if (ended >= 0) throw fail(ended, "its episode has ended and auto-reset is disabled: restart it first")
    }
    checkActions(actions)
    truncated.fill(0)
    stepsTaken[0]++
    kernel.advance(actions, waiting)
    for (let index = 0; index < numEnvs; index++) {
      // Only with `next-step`: the episode ended in the previous step, so this step only starts the next one.
      if (waiting[index] !== 0) {
        rewards[index] = 0
        terminated[index] = 0
        episodes[index]++
        begin(index)
        continue
      }
      const steps = elapsed[index] + 1
      elapsed[index] = steps
      if (steps >= limit) truncated[index] = 1
      if ((terminated[index] | truncated[index]) !== 0) end(index)
    }
  }

  const clear = (index: number): void => {
    rewards[index] = 0
    terminated[index] = 0
    truncated[index] = 0
  }

  const reset = (newSeed: number, ...newPath: ReadonlyArray<string | number>): void => {
    seedStreams(newSeed, newPath)
    episodes.fill(0)
    for (let index = 0; index < numEnvs; index++) {
      clear(index)
      begin(index)
    }
  }

  const restart = (mask: Uint8Array): void => {
    if (seed === undefined) throw invalid(env.id, "restart before reset")
    if (mask.length !== numEnvs) throw invalid(env.id, `restart got a mask of ${mask.length} for ${numEnvs} envs`)
    for (let index = 0; index < numEnvs; index++) {
      if (mask[index] === 0) continue
      clear(index)
      episodes[index]++
      begin(index)
    }
  }

  const columns = { observations, finalObservations, rewards, terminated, truncated, episodes, elapsed, waiting }

  const snapshot = (): Snapshot => {
    const origin = utf8.encode(JSON.stringify({ seed: seed ?? null, path }))
    const copies = Object.entries(columns).map(([key, column]) => [key, column.slice()] as const)
    return { origin, ...Object.fromEntries(copies), ...(seed === undefined ? {} : kernel.save()) }
  }

  const restore = (saved: Snapshot): void => {
    const origin = originOf(env.id, saved)
    for (const [key, column] of Object.entries(columns)) copyFrom(env.id, saved, key, column)
    seed = undefined
    if (origin.seed === null) return
    seedStreams(origin.seed, origin.path)
    kernel.load(saved, (index) => parents[index].child(episodes[index]))
  }

  return {
    id: env.id,
    numEnvs,
    autoReset,
    observationSpace,
    actionSpace,
    observationSize,
    actionSize,
    observations,
    rewards,
    terminated,
    truncated,
    finalObservations,
    reset,
    restart,
    step,
    stateAt: kernel.stateAt,
    ...(env.renderText && { renderText: (index: number) => env.renderText?.(kernel.stateAt(index)) ?? "" }),
    ...(env.renderSvg && { renderSvg: (index: number) => env.renderSvg?.(kernel.stateAt(index)) ?? "" }),
    snapshot,
    restore,
  }
}

/** Returns the caller's arrays; new ones if they don't fit, as within a wrapper that changes the observation's size. */
export const arraysFor = (numEnvs: number, size: number, arrays: BatchArrays | undefined): BatchArrays =>
  arrays !== undefined && arrays.observations.length === numEnvs * size && arrays.rewards.length === numEnvs
    ? arrays
    : {
        observations: new Float32Array(numEnvs * size),
        finalObservations: new Float32Array(numEnvs * size),
        rewards: new Float32Array(numEnvs),
        terminated: new Uint8Array(numEnvs),
        truncated: new Uint8Array(numEnvs),
      }

export const wrongLength = (
  env: string,
  numEnvs: number,
  actionSize: number,
  { length }: ArrayLike<number>,
): EnvError =>
  invalid(
    env,
    `step: expected ${numEnvs * actionSize} numbers as actions (${numEnvs} envs × ${actionSize}), found ${length}`,
  )

/** Makes an error whose message begins with env, episode and step. Step 0 is the reset. */
export const errorAt = (
  env: string,
  index: number,
  episode: number,
  step: number,
  message: string,
  userStack?: string,
): EnvError =>
  new EnvError({
    env,
    index,
    episode,
    step,
    message: `${env}: env ${index}, episode ${episode}, ${step === 0 ? "reset" : `step ${step}`}: ${message}`,
    ...(userStack === undefined ? {} : { userStack }),
  })

/** Copies the array `key` of a snapshot to `into`; if it is missing or of another length or type, throws. */
export const copyFrom = (
  env: string,
  saved: Snapshot,
  key: string,
  into: Float64Array | Float32Array | Int32Array | Uint8Array,
): void => {
  const column = saved[key]
  if (column === undefined || column.length !== into.length || column.constructor !== into.constructor) {
    const found = column === undefined ? "nothing" : `${column.length} × ${column.constructor.name}`
    const expected = `${into.length} × ${into.constructor.name}`
    throw invalid(env, `the snapshot doesn't fit: "${key}" should be ${expected}, found ${found}`)
  }
  into.set(column)
}

/** Makes an empty list for the random streams of a batch's envs, with functions to save and load their positions. */
export const streamsOf = (env: string, numEnvs: number) => {
  const streams: Array<Stream> = []
  return {
    streams,
    save: () => ({ positions: Float64Array.from(streams, ({ position }) => position) }),
    load: (saved: Snapshot, streamOf: (index: number) => Stream): void => {
      const positions = new Float64Array(numEnvs)
      copyFrom(env, saved, "positions", positions)
      for (let index = 0; index < numEnvs; index++) {
        streams[index] = streamOf(index)
        streams[index].position = positions[index]
      }
    },
  }
}

const readOrigin = Schema.decodeUnknownOption(
  Schema.fromJsonString(
    Schema.Struct({
      seed: Schema.NullOr(Schema.Number),
      path: Schema.Array(Schema.Union([Schema.String, Schema.Number])),
    }),
  ),
)

/** Reads the seed and the path, which a snapshot holds as JSON in its array `origin`. */
export const originOf = (env: string, { origin }: Snapshot) => {
  const decoded = readOrigin(origin instanceof Uint8Array ? utf8.decode(origin) : undefined)
  if (decoded._tag === "Some") return decoded.value
  throw invalid(env, 'the snapshot doesn\'t fit: "origin" is missing or unreadable')
}
