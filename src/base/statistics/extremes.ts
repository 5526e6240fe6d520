/**
 * Finds the highest and the lowest of many numbers. `Math.max(...numbers)` passes each number as an argument, and fails for more
 * than about a hundred thousand of them. The page of `effect ui` loads this file in the browser.
 *
 * @example
 * ```ts
 * highest([3, 1, 2]) // 3
 * lowest([]) // Infinity, as Math.min() returns
 * ```
 */

/** Returns the highest number: −Infinity if there are none, and NaN if one is NaN, as `Math.max` does. */
export const highest = (numbers: Iterable<number>): number => {
  let most = -Infinity
  for (const value of numbers) most = Math.max(most, value)
  return most
}

/** Returns the lowest number: Infinity if there are none, and NaN if one is NaN, as `Math.min` does. */
export const lowest = (numbers: Iterable<number>): number => {
  let least = Infinity
  for (const value of numbers) least = Math.min(least, value)
  return least
}
