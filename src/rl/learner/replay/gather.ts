/**
 * Draws transitions and sequences from the rings of a replay buffer, and copies them to the rows of a batch. A place is
 * the index of a step in the buffer (see `ring.ts`).
 */
import type { Stream } from "../../../base/rng/Rng.ts"
import type { Arrays } from "../Batch.ts"
import type { ReplayColumns, SequenceColumns } from "./ReplayExperience.ts"
import type { BufferLayout } from "./BufferLayout.ts"
import {
  after,
  endingOf,
  readAction,
  readNext,
  readObservation,
  type Ring,
  terminatedFlag,
  truncatedFlag,
} from "./ring.ts"

/** The arrays of a batch that `gatherTransitions` fills, with one row for each transition. */
export type Transitions = Arrays<Omit<ReplayColumns, "importance" | "noise">>

/** The arrays of a batch that `gatherSequences` fills, with one row for each sequence. */
export type Sequences = Arrays<Omit<SequenceColumns, "importance" | "noise">>

/** The rings that batches are read from, and the arrays that all draws use. */
interface Gathering {
  readonly ring: Ring
  readonly nsteps: number
  /** The powers of the discount factor, from 0 to `nsteps`. */
  readonly discountPowers: Float64Array
  /**
   * The number of steps of a sequence that are learned from, and (`burnIn`) of the steps before them, which only warm
   * up the memory.
   */
  readonly length: number
  readonly burnIn: number
  /** The place of the step at each observation of a sequence; −1 for a final observation, at which no action is taken. */
  readonly placesOf: Int32Array
  /** The random numbers of a draw. */
  uniform: Float64Array
}

export const makeGathering = (ring: Ring, { gamma, nsteps = 1, sequences }: BufferLayout): Gathering => ({
  ring,
  nsteps,
  discountPowers: Float64Array.from({ length: nsteps + 1 }, (_, n) => gamma ** n),
  length: sequences?.length ?? 1,
  burnIn: sequences?.burnIn ?? 0,
  placesOf: new Int32Array(ring.span + 1),
  uniform: new Float64Array(0),
})

/**
 * Returns the index in each ring of the oldest step where a draw can begin. It may be `stepsPerEnv` or more: then the
 * index wraps around.
 */
const oldestStart = ({ head, complete, stepsPerEnv, stride }: Ring): number =>
  Math.ceil(((head - complete + stepsPerEnv) % stepsPerEnv) / stride) * stride

/** Returns how many draws can begin in each ring. */
export const startsPerEnv = (ring: Ring): number => {
  const { head, complete, stepsPerEnv, stride, span } = ring
  const newest = ((head - complete + stepsPerEnv) % stepsPerEnv) + complete - span
  return Math.max(0, Math.floor((newest - oldestStart(ring)) / stride) + 1)
}

/** Fills `into` with random places where transitions or sequences begin, all with the same probability. */
export const drawPlaces = (gathering: Gathering, random: Stream, into: Int32Array): void => {
  const { numEnvs, stepsPerEnv, stride } = gathering.ring
  const oldest = oldestStart(gathering.ring)
  const perEnv = startsPerEnv(gathering.ring)
  const count = perEnv * numEnvs
  if (gathering.uniform.length !== into.length) gathering.uniform = new Float64Array(into.length)
  const { uniform } = gathering
  random.fillUniform(uniform)
  for (let index = 0; index < into.length; index++) {
    // A uniform number has 53 random bits, so the probabilities of two places differ by at most a factor of 1 + count / 2⁵³.
    const drawn = Math.floor(uniform[index] * count)
    const env = numEnvs === 1 ? 0 : Math.floor(drawn / perEnv)
    const step = oldest + (drawn - env * perEnv) * stride
    into[index] = env * stepsPerEnv + (step < stepsPerEnv ? step : step - stepsPerEnv)
  }
}

/**
 * Writes the reward and the discount of the transition at a place to a row, and returns the number of its steps.
 * `firstEnding` says how the episode ended with the transition's first step; 0 if it did not end.
 */
