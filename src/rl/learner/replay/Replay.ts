/** The replay buffer of off-policy learners: stores steps in memory, draws transitions and copies them to batches. */
import type { AnyBatchEnv } from "../../env/BatchEnv.ts"
import type { Stream } from "../../../base/rng/Rng.ts"
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import type { Arrays } from "../Batch.ts"
import { copyInto, Misfit, namedVector } from "../learnerState.ts"
import type { ReplayColumns, SequenceColumns } from "./ReplayExperience.ts"
import { makeEpisodes } from "./episodes.ts"
import { makeFinals } from "./finals.ts"
import { type Filled, filledPart, Frames, restoreFilled } from "./storage.ts"

/** The arrays of a batch that `gather` fills, with one row for each transition. */
type Transitions = Arrays<Omit<ReplayColumns, "importance" | "noise">>

/** The arrays of a batch that `gatherSequences` fills, with one row for each sequence. */
type Sequences = Arrays<Omit<SequenceColumns, "importance" | "noise">>

/** Describes the sequences of steps that are drawn for a network with a memory. */
export interface SequenceOptions {
  /** The number of steps whose actions are learned from. */
  readonly length: number
  /** The number of steps before them, which only warm up the memory. */
  readonly burnIn: number
  /** The number of elements of an env's memory, which is stored where sequences begin. */
  readonly memorySize: number
}

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
  /** If set, sequences of steps are drawn in place of transitions. */
  readonly sequences?: SequenceOptions | undefined
}

// These flags say how an episode ended with a step; 0 if it did not end.
const terminatedFlag = 1
const truncatedFlag = 2

/** Returns the number of steps after the first one of a draw that must be stored before it can be drawn. */
const spanOf = ({ nsteps = 1, sequences }: ReplayOptions): number =>
  nsteps + (sequences === undefined ? 0 : sequences.burnIn + sequences.length - 1)

/** Returns the distance of the steps where sequences can begin: half a sequence, so that each step lies in two of them. */
const strideOf = ({ sequences }: ReplayOptions): number =>
  sequences === undefined ? 1 : Math.max(1, Math.floor(sequences.length / 2))

/** Returns the number of steps stored for each env: those that can be drawn, and the steps after them that a draw needs. */
const stepsPerEnvOf = (options: ReplayOptions): number => {
  const stride = strideOf(options)
  return Math.ceil((Math.ceil(options.capacity / options.numEnvs) + spanOf(options)) / stride) * stride
}

/** Returns the number of transitions or sequences of which a full buffer can draw at least so many. */
export const drawableIn = (options: ReplayOptions): number =>
  options.numEnvs * Math.floor(Math.ceil(options.capacity / options.numEnvs) / strideOf(options))

