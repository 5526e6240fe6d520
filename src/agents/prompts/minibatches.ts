/**
 * Draws the tasks of each iteration's minibatch: all tasks are shuffled for each epoch, and iterations take one slice after
 * the other. Since a minibatch depends only on the seed and the number of the iteration, no generator is saved.
 *
 * @example
 * ```ts
 * minibatchOf({ seed: 1, size: 4, tasks: 10 }, 0) // four of the tasks 0 to 9
 * ```
 */
import { stream } from "../../base/rng/Rng.ts"

interface Minibatches {
  readonly seed: number
  /** The number of tasks in a minibatch. */
  readonly size: number
  /** The number of tasks in the data set. */
  readonly tasks: number
}

/**
 * Returns the tasks of an iteration (from 0). If the minibatches don't divide the data set, the last one of an epoch is filled
 * with the last tasks of the epoch's order, each at most once: a minibatch is smaller if the data set is.
 */
export const minibatchOf = ({ seed, size, tasks }: Minibatches, iteration: number): ReadonlyArray<number> => {
  const perEpoch = Math.ceil(tasks / size)
  const epoch = Math.floor(iteration / perEpoch)
  const order = stream(seed, "prompts", "minibatches", epoch).permutation(new Int32Array(tasks))
  const from = (iteration % perEpoch) * size
  const slice = Array.from({ length: size }, (_, at) => {
    const position = from + at
    return order[position < tasks ? position : tasks - 1 - ((position - tasks) % tasks)]
  })
  return [...new Set(slice)]
}
