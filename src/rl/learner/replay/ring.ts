/**
 * Holds the stored steps of a replay buffer: one ring of steps for each env, from which `gather.ts` reads batches.
 *
 * A step is an observation, the action taken there, the reward, and whether the episode ended. Its next observation is the
 * env's next step in the ring, so no observation is stored twice. The final observation of a truncated episode, or with
 * hindsight of every episode, is stored in `finals.ts`. A *place* is the index of a step in the buffer. All numbers of a
 * step except images are contiguous, and so are the steps of an env, so that a transition is read from one region of memory.
 */
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import { copyInto, misfit, namedVector } from "../learnerState.ts"
import { makeEpisodes } from "./episodes.ts"
import { makeFinals } from "./finals.ts"
import { type BufferLayout, spanOf, stepsPerEnvOf, strideOf } from "./BufferLayout.ts"
import { type Filled, filledPart, Frames, restoreFilled } from "./storage.ts"

// These flags say how an episode ended with a step; 0 if it did not end.
export const terminatedFlag = 1
export const truncatedFlag = 2

/** The stored steps of all envs, and how far the rings are filled. */
export interface Ring {
  readonly numEnvs: number
  /** The number of elements of an observation. */
  readonly width: number
  readonly actionSize: number
  /** The number of places in the ring of each env. */
  readonly stepsPerEnv: number
  /** The number of steps after the first step of a draw that the draw needs. */
  readonly span: number
  /** The number of places from one possible beginning of a draw to the next. */
  readonly stride: number
  /** Each row holds one step: its observation, action, reward, and a flag that says how the episode ended, if it did. */
  readonly rows: Float32Array
  readonly rowWidth: number
  /** The indices, within a row, of the action, the reward and the flag. */
  readonly actionAt: number
  readonly rewardAt: number
  readonly endingAt: number
  /** The observations, if they are images; then `rows` has none. */
  readonly frames: Frames | undefined
  readonly finals: ReturnType<typeof makeFinals>
  /** Knows which steps belong to one episode, if draws may replace goals. */
  readonly episodes: ReturnType<typeof makeEpisodes> | undefined
  readonly memorySize: number
  /**
   * The memory of the recurrent policy in each env, before the env's current observation. Callers must update it before
   * they call `storeObservations` or `addStep`.
   */
  readonly memories: Float32Array
  /** The memories before the steps where sequences can begin. */
  readonly storedMemories: Float32Array
  /** The index of the current step in each ring. */
  head: number
  /** The number of complete steps before the current step. */
  complete: number
}

/** Makes empty rings. */
export const makeRing = (options: BufferLayout): Ring => {
  const { numEnvs, observationSize: width, actionSize, images = false, hindsight = false } = options
  const stepsPerEnv = stepsPerEnvOf(options)
  const places = stepsPerEnv * numEnvs
  const stride = strideOf(options)
  const memorySize = options.sequences?.memorySize ?? 0
  const actionAt = images ? 0 : width
  const rowWidth = actionAt + actionSize + 2
  return {
    numEnvs,
    width,
    actionSize,
    stepsPerEnv,
    span: spanOf(options),
    stride,
    rows: new Float32Array(places * rowWidth),
    rowWidth,
    actionAt,
    rewardAt: actionAt + actionSize,
    endingAt: actionAt + actionSize + 1,
    frames: images ? new Frames(places, width) : undefined,
    finals: makeFinals(width),
    episodes: hindsight ? makeEpisodes(numEnvs, stepsPerEnv) : undefined,
    memorySize,
    memories: new Float32Array(numEnvs * memorySize),
    storedMemories: new Float32Array((places / stride) * memorySize),
    head: 0,
    complete: 0,
  }
}

/** Tells whether a draw may begin at a place; the steps that it needs must also be complete. */
export const isStart = (ring: Ring, place: number): boolean => place % ring.stride === 0

