import type { NamedArrays } from "../Algorithm.ts"
import { copyInto, namedVector } from "../learnerState.ts"
import { type Filled, filledPart, restoreFilled } from "./storage.ts"
import type { Stream } from "../../rng/Rng.ts"

/**
 * Draws places in proportion to their priorities (Schaul et al. 2015, arXiv:1511.05952) with a tree of sums. Drawing a place
 * or changing a priority takes time proportional to the logarithm of the number of places.
 */
interface Priorities {
  readonly set: (place: number, priority: number) => void
  /** Gives a new place the greatest priority so far, so that it is likely to be drawn soon. */
  readonly setNew: (place: number) => void
  /** Sets the priority of a place to 0, so that it is never drawn. */
  readonly clear: (place: number) => void
  readonly get: (place: number) => number
  readonly total: () => number
  /** Draws places: the total of all priorities is divided into equal parts, and each part gives one place. */
  readonly draw: (random: Stream, places: Int32Array) => void
  /** The priorities of the filled places; all other priorities are 0. */
  readonly state: (filled: Filled) => NamedArrays
  readonly restore: (arrays: NamedArrays, filled: Filled) => void
}

export const makePriorities = (capacity: number): Priorities => {
  let leaves = 1
  while (leaves < capacity) leaves *= 2
  /** The sums of a binary tree: node i has the children 2i and 2i + 1, and the second half of the array holds the leaves. */
  const sums = new Float64Array(2 * leaves)
  const greatest = Float64Array.of(1)

  const set = (place: number, priority: number): void => {
    if (priority > greatest[0]) greatest[0] = priority
    let node = leaves + place
    sums[node] = priority
    // Sum up the children instead of adding the difference: rounding errors would accumulate.
    for (node >>= 1; node >= 1; node >>= 1) sums[node] = sums[2 * node] + sums[2 * node + 1]
  }

  const find = (mass: number): number => {
    let left = mass
    let node = 1
    while (node < leaves) {
      node *= 2
      // Rounding must not lead to a place whose priority is 0.
      if (left >= sums[node] && sums[node + 1] > 0) {
        left -= sums[node]
        node++
      }
    }
    return node - leaves
  }

  return {
    set,
    setNew: (place) => set(place, greatest[0]),
    clear: (place) => set(place, 0),
    get: (place) => sums[leaves + place],
    total: () => sums[1],
    draw: (random, places) => {
      const part = sums[1] / places.length
      for (let index = 0; index < places.length; index++) {
        places[index] = find((index + random.uniformDouble()) * part)
      }
    },
    state: (filled) => ({
      ...filledPart("priorities", sums.subarray(leaves), 1, filled),
      greatestPriority: namedVector(greatest),
    }),
    restore: (arrays, filled) => {
      sums.fill(0)
      restoreFilled(arrays, "priorities", sums.subarray(leaves), 1, filled)
      copyInto(arrays, "greatestPriority", greatest)
      for (let node = leaves - 1; node >= 1; node--) sums[node] = sums[2 * node] + sums[2 * node + 1]
    },
  }
}