/** Returns the bytes that a full buffer takes, without final observations, if images are stored as bytes. */
export const replayBytes = (options: ReplayOptions): number => {
  const { numEnvs, observationSize, actionSize, images = false, sequences } = options
  const ofMemory = (4 * (sequences?.memorySize ?? 0)) / strideOf(options)
  return stepsPerEnvOf(options) * numEnvs * (observationSize * (images ? 1 : 4) + (actionSize + 2) * 4 + ofMemory)
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
  const [span, stride] = [spanOf(options), strideOf(options)]
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
  const memorySize = options.sequences?.memorySize ?? 0
  /** The envs' memories before their current observations; callers change them before `begin` and `add`. */
  const memories = new Float32Array(numEnvs * memorySize)
  /** The memories before the steps where sequences can begin. */
  const storedMemories = new Float32Array((places / stride) * memorySize)
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
    for (let env = 0; env < numEnvs; env++) {
      const place = env * stepsPerEnv + head
      writeObservation(place, envs.observations, env)
      if (memorySize > 0 && isStart(place)) {
        const to = (place / stride) * memorySize
        for (let at = 0; at < memorySize; at++) storedMemories[to + at] = memories[env * memorySize + at]
      }
    }
  }

  /** Says whether a draw can begin at a place, once the steps after it that it needs are complete. */
  const isStart = (place: number): boolean => place % stride === 0

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

  /** Returns the index in each ring of the oldest step where a draw can begin; it can lie one round further. */
  const oldestStart = (): number => Math.ceil(((head - complete + stepsPerEnv) % stepsPerEnv) / stride) * stride

  /** Returns how many draws can begin in each ring. */
  const startsPerEnv = (): number => {
    const newest = ((head - complete + stepsPerEnv) % stepsPerEnv) + complete - span
    return Math.max(0, Math.floor((newest - oldestStart()) / stride) + 1)
  }

  /** Returns the number of transitions, or of sequences, that can be drawn. */
  const size = (): number => startsPerEnv() * numEnvs

  /** Fills `into` with the places of drawn transitions or sequences, each with the same probability, for a `gather` function. */
  const draw = (random: Stream, into: Int32Array): void => {
    const oldest = oldestStart()
    const perEnv = startsPerEnv()
    const count = perEnv * numEnvs
    if (uniform.length !== into.length) uniform = new Float64Array(into.length)
    random.fillUniform(uniform)
    for (let index = 0; index < into.length; index++) {
      // A uniform number has 53 random bits, so the probabilities of two places differ by at most a factor of 1 + count / 2⁵³.
      const drawn = Math.floor(uniform[index] * count)
      const env = numEnvs === 1 ? 0 : Math.floor(drawn / perEnv)
      const step = oldest + (drawn - env * perEnv) * stride
      into[index] = env * stepsPerEnv + (step < stepsPerEnv ? step : step - stepsPerEnv)
    }
  }

  const readAction = (place: number, into: Float32Array | Int32Array, row: number): void => {
    const at = place * rowWidth + actionAt
    for (let element = 0; element < actionSize; element++) into[row * actionSize + element] = rows[at + element]
  }

  /**
   * Writes the reward and the discount of the transition at a place, whose first step has this ending, to a row. Returns the
   * number of its steps.
   */
  const sumUp = (first: number, firstEnding: number, into: Pick<Transitions, "rewards" | "discounts">, row: number) => {
    let place = first
    let total = rows[place * rowWidth + rewardAt]
    let ending = firstEnding
    let steps = 1
    for (; steps < nsteps && ending === 0; steps++) {
      place = after(place)
      total += discountPowers[steps] * rows[place * rowWidth + rewardAt]
      ending = rows[place * rowWidth + endingAt]
    }
    into.rewards[row] = total
    into.discounts[row] = ending === terminatedFlag ? 0 : discountPowers[steps]
    return steps
  }

  /** Copies the transitions at the drawn places to a batch: each has `nsteps` steps, or ends with the episode. */
  const gather = (drawn: Int32Array, into: Transitions): void => {
    const { observations, actions, nextObservations, discounts } = into
    // First read three numbers of each transition, into the batch for now: where its step begins, the ending, and where the
    // next observation ends. Then cache misses of many rows overlap, which saves much time.
    for (let row = 0; row < drawn.length; row++) {
      const at = drawn[row] * rowWidth
      observations[row] = rows[at]
      discounts[row] = rows[at + endingAt]
      nextObservations[row] = rows[Math.min(at + rowWidth + actionAt, rows.length) - 1]
    }
    for (let row = 0; row < drawn.length; row++) {
      let place = drawn[row]
      readObservation(place, observations, row)
      readAction(place, actions, row)
      const steps = sumUp(place, discounts[row], into, row)
      for (let step = 1; step < steps; step++) place = after(place)
      readNext(place, rows[place * rowWidth + endingAt], nextObservations, row)
    }
  }

  /** The place of the step at each observation of a sequence; −1 for a final observation, at which no action is taken. */
  const placesOf = new Int32Array(span + 1)

  /**
   * Copies the sequences that begin at the drawn places to a batch. A sequence is a row of observations: those of successive
   * steps, across the ends of episodes, and the final observation of each truncated episode after its last step. `next` is the
   * observation, counted from the first learned one, from which a transition continues.
   */
  const gatherSequences = (drawn: Int32Array, into: Sequences): void => {
    const { observations, actions, memory, fresh, discounts, next, valid } = into
    const { length, burnIn } = options.sequences ?? { length: 1, burnIn: 0 }
    const count = placesOf.length
    for (let index = 0; index < drawn.length; index++) {
      const first = drawn[index]
      const from = (first / stride) * memorySize
      for (let at = 0; at < memorySize; at++) memory[index * memorySize + at] = storedMemories[from + at]
      let place = first
      let begins = 0
      for (let at = 0; at < count; at++) {
        placesOf[at] = place
        fresh[index * count + at] = begins
        readObservation(place, observations, index * count + at)
        // The last observation can be the current one, whose step has no ending yet.
        const ending = at < count - 1 ? rows[place * rowWidth + endingAt] : 0
        begins = ending === 0 ? 0 : 1
        if (ending === truncatedFlag) {
          at++
          placesOf[at] = -1
          fresh[index * count + at] = 0
          finals.read(place, observations, index * count + at)
        }
        place = after(place)
      }
      for (let step = 0; step < length; step++) {
        const row = index * length + step
        const at = placesOf[burnIn + step]
        valid[row] = at < 0 ? 0 : 1
        // A row without a step has a place in the batch, but no part in the loss.
        const learned = at < 0 ? first : at
        readAction(learned, actions, row)
        const steps = sumUp(learned, rows[learned * rowWidth + endingAt], into, row)
        next[row] = discounts[row] === 0 || at < 0 ? step : step + steps
      }
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

  /** Says the same of the steps where a draw can begin. */
  const filledStarts = (): Filled => ({
    numEnvs,
    capacity: stepsPerEnv / stride,
    used: Math.ceil((complete + 1) / stride),
  })

  /** Returns the arrays for a checkpoint: views of the filled part, not copies. */
  const state = (): NamedArrays => ({
    position: namedVector(Int32Array.of(head, complete)),
    ...filledPart("rows", rows, rowWidth, filled()),
    ...frames?.state("frames", filled()),
    ...finals.state(),
    ...(memorySize === 0
      ? {}
      : {
          memories: { shape: [numEnvs, memorySize], data: memories },
          ...filledPart("storedMemories", storedMemories, memorySize, filledStarts()),
        }),
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
    if (memorySize > 0) {
      copyInto(arrays, "memories", memories)
      restoreFilled(arrays, "storedMemories", storedMemories, memorySize, filledStarts())
    }
    episodes?.forget()
    for (let env = 0; env < numEnvs; env++) {
      for (let stored = 1; stored <= complete; stored++) {
        const place = placeOf(env, complete + 1 - stored)
        episodes?.note(env, place, rows[place * rowWidth + endingAt] !== 0, stored)
      }
    }
  }

  return {
    size,
    begin: store,
    add,
    memories,
    draw,
    gather,
    gatherSequences,
    past,
    placeOf,
    /** The number of steps after the first one of a draw that must be stored before it can be drawn. */
    span,
    isStart,
    capacity: places,
    filled,
    state,
    restore,
  }
}
export type Replay = ReturnType<typeof makeReplay>