const sumUp = (
  { ring, nsteps, discountPowers }: Gathering,
  first: number,
  firstEnding: number,
  into: Pick<Transitions, "rewards" | "discounts">,
  row: number,
): number => {
  const { rows, rowWidth, rewardAt } = ring
  let place = first
  let total = rows[place * rowWidth + rewardAt]
  let ending = firstEnding
  let steps = 1
  for (; steps < nsteps && ending === 0; steps++) {
    place = after(ring, place)
    total += discountPowers[steps] * rows[place * rowWidth + rewardAt]
    ending = endingOf(ring, place)
  }
  into.rewards[row] = total
  into.discounts[row] = ending === terminatedFlag ? 0 : discountPowers[steps]
  return steps
}

/** Copies the transitions at the drawn places to a batch: each has `nsteps` steps, or ends with the episode. */
export const gatherTransitions = (gathering: Gathering, drawn: Int32Array, into: Transitions): void => {
  const { ring } = gathering
  const { rows, rowWidth, actionAt, endingAt } = ring
  const { observations, actions, nextObservations, discounts } = into
  // First read three numbers of each transition: where its step begins, the ending, and where the next observation ends. So
  // the cache misses of many rows overlap, which saves much time. The next loop uses the ending, and overwrites all three.
  for (let row = 0; row < drawn.length; row++) {
    const at = drawn[row] * rowWidth
    observations[row] = rows[at]
    discounts[row] = rows[at + endingAt]
    nextObservations[row] = rows[Math.min(at + rowWidth + actionAt, rows.length) - 1]
  }
  for (let row = 0; row < drawn.length; row++) {
    let place = drawn[row]
    readObservation(ring, place, observations, row)
    readAction(ring, place, actions, row)
    const steps = sumUp(gathering, place, discounts[row], into, row)
    for (let step = 1; step < steps; step++) place = after(ring, place)
    readNext(ring, place, endingOf(ring, place), nextObservations, row)
  }
}

/**
 * Copies the sequences that begin at the drawn places to a batch. A sequence is a row of observations: those of successive
 * steps, across the ends of episodes, and the final observation of each truncated episode after its last step. `next` is the
 * observation, counted from the first learned one, from which a transition continues.
 */
export const gatherSequences = (gathering: Gathering, drawn: Int32Array, into: Sequences): void => {
  const { memorySize, storedMemories, stride } = gathering.ring
  const { memory } = into
  for (let index = 0; index < drawn.length; index++) {
    const first = drawn[index]
    const from = (first / stride) * memorySize
    for (let at = 0; at < memorySize; at++) memory[index * memorySize + at] = storedMemories[from + at]
    readSequence(gathering, first, into, index)
    sumUpSequence(gathering, first, into, index)
  }
}

/** Copies the observations of the sequence at a place, and writes their places to `placesOf`. */
const readSequence = (
  { ring, placesOf }: Gathering,
  first: number,
  { observations, fresh }: Sequences,
  index: number,
): void => {
  const count = placesOf.length
  let place = first
  let begins = 0
  for (let at = 0; at < count; at++) {
    placesOf[at] = place
    fresh[index * count + at] = begins
    readObservation(ring, place, observations, index * count + at)
    // The last observation can be the current one, whose step has no ending yet.
    const ending = at < count - 1 ? endingOf(ring, place) : 0
    begins = ending === 0 ? 0 : 1
    if (ending === truncatedFlag) {
      at++
      placesOf[at] = -1
      fresh[index * count + at] = 0
      ring.finals.read(place, observations, index * count + at)
    }
    place = after(ring, place)
  }
}

/** Writes the learned columns of the sequence whose observations `readSequence` has just read. */
const sumUpSequence = (gathering: Gathering, first: number, into: Sequences, index: number): void => {
  const { ring, placesOf, length, burnIn } = gathering
  const { actions, discounts, next, valid } = into
  for (let step = 0; step < length; step++) {
    const row = index * length + step
    const at = placesOf[burnIn + step]
    valid[row] = at < 0 ? 0 : 1
    // A row with a final observation has no step: it is filled with another step, and `valid` removes it from the loss.
    const learned = at < 0 ? first : at
    readAction(ring, learned, actions, row)
    const steps = sumUp(gathering, learned, endingOf(ring, learned), into, row)
    next[row] = discounts[row] === 0 || at < 0 ? step : step + steps
  }
}