/** Returns the place of the next step of the same env. */
export const after = ({ stepsPerEnv }: Ring, place: number): number =>
  (place + 1) % stepsPerEnv === 0 ? place + 1 - stepsPerEnv : place + 1

/** Returns the place of the step that an env took `back` steps ago; 0 is the current step, which has no action yet. */
export const placeOf = ({ head, stepsPerEnv }: Ring, env: number, back: number): number =>
  env * stepsPerEnv + ((head - back + stepsPerEnv) % stepsPerEnv)

/** Returns the flag that says how the episode ended with the step at a place; 0 if it did not end. */
export const endingOf = ({ rows, rowWidth, endingAt }: Ring, place: number): number => rows[place * rowWidth + endingAt]

/**
 * Says whether the final observation of an episode with this ending is stored. Since the value of a terminal state is
 * 0, only truncated episodes need it. With hindsight all do, because the state may not be terminal for another goal.
 */
const keepsFinal = (ring: Ring, ending: number): boolean =>
  ending === truncatedFlag || (ring.episodes !== undefined && ending !== 0)

const writeObservation = (ring: Ring, place: number, from: Float32Array, env: number): void => {
  const { frames, rows, rowWidth, width } = ring
  if (frames !== undefined) return frames.write(place, from, env * width)
  for (let at = 0; at < width; at++) rows[place * rowWidth + at] = from[env * width + at]
}

/** Stores the envs' current observations. Callers must call it once before the first step; later `addStep` does it. */
export const storeObservations = (ring: Ring, envs: AnyBatchEnv): void => {
  const { numEnvs, stepsPerEnv, stride, memorySize, memories, storedMemories } = ring
  for (let env = 0; env < numEnvs; env++) {
    const place = env * stepsPerEnv + ring.head
    writeObservation(ring, place, envs.observations, env)
    if (memorySize > 0 && isStart(ring, place)) {
      const to = (place / stride) * memorySize
      for (let at = 0; at < memorySize; at++) storedMemories[to + at] = memories[env * memorySize + at]
    }
  }
}

/** Stores a step of all envs: the actions, and their results in `envs`. Call it after `envs.step(actions)`. */
export const addStep = (ring: Ring, actions: Float32Array | Int32Array, envs: AnyBatchEnv): void => {
  const { numEnvs, stepsPerEnv, actionSize, rows, rowWidth, actionAt, rewardAt, endingAt, finals, episodes } = ring
  const stored = Math.min(ring.complete + 1, stepsPerEnv - 1)
  for (let env = 0; env < numEnvs; env++) {
    const place = env * stepsPerEnv + ring.head
    const at = place * rowWidth
    for (let element = 0; element < actionSize; element++) {
      rows[at + actionAt + element] = actions[env * actionSize + element]
    }
    rows[at + rewardAt] = envs.rewards[env]
    if (keepsFinal(ring, rows[at + endingAt])) finals.forget(place)
    const ending = endingFlag(envs, env)
    rows[at + endingAt] = ending
    if (keepsFinal(ring, ending)) finals.keep(place, envs.finalObservations, env)
    episodes?.note(env, place, ending !== 0, stored)
  }
  ring.head = ring.head + 1 === stepsPerEnv ? 0 : ring.head + 1
  ring.complete = stored
  storeObservations(ring, envs)
}

const endingFlag = ({ terminated, truncated }: AnyBatchEnv, env: number): number => {
  if (terminated[env] !== 0) return terminatedFlag
  return truncated[env] !== 0 ? truncatedFlag : 0
}

/** Copies the observation of the step at a place to a row of `into`. */
export const readObservation = (ring: Ring, place: number, into: Float32Array, row: number): void => {
  const { frames, rows, rowWidth, width } = ring
  const to = row * width
  if (frames !== undefined) return frames.read(place, into, to)
  for (let at = 0, base = place * rowWidth; at < width; at++) into[to + at] = rows[base + at]
}

