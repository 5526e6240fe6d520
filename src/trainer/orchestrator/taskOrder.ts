import { stream } from "../../base/rng/Rng.ts"

/**
 * Returns the task of a draw, counted from 0 over the whole run: all tasks of a set in a random order, then all of them in
 * another order, and so on. The task depends only on the number of the draw, so a resumed run draws the same tasks.
 *
 * @example
 * ```ts
 * const taskOf = taskOrder({ seed: 1, size: 3 })
 * const drawn = [taskOf(0), taskOf(1), taskOf(2)] // 0, 1 and 2 in some order
 * ```
 */
export const taskOrder = ({ seed, size }: { readonly seed: number; readonly size: number }) => {
  let epoch = -1
  const order = new Int32Array(size)
  return (draw: number): number => {
    const wanted = Math.floor(draw / size)
    if (wanted !== epoch) {
      epoch = wanted
      stream(seed, "tasks", epoch).permutation(order)
    }
    return order[draw % size]
  }
}
