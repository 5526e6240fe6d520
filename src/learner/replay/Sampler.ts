import type { Stream } from "../../rng/Rng.ts"
import type { NamedArrays } from "../Algorithm.ts"
import { makePriorities } from "./Priorities.ts"
import type { Replay } from "./Replay.ts"

/** Decides which transitions of a replay buffer an update learns from. */
export interface Sampler {
  /** Takes note of the step that was just added to the replay buffer. */
  readonly added: () => void
  /**
   * Draws the transitions of an update into `places`, for `Replay.gather`. `progress` is the share of the run that is
   * over, from 0 to 1.
   */
  readonly draw: (random: Stream, progress: number, places: Int32Array) => void
  /** The importance weight of each drawn transition, where the sampler corrects for how it draws. */
  readonly importance?: Float32Array
  /** Takes note of the errors of the transitions that were drawn. */
  readonly learned: (places: Int32Array, errors: ArrayLike<number>) => void
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}

/** Draws every transition with the same probability. */
export const uniformSampler = (replay: Replay): Sampler => ({
  added: () => {},
  draw: (random, _, places) => replay.draw(random, places),
  learned: () => {},
  state: () => ({}),
  restore: () => {},
})

export interface PrioritisedOptions {
  /** The exponent of the priorities: 0 draws uniformly, 1 in proportion to the error. */
  readonly alpha: number
  /** The exponent of the importance weights at the start of the run; it rises to 1. */
  readonly beta: number
  /** The constant that is added to every error. */
  readonly epsilon: number
  readonly numEnvs: number
  /** The steps that a transition spans. */
  readonly nsteps: number
  /** The transitions of one gradient step, over which importance weights are normalised. */
  readonly batchSize: number
  /** An array to fill with the importance weights of all gradient steps of an update. */
  readonly importance: Float32Array
}

/**
 * Prioritised replay (Schaul et al. 2015, arXiv:1511.05952), with proportional priorities:
 *
 * P(i) = pᵢ / Σ p with pᵢ = (|δᵢ| + ε)^α, and importance weights wᵢ = (N P(i))^−β / max w.
 */
export const prioritisedSampler = (replay: Replay, options: PrioritisedOptions): Sampler => {
  const { alpha, beta, epsilon, numEnvs, nsteps, batchSize, importance } = options
  const priorities = makePriorities(replay.capacity)
  const drawn = new Int32Array(batchSize)
  return {
    importance,
    // A step can be drawn once all rewards of its transition have arrived, and the one that is being filled never.
    added: () => {
      const drawable = replay.size() > 0
      for (let env = 0; env < numEnvs; env++) {
        priorities.clear(replay.placeOf(env, 0))
        if (drawable) priorities.setNew(replay.placeOf(env, nsteps))
      }
    },
    draw: (random, progress, places) => {
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
    learned: (places, errors) => {
      for (let row = 0; row < places.length; row++) {
        priorities.set(places[row], (Math.abs(errors[row]) + epsilon) ** alpha)
      }
    },
    state: () => priorities.state(replay.filled()),
    restore: (arrays) => priorities.restore(arrays, replay.filled()),
  }
}