/** Copies the action of the step at a place to a row of `into`. */
export const readAction = (ring: Ring, place: number, into: Float32Array | Int32Array, row: number): void => {
  const { actionSize, rows } = ring
  const at = place * ring.rowWidth + ring.actionAt
  for (let element = 0; element < actionSize; element++) into[row * actionSize + element] = rows[at + element]
}

/**
 * Copies the observation that followed a step with this ending. If the episode ended with it, this is the final one where it
 * is stored; else it is the first one of the next episode, whose value does not count, because the discount is 0.
 */
export const readNext = (ring: Ring, place: number, ending: number, into: Float32Array, row: number): void => {
  if (keepsFinal(ring, ending)) ring.finals.read(place, into, row)
  else readObservation(ring, after(ring, place), into, row)
}

/**
 * Returns how many steps of each ring are filled, from index 0 on. The current step counts, since it has an
 * observation.
 */
export const filledSteps = ({ numEnvs, stepsPerEnv, complete }: Ring): Filled => ({
  numEnvs,
  capacity: stepsPerEnv,
  used: complete + 1,
})

/** Returns how many possible beginnings of a draw are filled in each ring. */
const filledStarts = ({ numEnvs, stepsPerEnv, stride, complete }: Ring): Filled => ({
  numEnvs,
  capacity: stepsPerEnv / stride,
  used: Math.ceil((complete + 1) / stride),
})

/** Returns the arrays for a checkpoint: views of the filled part, not copies. */
export const saveRing = (ring: Ring): NamedArrays => {
  const { numEnvs, rows, rowWidth, frames, finals, memorySize, memories, storedMemories } = ring
  return {
    position: namedVector(Int32Array.of(ring.head, ring.complete)),
    ...filledPart("rows", rows, rowWidth, filledSteps(ring)),
    ...frames?.state("frames", filledSteps(ring)),
    ...finals.state(),
    ...(memorySize > 0 && {
      memories: { shape: [numEnvs, memorySize], data: memories },
      ...filledPart("storedMemories", storedMemories, memorySize, filledStarts(ring)),
    }),
  }
}

/** Replaces the stored steps by saved ones. Throws a `LearningError` if the arrays do not fit this buffer. */
export const restoreRing = (ring: Ring, arrays: NamedArrays): void => {
  const { rows, rowWidth, frames, finals, memorySize, memories, storedMemories } = ring
  restorePosition(ring, arrays)
  restoreFilled(arrays, "rows", rows, rowWidth, filledSteps(ring))
  frames?.restore(arrays, "frames", filledSteps(ring))
  finals.restore(arrays)
  if (memorySize > 0) {
    copyInto(arrays, "memories", memories)
    restoreFilled(arrays, "storedMemories", storedMemories, memorySize, filledStarts(ring))
  }
  noteStored(ring)
}

const restorePosition = (ring: Ring, arrays: NamedArrays): void => {
  const { stepsPerEnv } = ring
  const position = new Int32Array(2)
  copyInto(arrays, "position", position)
  const [head, complete] = position
  const isFull = complete === stepsPerEnv - 1
  if (!(head >= 0 && head < stepsPerEnv && (isFull || complete === head))) {
    throw misfit(`"position" is [${position.join(", ")}], which is not possible in a ring of ${stepsPerEnv} steps`)
  }
  ring.head = head
  ring.complete = complete
}

/** Tells `episodes`, which is not saved, about all stored steps again. */
const noteStored = (ring: Ring): void => {
  const { episodes, numEnvs, complete } = ring
  if (episodes === undefined) return
  episodes.forget()
  for (let env = 0; env < numEnvs; env++) {
    for (let stored = 1; stored <= complete; stored++) {
      const place = placeOf(ring, env, complete + 1 - stored)
      episodes.note(env, place, endingOf(ring, place) !== 0, stored)
    }
  }
}
