/** Draws probabilities from a Dirichlet distribution. */
import { exp, log } from "./Elementary.ts"
import type { Stream } from "./Rng.ts"

/**
 * Draws a number from a gamma distribution with the shape `alpha` and the scale 1 (Marsaglia and Tsang 2000). For a shape
 * below 1 it draws one of the shape alpha + 1, and multiplies it by u^(1 / alpha).
 */
const gamma = (random: Stream, alpha: number): number => {
  if (alpha < 1) return gamma(random, alpha + 1) * exp(log(1 - random.uniformDouble()) / alpha)
  const d = alpha - 1 / 3
  const c = 1 / Math.sqrt(9 * d)
  while (true) {
    const x = random.normal()
    const root = 1 + c * x
    const v = root * root * root
    if (v <= 0) continue
    if (log(1 - random.uniformDouble()) < 0.5 * x * x + d - d * v + d * log(v)) return d * v
  }
}

/**
 * Fills the first `count` numbers of `out` with probabilities that add up to 1, from the symmetric Dirichlet distribution:
 * the smaller `alpha` is, the fewer of them have most of the sum.
 *
 * @example
 * ```ts
 * const shares = new Float64Array(3)
 * dirichlet(Rng.stream(1), 0.3, shares, 3)
 * ```
 */
export const dirichlet = (random: Stream, alpha: number, out: Float64Array, count: number): void => {
  let sum = 0
  for (let index = 0; index < count; index++) {
    out[index] = gamma(random, alpha)
    sum += out[index]
  }
  // With a very small alpha, all draws can round to 0.
  for (let index = 0; index < count; index++) out[index] = sum > 0 ? out[index] / sum : 1 / count
}
