import type { Program } from "../../backend/Backend.ts"
import type { Stream } from "../../rng/Rng.ts"
import type { NamedArrays, Task } from "../Algorithm.ts"
import { floatsOf } from "../learnerState.ts"
import type { Prioritised, ReplayConfig } from "./fields.ts"
import { makePriorities } from "./Priorities.ts"
import type { Replay } from "./Replay.ts"

/** Describes a way to draw transitions, from which a learner makes a `Sampler`. */
export interface Sampling {
  /** Whether the update must output the errors of its transitions. */
  readonly needsErrors: boolean
  readonly start: (options: SamplerOptions) => Sampler
}

interface SamplerOptions {
  readonly replay: Replay
  readonly task: Task
  readonly config: ReplayConfig
  readonly update: Program
}

/** Decides which transitions of a replay buffer an update learns from. */
export interface Sampler {
  /** Records the step that was just added to the replay buffer. */
  readonly added: () => void
  /**
   * Draws the transitions of an update into `places`, for `Replay.gather`. `progress` is the share of the run that is
   * over, from 0 to 1.
   */
  readonly draw: (random: Stream, progress: number, places: Int32Array) => void
  /** Records the errors of the transitions that were drawn; they are undefined unless `needsErrors` is true. */
  readonly learned: (places: Int32Array, errors: ArrayLike<number>) => void
  readonly state: () => NamedArrays
  readonly restore: (arrays: NamedArrays) => void
}

/** Draws every transition with the same probability. */
export const uniformSampling: Sampling = {
  needsErrors: false,
  start: ({ replay }) => ({
    added: () => {},
    draw: (random, _, places) => replay.draw(random, places),
    learned: () => {},
    state: () => ({}),
    restore: () => {},
  }),
}

/**
 * Draws by prioritised replay (Schaul et al. 2015, arXiv:1511.05952), with proportional priorities:
 *
 * P(i) = pᵢ / Σ p with pᵢ = (|δᵢ| + ε)^α, and importance weights wᵢ = (N P(i))^−β / max w.
 */
export const prioritisedSampling = ({ alpha, beta, epsilon }: Prioritised): Sampling => ({
  needsErrors: true,
  start: ({ replay, task: { numEnvs }, config: { nsteps, batchSize }, update }) => {
    const importance = floatsOf(update.feeds, "importance")
    const priorities = makePriorities(replay.capacity)
    const drawn = new Int32Array(batchSize)
    return {
      // A step can be drawn once all rewards of its transition have arrived. The current step, which has no action yet, is
      // never drawn.
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
  },
})
