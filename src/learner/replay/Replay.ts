/** The replay buffer of off-policy learners: stores steps in memory, draws transitions and copies them to batches. */
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import type { Stream } from "../../rng/Rng.ts"
import type { NamedArrays } from "../Algorithm.ts"
import type { Arrays } from "../Batch.ts"
import { copyInto, Misfit, namedVector } from "../learnerState.ts"
import type { ReplayColumns } from "./ReplayExperience.ts"
import { makeEpisodes } from "./episodes.ts"
import { type Filled, filledPart, Frames, restoreFilled } from "./storage.ts"

/** The arrays of a batch that `gather` fills, with one row for each transition. */
type Transitions = Arrays<Omit<ReplayColumns, "importance" | "noise">>

export interface ReplayOptions {
  readonly numEnvs: number
  readonly observationSize: number
  readonly actionSize: number
  /** The number of transitions to store, over all envs, rounded up to a multiple of the number of envs. */
  readonly capacity: number
  readonly gamma: number
  /** The number of steps that a transition spans; 1 by default. */
  readonly nsteps?: number
  /** Whether observations are images, which `Frames` stores in fewer bytes. */
  readonly images?: boolean
  /** Whether steps can be drawn with other goals, for which the buffer must know their episodes. */
  readonly hindsight?: boolean
}

// These flags say how an episode ended with a step; 0 if it did not end.
const terminatedFlag = 1
const truncatedFlag = 2

/** Returns the number of steps stored for each env: those that can be drawn, and the `nsteps` steps after them. */
const stepsPerEnvOf = ({ capacity, numEnvs, nsteps = 1 }: ReplayOptions): number =>
  Math.ceil(capacity / numEnvs) + nsteps

/** Returns the bytes that a full buffer takes, without final observations, if images are stored as bytes. */
export const replayBytes = (options: ReplayOptions): number => {
  const { numEnvs, observationSize, actionSize, images = false } = options
  return stepsPerEnvOf(options) * numEnvs * (observationSize * (images ? 1 : 4) + (actionSize + 2) * 4)
}

/**
 * Makes a replay buffer: the newest `capacity` steps of N envs, in one ring buffer for each env.
 *
 * A step is an observation, the action taken there, the reward, and whether the episode ended. Its next observation is the
 * env's next step in the ring, so no observation is stored twice; the final observations of episodes are stored in a separate
 * array. A *place* is the index of a step in the buffer. All numbers of a step except images are contiguous, and so are the
 * steps of an env, so that a transition is read from one region of memory.
 */
