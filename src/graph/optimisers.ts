/** Defines the optimisers Adam, SGD and RMSProp as ops, so that a compiled program updates its own parameters. */
import { add, constant, div, minimum, mul, pow, sqrt, square, state, sub, sum } from "./ops.ts"
import type { Operand } from "./ops/elementwise.ts"
import type { Tensor } from "./Tensor.ts"

/**
 * An optimiser computes the next parameters, one flat vector, from the parameters and their gradient. It keeps states
 * between updates, which start as zeros.
 *
 * @example
 * ```ts
 * const { next, moments } = adam({ size, learningRate: 1e-3 }).update(theta, gradient)
 * ```
 */
export interface Optimiser {
  readonly update: (theta: Tensor, gradient: Tensor) => Updated
}

export interface Updated {
  readonly next: Tensor
  /** The optimiser's states by name, for the `state` of the program. */
  readonly moments: Readonly<Record<string, { readonly tensor: Tensor; readonly next: Tensor }>>
}

interface Common {
  /** The number of parameters. */
  readonly size: number
  readonly learningRate: Operand
  /** The prefix of the names of the optimiser's states. Optimisers in one program need different names. */
  readonly name?: string
}

export interface AdamOptions extends Common {
  readonly beta1?: number
  readonly beta2?: number
  readonly epsilon?: number
  /** Each update subtracts learningRate · weightDecay · parameter from each parameter, in addition to Adam's step (AdamW). */
  readonly weightDecay?: number
}

/** Makes Adam (Kingma and Ba 2014) with bias correction; with weight decay it is AdamW (Loshchilov and Hutter 2017). */
export const adam = ({
  size,
  learningRate,
  beta1 = 0.9,
  beta2 = 0.999,
  epsilon = 1e-8,
  weightDecay = 0,
  name = "adam",
}: AdamOptions): Optimiser => ({
  update: (theta, gradient) => {
    const first = state(`${name}.first`, [size])
    const second = state(`${name}.second`, [size])
    const steps = state(`${name}.steps`, [])
    const nextSteps = add(steps, 1)
    const nextFirst = add(mul(first, beta1), mul(gradient, 1 - beta1))
    const nextSecond = add(mul(second, beta2), mul(square(gradient), 1 - beta2))
    const correction1 = sub(1, pow(constant(beta1), nextSteps))
    const correction2 = sqrt(sub(1, pow(constant(beta2), nextSteps)))
    // The step is lr · (m / c₁) / (√v / c₂ + ε), with the moments m and v and their bias corrections c₁ and c₂. Scalars
    // are combined first, so that few ops work on whole vectors.
    const rate = div(mul(correction2, learningRate), correction1)
    const step = div(nextFirst, add(sqrt(nextSecond), mul(correction2, epsilon)))
    const decayed = weightDecay === 0 ? theta : mul(theta, sub(1, mul(constant(weightDecay), learningRate)))
    return {
      next: sub(decayed, mul(step, rate)),
      moments: {
        [`${name}.first`]: { tensor: first, next: nextFirst },
        [`${name}.second`]: { tensor: second, next: nextSecond },
        [`${name}.steps`]: { tensor: steps, next: nextSteps },
      },
    }
  },
})

export interface SgdOptions extends Common {
  readonly momentum?: number
}

export const sgd = ({ size, learningRate, momentum = 0, name = "sgd" }: SgdOptions): Optimiser => ({
  update: (theta, gradient) => {
    if (momentum === 0) return { next: sub(theta, mul(gradient, learningRate)), moments: {} }
    const velocity = state(`${name}.velocity`, [size])
    const nextVelocity = add(mul(velocity, momentum), gradient)
    return {
      next: sub(theta, mul(nextVelocity, learningRate)),
      moments: { [`${name}.velocity`]: { tensor: velocity, next: nextVelocity } },
    }
  },
})

export interface RmspropOptions extends Common {
  readonly decay?: number
  readonly epsilon?: number
}

/** Makes RMSProp (Tieleman and Hinton 2012), which divides the gradient by the root of a running mean of its square. */
export const rmsprop = ({
  size,
  learningRate,
  decay = 0.99,
  epsilon = 1e-8,
  name = "rmsprop",
}: RmspropOptions): Optimiser => ({
  update: (theta, gradient) => {
    const meanSquare = state(`${name}.meanSquare`, [size])
    const nextMeanSquare = add(mul(meanSquare, decay), mul(square(gradient), 1 - decay))
    return {
      next: sub(theta, mul(div(gradient, add(sqrt(nextMeanSquare), epsilon)), learningRate)),
      moments: { [`${name}.meanSquare`]: { tensor: meanSquare, next: nextMeanSquare } },
    }
  },
})

/** Scales the gradient down to the Euclidean norm `largest` if its norm is larger. */
export const clipGlobalNorm = (gradient: Tensor, largest: number): Tensor => {
  const norm = sqrt(sum(square(gradient)))
  return mul(gradient, minimum(div(constant(largest), add(norm, 1e-6)), 1))
}
