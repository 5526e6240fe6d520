import { add, constant, div, minimum, mul, pow, sqrt, square, state, sub, sum } from "./ops.ts"
import type { Operand } from "./ops/elementwise.ts"
import type { Tensor } from "./Tensor.ts"

/**
 * Optimisers over one flat vector of parameters: from parameters and gradient to the next parameters, with the state
 * that they keep in between (all zeros at first).
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
  readonly moments: Readonly<Record<string, { readonly tensor: Tensor; readonly next: Tensor }>>
}

interface Common {
  /** Parameters in all. */
  readonly size: number
  readonly learningRate: Operand
  /** Before the names of what is kept; where a program has several optimisers, they need different ones. */
  readonly name?: string
}

export interface AdamOptions extends Common {
  readonly beta1?: number
  readonly beta2?: number
  readonly epsilon?: number
  /** Decoupled from the gradient: AdamW. */
  readonly weightDecay?: number
}

/** Adam (Kingma and Ba 2014), with bias correction; with weight decay it is AdamW (Loshchilov and Hutter 2017). */
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
    // lr · (m / c₁) / (√v / c₂ + ε), with the scalars gathered so that the vectors are passed over least.
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

/** RMSProp (Tieleman and Hinton 2012): the gradient by the root of a running mean of its square. */
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

/** The gradient, scaled down where its norm exceeds `largest`. */
export const clipGlobalNorm = (gradient: Tensor, largest: number): Tensor => {
  const norm = sqrt(sum(square(gradient)))
  return mul(gradient, minimum(div(constant(largest), add(norm, 1e-6)), 1))
}