export const makeReplay = (options: ReplayOptions) => {
  const { numEnvs, observationSize: width, actionSize, gamma, nsteps = 1, images = false, hindsight = false } = options
  const stepsPerEnv = stepsPerEnvOf(options)
  const places = stepsPerEnv * numEnvs
  const rowWidth = (images ? 0 : width) + actionSize + 2
  const actionAt = images ? 0 : width
  /** Each row holds one step: its observation, action, reward, and a flag that says how the episode ended, if it did. */
  const rows = new Float32Array(places * rowWidth)
  const rewardAt = actionAt + actionSize
  const endingAt = rewardAt + 1
  const frames = images ? new Frames(places, width) : undefined
  const finals = makeFinals(width)
  const episodes = hindsight ? makeEpisodes(numEnvs, stepsPerEnv) : undefined
  /**
   * Says whether the final observation of an episode with this ending is stored. The value of a terminal state is 0, so it is
   * stored for truncated episodes only, except for hindsight: with another goal, the state may not be terminal.
   */
  const keepsFinal = (ending: number): boolean => ending === truncatedFlag || (hindsight && ending !== 0)
  /** The index of the current step in each ring, and the number of complete steps before it. */
  let head = 0
  let complete = 0
  /** The random numbers of `draw`, in an array that all draws use. */
  let uniform = new Float64Array(0)
  const discountPowers = Float64Array.from({ length: nsteps + 1 }, (_, n) => gamma ** n)

  const writeObservation = (place: number, from: Float32Array, env: number): void => {
    if (frames !== undefined) return frames.write(place, from, env * width)
    for (let at = 0; at < width; at++) rows[place * rowWidth + at] = from[env * width + at]
  }

  const readObservation = (place: number, into: Float32Array, row: number): void => {
    const to = row * width
    if (frames !== undefined) return frames.read(place, into, to)
    for (let at = 0, base = place * rowWidth; at < width; at++) into[to + at] = rows[base + at]
  }

  /** Stores the envs' current observations. `add` calls it; before the first step, callers call it as `begin`. */
  const store = (envs: AnyBatchEnv): void => {
    for (let env = 0; env < numEnvs; env++) writeObservation(env * stepsPerEnv + head, envs.observations, env)
  }

  /** Returns the place of the next step of the same env. */
  const after = (place: number): number => ((place + 1) % stepsPerEnv === 0 ? place + 1 - stepsPerEnv : place + 1)

  /** Stores a step of all envs: the actions, and their results in `envs`. Call it after `envs.step(actions)`. */
  const add = (actions: Float32Array | Int32Array, envs: AnyBatchEnv): void => {
    for (let env = 0; env < numEnvs; env++) {
      const place = env * stepsPerEnv + head
      const at = place * rowWidth
      for (let element = 0; element < actionSize; element++) {
        rows[at + actionAt + element] = actions[env * actionSize + element]
      }
      rows[at + rewardAt] = envs.rewards[env]
      if (keepsFinal(rows[at + endingAt])) finals.forget(place)
      const ending = envs.terminated[env] !== 0 ? terminatedFlag : envs.truncated[env] !== 0 ? truncatedFlag : 0
      rows[at + endingAt] = ending
      if (keepsFinal(ending)) finals.keep(place, envs.finalObservations, env)
      episodes?.note(env, place, ending !== 0, Math.min(complete + 1, stepsPerEnv - 1))
    }
    head = head + 1 === stepsPerEnv ? 0 : head + 1
    complete = Math.min(complete + 1, stepsPerEnv - 1)
    store(envs)
  }

  /** Returns the number of transitions that can be drawn. */
  const size = (): number => Math.max(0, complete - nsteps + 1) * numEnvs

  /** Fills `into` with the places of drawn transitions, for `gather`. All transitions have the same probability. */
  const draw = (random: Stream, into: Int32Array): void => {
    const oldest = (head - complete + stepsPerEnv) % stepsPerEnv
    const perEnv = Math.max(0, complete - nsteps + 1)
    const count = perEnv * numEnvs
    if (uniform.length !== into.length) uniform = new Float64Array(into.length)
    random.fillUniform(uniform)
    for (let index = 0; index < into.length; index++) {
      // A uniform number has 53 random bits, so the probabilities of two places differ by at most a factor of 1 + count / 2⁵³.
      const drawn = Math.floor(uniform[index] * count)
      const env = numEnvs === 1 ? 0 : Math.floor(drawn / perEnv)
      const step = oldest + drawn - env * perEnv
      into[index] = env * stepsPerEnv + (step < stepsPerEnv ? step : step - stepsPerEnv)
    }
  }

  /** Copies the transitions at the drawn places to a batch: each has `nsteps` steps, or ends with the episode. */
  const gather = (drawn: Int32Array, into: Transitions): void => {
    const { observations, actions, rewards, nextObservations, discounts } = into
    // Read the endings first, into `discounts` for now: then cache misses of many rows overlap, which saves much time.
    for (let row = 0; row < drawn.length; row++) discounts[row] = rows[drawn[row] * rowWidth + endingAt]
    for (let row = 0; row < drawn.length; row++) {
      let place = drawn[row]
      readObservation(place, observations, row)
      let at = place * rowWidth
      for (let element = 0; element < actionSize; element++) {
        actions[row * actionSize + element] = rows[at + actionAt + element]
      }
      let total = rows[at + rewardAt]
      let ending = discounts[row]
      let steps = 1
      for (; steps < nsteps && ending === 0; steps++) {
        place = after(place)
        at = place * rowWidth
        total += discountPowers[steps] * rows[at + rewardAt]
        ending = rows[at + endingAt]
      }
      rewards[row] = total
      discounts[row] = ending === terminatedFlag ? 0 : discountPowers[steps]
      readNext(place, ending, nextObservations, row)
    }
  }

  /** Reads the observation that followed a step, which is the final one if the episode ended with it. */
  const readNext = (place: number, ending: number, into: Float32Array, row: number): void => {
    if (keepsFinal(ending)) finals.read(place, into, row)
    else readObservation(after(place), into, row)
  }

  /** The functions by which hindsight reads the stored steps. */
  const past = episodes && {
    shifted: episodes.shifted,
    /** Returns how many stored steps of the same episode come before the step at a place. */
    stepsBefore: (place: number): number =>
      episodes.before(place, ((place % stepsPerEnv) - head + complete + stepsPerEnv) % stepsPerEnv),
    /** Returns how many stored steps of the same episode come after the step at a place. */
    stepsAfter: (place: number): number =>
      episodes.after(place, (head - 1 - (place % stepsPerEnv) + stepsPerEnv) % stepsPerEnv),
    /** Copies the observation that followed a step to `into`, which has the size of one observation. */
    readNext: (place: number, into: Float32Array): void => readNext(place, rows[place * rowWidth + endingAt], into, 0),
    isLast: (place: number): boolean => rows[place * rowWidth + endingAt] !== 0,
    isTerminated: (place: number): boolean => rows[place * rowWidth + endingAt] === terminatedFlag,
  }

  /** Returns the place of the step that an env took `back` steps ago; 0 is the current step, which has no action yet. */
  const placeOf = (env: number, back: number): number => env * stepsPerEnv + ((head - back + stepsPerEnv) % stepsPerEnv)

  /** Says how many steps of each ring are filled, from index 0 on. The current step counts: it has an observation. */
  const filled = (): Filled => ({ numEnvs, capacity: stepsPerEnv, used: complete + 1 })

  /** Returns the arrays for a checkpoint: views of the filled part, not copies. */
  const state = (): NamedArrays => ({
    position: namedVector(Int32Array.of(head, complete)),
    ...filledPart("rows", rows, rowWidth, filled()),
    ...frames?.state("frames", filled()),
    ...finals.state(),
  })

  const restore = (arrays: NamedArrays): void => {
    const position = new Int32Array(2)
    copyInto(arrays, "position", position)
    const [savedHead, savedComplete] = position
    const isFull = savedComplete === stepsPerEnv - 1
    if (!(savedHead >= 0 && savedHead < stepsPerEnv && (isFull || savedComplete === savedHead))) {
      const ring = `a ring of ${stepsPerEnv} steps`
      throw new Misfit(`"position" is [${position.join(", ")}], which is not possible in ${ring}`)
    }
    head = savedHead
    complete = savedComplete
    restoreFilled(arrays, "rows", rows, rowWidth, filled())
    frames?.restore(arrays, "frames", filled())
    finals.restore(arrays)
    episodes?.forget()
    for (let env = 0; env < numEnvs; env++) {
      for (let stored = 1; stored <= complete; stored++) {
        const place = placeOf(env, complete + 1 - stored)
        episodes?.note(env, place, rows[place * rowWidth + endingAt] !== 0, stored)
      }
    }
  }

  return { size, begin: store, add, draw, gather, past, placeOf, capacity: places, filled, state, restore }
}
export type Replay = ReturnType<typeof makeReplay>

