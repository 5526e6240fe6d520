/** Builds the natural gradient step within a trust region of TRPO (Schulman et al. 2015, arXiv:1502.05477). */
import { gradients } from "./gradients.ts"
import {
  add,
  and,
  constant,
  div,
  greater,
  lessEqual,
  maximum,
  mul,
  sqrt,
  stopGradient,
  sub,
  sum,
  where,
} from "./ops.ts"
import type { Tensor } from "./Tensor.ts"

/** The surrogate objective of a policy's parameters, and their divergence from the policy before the step, as scalars. */
export interface Surrogate {
  /** The number to increase. */
  readonly objective: Tensor
  /** The mean KL divergence from the policy at which the step begins, KL(π_old ‖ π). */
  readonly divergence: Tensor
}

export interface TrustRegion {
  /** The largest divergence of a step. */
  readonly maxKl: number
  /** The number of iterations of the conjugate gradient. */
  readonly iterations: number
  /** The number that is added to the diagonal of the Fisher matrix. */
  readonly damping: number
  /** The number of steps that the line search tries. */
  readonly tries: number
  /** The length of each step that is tried, as a share of the one before. */
  readonly shrink: number
}

/** Keeps the quotients below from dividing zero by zero. */
const tiny = 1e-30

/**
 * Returns the function that multiplies a vector by the Hessian of a scalar, H v = ∇(∇f · v), without computing the
 * matrix. If the scalar is the KL divergence from the policy with the same parameters, H is the Fisher matrix.
 *
 * @example
 * ```ts
 * const x = Graph.state("x", [2])
 * hessianProduct(Graph.sum(Graph.square(x)), x)(Graph.constant([1, 3])) // [2, 6]
 * ```
 */
export const hessianProduct = (scalar: Tensor, theta: Tensor): ((vector: Tensor) => Tensor) => {
  const [slope] = gradients(scalar, [theta])
  return (vector) => gradients(sum(mul(slope, stopGradient(vector))), [theta])[0]
}

/** A solution is good enough when its squared residual is below this share of |b|². */
const solved = 1e-10

/**
 * Directions whose curvature is below this share of the largest curvature are ignored: in float32, it is mostly
 * rounding.
 */
const flat = 1e-4

/**
 * Solves A x = b by at most `iterations` of the conjugate gradient (Hestenes and Stiefel 1952), from x = 0. A must be
 * symmetric and positive definite; `product` multiplies it by a vector. x no longer changes once it nearly solves the
 * system, or once a direction has hardly any curvature, because rounding would then decide the length of the step.
 *
 * @example
 * ```ts
 * conjugateGradient((x) => Graph.mul(x, 2), Graph.constant([2, 6]), 2) // [1, 3]
 * ```
 */
export const conjugateGradient = (product: (vector: Tensor) => Tensor, b: Tensor, iterations: number): Tensor => {
  let x = constant(0, b.shape)
  let residual = b
  let direction = b
  let squares = dot(residual, residual)
  const enough = mul(squares, solved)
  let largest = constant(0)
  let goesOn = greater(squares, 0)
  for (let iteration = 0; iteration < iterations; iteration++) {
    const image = product(direction)
    const bend = dot(direction, image)
    const curvature = div(bend, maximum(dot(direction, direction), tiny))
    largest = maximum(largest, curvature)
    goesOn = and(goesOn, and(greater(squares, enough), greater(curvature, mul(largest, flat))))
    const length = div(squares, maximum(bend, tiny))
    x = where(goesOn, add(x, mul(direction, length)), x)
    residual = sub(residual, mul(image, length))
    const next = dot(residual, residual)
    direction = add(residual, mul(direction, div(next, maximum(squares, tiny))))
    squares = next
  }
  return x
}

const dot = (a: Tensor, b: Tensor): Tensor => sum(mul(a, b))

/**
 * Builds a step from the parameters `theta` (a flat vector) that increases an objective and keeps a divergence within a
 * limit. The direction is s = F⁻¹ ∇objective, with the damped Fisher matrix F, at the length √(2 maxKl / sᵀ F s). The
 * line search takes the longest of the shrinking steps that increases the objective and is within the limit; if there
 * is none, `theta` stays the same. `surrogate` computes the objective and the divergence for any parameters.
 *
 * @example
 * ```ts
 * const theta = Graph.state("theta", [2])
 * const surrogate = (x: Graph.Tensor) => ({
 *   objective: Graph.sum(x),
 *   divergence: Graph.sum(Graph.square(Graph.sub(x, Graph.stopGradient(theta)))),
 * })
 * const { next } = trustRegionStep(theta, surrogate, { maxKl: 0.01, iterations: 10, damping: 0, tries: 10, shrink: 0.8 })
 * ```
 */
export const trustRegionStep = (
  theta: Tensor,
  surrogate: (theta: Tensor) => Surrogate,
  { maxKl, iterations, damping, tries, shrink }: TrustRegion,
): { readonly next: Tensor; readonly divergence: Tensor; readonly fraction: Tensor } => {
  const old = surrogate(theta)
  const [slope] = gradients(old.objective, [theta])
  const curvature = hessianProduct(old.divergence, theta)
  const product = (vector: Tensor): Tensor => add(curvature(vector), mul(vector, damping))
  const direction = conjugateGradient(product, slope, iterations)
  const length = sqrt(div(2 * maxKl, maximum(dot(direction, product(direction)), tiny)))
  const whole = mul(direction, length)

  // Try the steps from the shortest to the longest, so that the last one that passes is the longest.
  let fraction = constant(0)
  let divergence = constant(0)
  for (let attempt = tries - 1; attempt >= 0; attempt--) {
    const share = shrink ** attempt
    const candidate = surrogate(add(theta, mul(whole, share)))
    const passes = and(greater(candidate.objective, old.objective), lessEqual(candidate.divergence, maxKl))
    fraction = where(passes, share, fraction)
    divergence = where(passes, candidate.divergence, divergence)
  }
  return { next: where(greater(fraction, 0), add(theta, mul(whole, fraction)), theta), divergence, fraction }
}
