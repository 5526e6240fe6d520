import { copyInto, Misfit, namedVector } from "../learnerState.ts"
import type { NamedArrays } from "../Algorithm.ts"
import type { BatchEnv } from "../../env/BatchEnv.ts"
import type { Stream } from "../../rng/Rng.ts"

import { type Filled, filledPart, restoreFilled } from "./filled.ts"
import { Frames } from "./Frames.ts"

/**
 * What was seen, a ring of moments: the newest `capacity` steps of N envs.
 *
 * A moment holds an env's observation, the action taken on it, the reward and how the step ended. What came next is the
 * env's next moment, so nothing is kept twice, except where an episode ended: its final observation is kept beside.
 * Everything of a moment but an image lies together, and an env's moments follow each other, so that drawing a transition
 * touches one place in memory.
 */
export interface Replay {
  /** Transitions that can be drawn. */
  readonly size: () => number
  /** Keeps the observations that the envs show, before they are acted on. */
  readonly see: (envs: BatchEnv) => void
  /** Keeps what was done and what came of it; the envs now show the next observations. */
  readonly add: (actions: Float32Array | Int32Array, envs: BatchEnv) => void
  /** Draws transitions uniformly: their places, for `gather`. */
  readonly draw: (random: Stream, places: Int32Array) => void
  /** Copies transitions of up to n steps out of the ring. */
  readonly gather: (places: Int32Array, into: Transitions) => void
  /** The place of an env's moment, so many steps before the one that is being filled. */
  readonly placeOf: (env: number, back: number) => number
  readonly capacity: number
  readonly filled: () => Filled
  /** What is filled, without a copy. */
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}

/** Where drawn transitions go, row after row. */
export interface Transitions {
  readonly observations: Float32Array
  readonly actions: Float32Array | Int32Array
  /** The discounted sum over the steps. */
  readonly rewards: Float32Array
  readonly nextObservations: Float32Array
  /** What the value of the next observation counts: γⁿ, or 0 where the episode terminated. */
  readonly discounts: Float32Array
}

export interface ReplayOptions {
  readonly numEnvs: number
  readonly observationSize: number
  readonly actionSize: number
  /** Transitions in all, at least; whole steps of all envs are kept. */
  readonly capacity: number
  readonly gamma: number
  /** Steps that a transition spans. 1 by default. */
  readonly nsteps?: number
  /** Observations are images, which are kept apart and in few bytes. */
  readonly images?: boolean
}

const terminatedFlag = 1
const truncatedFlag = 2

/** One moment more than can be drawn: the newest has an observation, but nothing came of it yet. */
const momentsOf = ({ capacity, numEnvs, nsteps = 1 }: ReplayOptions): number => Math.ceil(capacity / numEnvs) + nsteps

/** How much memory a full replay takes, without final observations; images as the bytes that they mostly are. */
export const replayBytes = (options: ReplayOptions): number => {
  const { numEnvs, observationSize, actionSize, images = false } = options
  return momentsOf(options) * numEnvs * (observationSize * (images ? 1 : 4) + (actionSize + 2) * 4)
}