/** Makes a store of final observations, each under the place of its episode's last step. It grows when it is full. */
const makeFinals = (width: number) => {
  /** For each place, its slot: the index of its observation in `contents`. `free` has slots that can be used again. */
  const slots = new Map<number, number>()
  const free: Array<number> = []
  let contents = new Float32Array(16 * width)
  return {
    keep: (place: number, from: Float32Array, env: number): void => {
      const slot = free.pop() ?? slots.size
      if ((slot + 1) * width > contents.length) {
        const larger = new Float32Array(contents.length * 2)
        larger.set(contents)
        contents = larger
      }
      for (let at = 0; at < width; at++) contents[slot * width + at] = from[env * width + at]
      slots.set(place, slot)
    },
    forget: (place: number): void => {
      const slot = slots.get(place)
      if (slot === undefined) return
      slots.delete(place)
      free.push(slot)
    },
    read: (place: number, into: Float32Array, row: number): void => {
      const slot = slots.get(place) ?? 0
      for (let at = 0; at < width; at++) into[row * width + at] = contents[slot * width + at]
    },
    state: (): NamedArrays => {
      const places = Int32Array.from(slots.keys())
      const kept = new Float32Array(places.length * width)
      for (let index = 0; index < places.length; index++) {
        const slot = slots.get(places[index]) ?? 0
        kept.set(contents.subarray(slot * width, (slot + 1) * width), index * width)
      }
      return { finalPlaces: namedVector(places), finals: { shape: [places.length, width], data: kept } }
    },
    restore: (arrays: NamedArrays): void => {
      const places = arrays.finalPlaces?.data
      const kept = arrays.finals?.data
      if (!(places instanceof Int32Array) || !(kept instanceof Float32Array) || kept.length !== places.length * width) {
        throw new Misfit(`"finalPlaces" and "finals" have lengths that do not match`)
      }
      slots.clear()
      free.length = 0
      contents = new Float32Array(Math.max(16 * width, kept.length))
      contents.set(kept)
      for (let index = 0; index < places.length; index++) slots.set(places[index], index)
    },
  }
}
