/** Implements prioritised replay: keeps the priorities of transitions in memory, and draws transitions by them. */
import type { Stream } from "../../../base/rng/Rng.ts"
import type { NamedArrays } from "../../../tensor/graph/Parameters.ts"
import { copyInto, namedVector } from "../learnerState.ts"
import type { Prioritised } from "./fields.ts"
import type { Replay } from "./Replay.ts"
import type { ReplayExperience } from "./ReplayExperience.ts"
import { type Filled, filledPart, restoreFilled } from "./storage.ts"

/** Makes a tree of the priorities of `capacity` places (indices of steps), which draws a place in logarithmic time. */
export const makePriorities = (capacity: number) => {
  let leaves = 1
  while (leaves < capacity) leaves *= 2
  /** The sums of a binary tree: node i has the children 2i and 2i + 1, and the second half of the array holds the leaves. */
  const sums = new Float64Array(2 * leaves)
  /** The greatest priority so far; an array of one number, because a checkpoint stores arrays. */
  const greatest = Float64Array.of(1)

  const set = (place: number, priority: number): void => {
    if (priority > greatest[0]) greatest[0] = priority
    let node = leaves + place
    sums[node] = priority
    // `node >> 1` is the parent. Its sum is computed from its children: adding the change would accumulate errors.
    for (node >>= 1; node >= 1; node >>= 1) sums[node] = sums[2 * node] + sums[2 * node + 1]
  }

  /** Returns the first place at which the sum of all priorities up to this place exceeds `mass`. */
  const placeAt = (mass: number): number => {
    let remaining = mass
    let node = 1
    while (node < leaves) {
      node *= 2
      // Go to the right child; but after rounding errors, not to one whose places all have the priority 0.
      if (remaining >= sums[node] && sums[node + 1] > 0) {
        remaining -= sums[node]
        node++
      }
    }
    return node - leaves
  }

  return {
    set,
    /** Gives a new place the greatest priority so far, so that it is likely to be drawn soon. */
    setNew: (place: number): void => set(place, greatest[0]),
    /** Sets the priority of a place to 0, so that it is never drawn. */
    clear: (place: number): void => set(place, 0),
    get: (place: number): number => sums[leaves + place],
    total: (): number => sums[1],
    /** Fills `places`: divides the sum of all priorities into as many equal parts, and draws a place in each part. */
    draw: (random: Stream, places: Int32Array): void => {
      const part = sums[1] / places.length
      for (let index = 0; index < places.length; index++) {
        places[index] = placeAt((index + random.uniformDouble()) * part)
      }
    },
    /** Returns the priorities of the filled places, for a checkpoint; all other priorities are 0. */
    state: (filled: Filled): NamedArrays => ({
      ...filledPart("priorities", sums.subarray(leaves), 1, filled),
      greatestPriority: namedVector(greatest),
    }),
    restore: (arrays: NamedArrays, filled: Filled): void => {
      sums.fill(0)
      restoreFilled(arrays, "priorities", sums.subarray(leaves), 1, filled)
      copyInto(arrays, "greatestPriority", greatest)
      for (let node = leaves - 1; node >= 1; node--) sums[node] = sums[2 * node] + sums[2 * node + 1]
    },
  }
}

/**
 * Makes functions that draw the transitions of a replay buffer by prioritised replay (Schaul et al. 2015,
 * arXiv:1511.05952), with proportional priorities:
 *
 * P(i) = pᵢ / Σ p with pᵢ = (|δᵢ| + ε)^α, and importance weights wᵢ = (N P(i))^−β / max w, where δᵢ is the last error
 * of transition i, N the number of transitions, and max w the largest weight of a batch. α, β and ε are settings.
 */
export const prioritisedDraws = (
  { alpha, beta, epsilon }: Prioritised,
  replay: Replay,
  { task: { numEnvs }, config: { batchSize } }: Pick<ReplayExperience<string, never>, "task" | "config">,
  importance: Float32Array,
) => {
  const priorities = makePriorities(replay.capacity)
  const drawn = new Int32Array(batchSize)
  return {
    /**
     * Updates the priorities; call it after each step that is added to the buffer. A step can be drawn once all rewards of the
     * transition or sequence that begins there have arrived. The current step, which has no action yet, is never drawn.
     */
    added: (): void => {
      const drawable = replay.size() > 0
      for (let env = 0; env < numEnvs; env++) {
        priorities.clear(replay.placeOf(env, 0))
        const place = replay.placeOf(env, replay.span)
        if (drawable && replay.isStart(place)) priorities.setNew(place)
      }
    },
    /** Fills `places` with drawn transitions, and `importance` with their weights; β rises to 1 as `progress` does. */
    draw: (random: Stream, progress: number, places: Int32Array): void => {
      const correction = beta + (1 - beta) * progress
      const count = replay.size()
      for (let start = 0; start < places.length; start += batchSize) {
        priorities.draw(random, drawn)
        places.set(drawn, start)
        let greatest = 0
        for (let row = 0; row < batchSize; row++) {
          const weight = ((count * priorities.get(drawn[row])) / priorities.total()) ** -correction
          importance[start + row] = weight
          if (weight > greatest) greatest = weight
        }
        for (let row = 0; row < batchSize; row++) importance[start + row] /= greatest
      }
    },
    /** Sets new priorities for the transitions that were drawn last, from the errors that the update found. */
    learned: (places: Int32Array, errors: ArrayLike<number>): void => {
      for (let row = 0; row < places.length; row++) {
        priorities.set(places[row], (Math.abs(errors[row]) + epsilon) ** alpha)
      }
    },
    state: (): NamedArrays => priorities.state(replay.filled()),
    restore: (arrays: NamedArrays): void => priorities.restore(arrays, replay.filled()),
  }
}
