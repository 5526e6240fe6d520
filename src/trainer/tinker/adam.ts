/** Updates an adapter by AdamW, with settings that each step may change, as Tinker's protocol has it. */
import { normOf } from "../optimisers/norm.ts"

export interface AdamSettings {
  readonly learningRate: number
  readonly beta1: number
  readonly beta2: number
  readonly epsilon: number
  readonly weightDecay: number
  /** The largest norm of the gradient; a larger gradient is scaled down to it. 0 sets no limit. */
  readonly maxNorm: number
}

/** The parameters and the state of an optimiser, which a step changes in place. */
interface AdamState {
  readonly parameters: Float32Array
  readonly first: Float32Array
  readonly second: Float32Array
  /** The number of steps so far. */
  readonly steps: number
}

/** Returns `base` to the power of a natural number, by products alone, so that all machines get the same bits. */
const power = (base: number, exponent: number): number => {
  let result = 1
  let square = base
  for (let rest = exponent; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2 === 1) result *= square
    square *= square
  }
  return result
}

/**
 * Makes one step of AdamW (Loshchilov and Hutter 2017) with the sum of the gradients since the last step.
 *
 * @example
 * ```ts
 * adamStep(adamState, gradient, adamSettings)
 * ```
 */
export const adamStep = (
  { parameters, first, second, steps }: AdamState,
  gradient: Float32Array,
  { learningRate, beta1, beta2, epsilon, weightDecay, maxNorm }: AdamSettings,
): void => {
  const norm = normOf(gradient)
  const scale = maxNorm > 0 && norm > maxNorm ? maxNorm / norm : 1
  const correction1 = 1 - power(beta1, steps + 1)
  const correction2 = 1 - power(beta2, steps + 1)
  const shrink = 1 - learningRate * weightDecay
  for (let at = 0; at < parameters.length; at++) {
    const slope = gradient[at] * scale
    first[at] = beta1 * first[at] + (1 - beta1) * slope
    second[at] = beta2 * second[at] + (1 - beta2) * slope * slope
    const step = first[at] / correction1 / (Math.sqrt(second[at] / correction2) + epsilon)
    parameters[at] = shrink * parameters[at] - learningRate * step
  }
}