export const makeReplay = (options: ReplayOptions): Replay => {
  const { numEnvs, observationSize: width, actionSize, gamma, nsteps = 1, images = false } = options
  const moments = momentsOf(options)
  const places = moments * numEnvs
  const rowWidth = (images ? 0 : width) + actionSize + 2
  const before = images ? 0 : width
  /** Of each moment: the observation, the action, the reward, how the step ended. */
  const rows = new Float32Array(places * rowWidth)
  const rewardAt = before + actionSize
  const endingAt = rewardAt + 1
  const frames = images ? new Frames(places, width) : undefined
  const finals = makeFinals(width)
  /** The moment that is being filled, and how many before it are whole. */
  let head = 0
  let filled = 0
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

  const see = (envs: BatchEnv): void => {
    for (let env = 0; env < numEnvs; env++) writeObservation(env * moments + head, envs.observations, env)
  }

  /** The env's next moment. */
  const after = (place: number): number => ((place + 1) % moments === 0 ? place + 1 - moments : place + 1)

  const add = (actions: Float32Array | Int32Array, envs: BatchEnv): void => {
    for (let env = 0; env < numEnvs; env++) {
      const place = env * moments + head
      const at = place * rowWidth
      for (let element = 0; element < actionSize; element++) {
        rows[at + before + element] = actions[env * actionSize + element]
      }
      rows[at + rewardAt] = envs.rewards[env]
      if (rows[at + endingAt] === truncatedFlag) finals.forget(place)
      const ending = envs.terminated[env] !== 0 ? terminatedFlag : envs.truncated[env] !== 0 ? truncatedFlag : 0
      rows[at + endingAt] = ending
      // A terminal state's value is 0, whatever it looks like; one that was cut off at has a value.
      if (ending === truncatedFlag) finals.keep(place, envs.finalObservations, env)
    }
    head = head + 1 === moments ? 0 : head + 1
    filled = Math.min(filled + 1, moments - 1)
    see(envs)
  }

  const size = (): number => Math.max(0, filled - nsteps + 1) * numEnvs

  const draw = (random: Stream, into: Int32Array): void => {
    const oldest = (head - filled + moments) % moments
    const perEnv = Math.max(0, filled - nsteps + 1)
    const count = perEnv * numEnvs
    if (uniform.length !== into.length) uniform = new Float64Array(into.length)
    random.fillUniform(uniform)
    for (let index = 0; index < into.length; index++) {
      // 53 random bits: no place is likelier than another by more than one part in 2⁵³ ÷ count.
      const drawn = Math.floor(uniform[index] * count)
      const env = numEnvs === 1 ? 0 : Math.floor(drawn / perEnv)
      const moment = oldest + drawn - env * perEnv
      into[index] = env * moments + (moment < moments ? moment : moment - moments)
    }
  }

  const gather = (drawn: Int32Array, into: Transitions): void => {
    const { observations, actions, rewards, nextObservations, discounts } = into
    // The endings first, in a loop so short that the waits for memory of many rows overlap: nearly half the time.
    for (let row = 0; row < drawn.length; row++) discounts[row] = rows[drawn[row] * rowWidth + endingAt]
    for (let row = 0; row < drawn.length; row++) {
      let place = drawn[row]
      readObservation(place, observations, row)
      let at = place * rowWidth
      for (let element = 0; element < actionSize; element++) {
        actions[row * actionSize + element] = rows[at + before + element]
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
      if (ending === truncatedFlag) finals.read(place, nextObservations, row)
      else readObservation(after(place), nextObservations, row)
    }
  }

  const placeOf = (env: number, back: number): number => env * moments + ((head - back + moments) % moments)

  /** Until the ring is full, its moments lie from 0 on; the one that is being filled has its observation already. */
  const filledNow = (): Filled => ({ numEnvs, moments, used: filled + 1 })

  const state = (): NamedArrays => ({
    position: namedVector(Int32Array.of(head, filled)),
    ...filledPart("rows", rows, rowWidth, filledNow()),
    ...frames?.state("frames", filledNow()),
    ...finals.state(),
  })

  const restore = (arrays: NamedArrays): void => {
    const position = new Int32Array(2)
    copyInto(arrays, "position", position)
    const [savedHead, savedFilled] = position
    if (!(savedHead >= 0 && savedHead < moments && (savedFilled === moments - 1 || savedFilled === savedHead))) {
      throw new Misfit(`"position" is [${position.join(", ")}], which a memory of ${moments} moments can't be at`)
    }
    head = savedHead
    filled = savedFilled
    restoreFilled(arrays, "rows", rows, rowWidth, filledNow())
    frames?.restore(arrays, "frames", filledNow())
    finals.restore(arrays)
  }

  return { size, see, add, draw, gather, placeOf, capacity: places, filled: filledNow, state, restore }
}

/** Final observations by the place of their moment: few, so they are kept apart. */
const makeFinals = (width: number) => {
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
        throw new Misfit(`"finalPlaces" and "finals" don't belong together`)
      }
      slots.clear()
      free.length = 0
      contents = new Float32Array(Math.max(16 * width, kept.length))
      contents.set(kept)
      for (let index = 0; index < places.length; index++) slots.set(places[index], index)
    },
  }
}
