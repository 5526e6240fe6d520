/** Reads curves between their points. The page of `effect ui` loads this file, so it imports neither Node nor Effect. */

/** Interpolates a curve linearly; undefined before its first and after its last point. */
export const valueAt = (xs: ReadonlyArray<number>, ys: ReadonlyArray<number>, x: number): number | undefined => {
  if (!(x >= xs[0] && x <= xs[xs.length - 1])) return undefined
  let low = 0
  let high = xs.length - 1
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if (xs[middle] <= x) low = middle
    else high = middle
  }
  if (xs[high] <= x) return ys[high]
  return ys[low] + ((ys[high] - ys[low]) * (x - xs[low])) / (xs[high] - xs[low] || 1)
}
