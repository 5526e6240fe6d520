/** Defines the optimisers Adam, SGD, RMSProp and Muon as ops, so that a compiled program updates its own parameters. */
import {
  add,
  concat,
  constant,
  div,
  flatten,
  matmul,
  minimum,
  mul,
  pow,
  reshape,
  slice,
  sqrt,
  square,
  stack,
  state,
  sub,
  sum,
} from "./ops.ts"
import { fail, shapeText } from "./ops/core.ts"
import type { Operand } from "./ops/elementwise.ts"
import type { ParameterLayout } from "./Parameters.ts"
import { type Shape, sizeOf, type Tensor } from "./Tensor.ts"

/**
 * An optimiser computes the next parameters, one flat vector, from the parameters and their gradient. It keeps states
 * between updates, which start as zeros.
 *
 * @example
 * ```ts
 * const { next, moments } = adam({ size: theta.shape[0], learningRate: 1e-3 }).update(theta, gradient)
 * ```
 */
export interface Optimiser {
  readonly update: (theta: Tensor, gradient: Tensor) => OptimiserUpdate
}

export interface OptimiserUpdate {
  readonly next: Tensor
  /** The optimiser's states by name, for the `state` of the program. */
  readonly moments: Readonly<Record<string, { readonly tensor: Tensor; readonly next: Tensor }>>
}

interface CommonOptimiserOptions {
  /** The number of parameters. */
  readonly size: number
  readonly learningRate: Operand
  /** The prefix of the names of the optimiser's states. Optimisers in one program need different names. */
  readonly name?: string
}

export interface AdamOptions extends CommonOptimiserOptions {
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
    return {
      next: sub(decayed(theta, weightDecay, learningRate), mul(step, rate)),
      moments: {
        [`${name}.first`]: { tensor: first, next: nextFirst },
        [`${name}.second`]: { tensor: second, next: nextSecond },
        [`${name}.steps`]: { tensor: steps, next: nextSteps },
      },
    }
  },
})

export interface SgdOptions extends CommonOptimiserOptions {
  readonly momentum?: number
  /** Each update subtracts learningRate · weightDecay · parameter from each parameter, in addition to the step. */
  readonly weightDecay?: number
}

/** Makes gradient descent, with momentum if it is not 0 (Polyak 1964): v ← momentum · v + g, θ ← θ − lr · v. */
export const sgd = ({ size, learningRate, momentum = 0, weightDecay = 0, name = "sgd" }: SgdOptions): Optimiser => ({
  update: (theta, gradient) => {
    const start = decayed(theta, weightDecay, learningRate)
    if (momentum === 0) return { next: sub(start, mul(gradient, learningRate)), moments: {} }
    const velocity = state(`${name}.velocity`, [size])
    const nextVelocity = add(mul(velocity, momentum), gradient)
    return {
      next: sub(start, mul(nextVelocity, learningRate)),
      moments: { [`${name}.velocity`]: { tensor: velocity, next: nextVelocity } },
    }
  },
})

export interface RmspropOptions extends CommonOptimiserOptions {
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

/**
 * The coefficients of the Newton-Schulz iteration in Muon. They quickly move singular values between 0 and 1 close to
 * 1.
 */
const [linearTerm, cubicTerm, quinticTerm] = [3.4445, -4.775, 2.0315]

/**
 * Replaces the singular values of a matrix by numbers near 1, from about 0.7 to 1.2, without computing them (Newton and
 * Schulz's iteration with the coefficients of Jordan et al. 2024): X ← 3.4445 X − 4.775 (XXᵀ)X + 2.0315 (XXᵀ)²X, from X
 * = M / ‖M‖. Singular values below about a five-hundredth of the norm need more than five steps. A matrix of zeros
 * stays zero. If there are leading axes, each matrix in the last two axes is treated separately.
 *
 * @example
 * ```ts
 * orthogonalised(Graph.constant([3, 0, 0, 5], [2, 2])) // nearly the identity
 * ```
 */
export const orthogonalised = (matrix: Tensor, steps = 5): Tensor => {
  if (matrix.shape.length < 2) fail("orthogonalised", "expected a matrix", matrix)
  const [rows, columns] = matrix.shape.slice(-2)
  let x = div(matrix, add(sqrt(sum(square(matrix), [-2, -1], { keepDims: true })), 1e-7))
  for (let step = 0; step < steps; step++) {
    // XXᵀ and XᵀX give the same result; use the smaller one.
    const tall = rows > columns
    const gram = matmul(x, x, tall ? { transposeA: true } : { transposeB: true })
    const polynomial = add(mul(gram, cubicTerm), mul(matmul(gram, gram), quinticTerm))
    x = add(mul(x, linearTerm), tall ? matmul(x, polynomial) : matmul(polynomial, x))
  }
  return x
}

export interface MuonOptions {
  /** The positions of the parameters in the flat vector. */
  readonly layout: ParameterLayout
  readonly learningRate: Operand
  readonly momentum?: number
  /** Whether the gradient is added to the momentum once more (Nesterov). */
  readonly nesterov?: boolean
  /** Each update subtracts learningRate · weightDecay · parameter from each parameter. */
  readonly weightDecay?: number
  /** The number of steps of the iteration that orthogonalises. */
  readonly steps?: number
  /** Whether a parameter is updated by Muon; by default, every matrix is. AdamW updates all others. */
  readonly isMatrix?: (name: string, shape: Shape) => boolean
  /** The settings of AdamW for the other parameters. */
  readonly adam?: Pick<AdamOptions, "beta1" | "beta2" | "epsilon">
  readonly name?: string
}

/**
 * Makes Muon (Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks"), which orthogonalises the
 * momentum of each matrix, and updates all other parameters by AdamW. For a matrix of m rows and n columns:
 *
 *     B ← μ B + G    N = G + μ B (Nesterov) or B    θ ← θ − lr · (0.2 √max(m, n) · orthogonalised(N) + weightDecay · θ)
 *
 * The factor 0.2 √max(m, n) makes the step as large as AdamW's usually is (Liu et al. 2025, arXiv:2502.16982), so one
 * learning rate fits all parameters.
 *
 * @example
 * ```ts
 * const net = Layers.mlp("actor", { sizes: [4, 64, 2], activation: "tanh" })
 * const parameters = Parameters.layout(net.parameters)
 * const optimiser = muon({ layout: parameters, learningRate: 1e-3 })
 * ```
 */
export const muon = ({
  layout,
  learningRate,
  momentum = 0.95,
  nesterov = true,
  weightDecay = 0,
  steps: orthogonalisations = 5,
  isMatrix = (_, shape) => shape.length === 2,
  adam: adamOptions = {},
  name = "muon",
}: MuonOptions): Optimiser => ({
  update: (theta, gradient) => {
    const weights = layout.tensorsOf(theta)
    const slopes = layout.tensorsOf(gradient)
    const shapeOf = (key: string): Shape => weights[key].shape
    const matrices = layout.names.filter((key) => {
      if (!isMatrix(key, shapeOf(key))) return false
      return shapeOf(key).length === 2 || fail("muon", `parameter "${key}": expected a matrix`, weights[key])
    })
    const others = layout.names.filter((key) => !matrices.includes(key))
    const moments: Record<string, { readonly tensor: Tensor; readonly next: Tensor }> = {}
    const next: Record<string, Tensor> = {}

    if (matrices.length > 0) {
      const shapes = Object.fromEntries(matrices.map((key) => [key, shapeOf(key)]))
      const slope = joined(matrices, slopes, gradient)
      const buffer = state(`${name}.momentum`, slope.shape)
      const nextBuffer = add(mul(buffer, momentum), slope)
      moments[`${name}.momentum`] = { tensor: buffer, next: nextBuffer }
      const direction = nesterov ? add(slope, mul(nextBuffer, momentum)) : nextBuffer
      const steps = scaledSteps(cut(direction, shapes), orthogonalisations)
      const step = concat(matrices.map((key) => flatten(steps[key])))
      const start = decayed(joined(matrices, weights, theta), weightDecay, learningRate)
      Object.assign(next, cut(sub(start, mul(step, learningRate)), shapes))
    }
    if (others.length > 0) {
      const shapes = Object.fromEntries(others.map((key) => [key, shapeOf(key)]))
      const rest = joined(others, weights, theta)
      const options = { ...adamOptions, size: rest.shape[0], learningRate, weightDecay, name: `${name}.adam` }
      const updated = adam(options).update(rest, joined(others, slopes, gradient))
      Object.assign(next, cut(updated.next, shapes))
      Object.assign(moments, updated.moments)
    }
    return { next: layout.flatten(next), moments }
  },
})

/** Joins the tensors with these names into a flat vector. `whole` is that vector if the names are all there are. */
const joined = (names: ReadonlyArray<string>, tensors: Readonly<Record<string, Tensor>>, whole: Tensor): Tensor =>
  names.length === Object.keys(tensors).length ? whole : concat(names.map((key) => flatten(tensors[key])))

/** Cuts a flat vector into tensors of these shapes, in this order. */
const cut = (vector: Tensor, shapes: Readonly<Record<string, Shape>>): Readonly<Record<string, Tensor>> => {
  let offset = 0
  const parts: Record<string, Tensor> = {}
  for (const [key, shape] of Object.entries(shapes)) {
    parts[key] = reshape(slice(vector, [offset], [sizeOf(shape)]), shape)
    offset += sizeOf(shape)
  }
  return parts
}

/** Returns 0.2 √max(m, n) · orthogonalised(N) of each matrix. Matrices of one shape are computed together. */
const scaledSteps = (
  directions: Readonly<Record<string, Tensor>>,
  iterations: number,
): Readonly<Record<string, Tensor>> => {
  const byShape = Map.groupBy(Object.keys(directions), (key) => shapeText(directions[key].shape))
  const steps: Record<string, Tensor> = {}
  for (const keys of byShape.values()) {
    const { shape } = directions[keys[0]]
    const stacked = stack(keys.map((key) => directions[key]))
    const scaled = mul(orthogonalised(stacked, iterations), 0.2 * Math.sqrt(Math.max(...shape)))
    const shapes = Object.fromEntries(keys.map((key) => [key, shape]))
    Object.assign(steps, cut(flatten(scaled), shapes))
  }
  return steps
}

const decayed = (theta: Tensor, weightDecay: number, learningRate: Operand): Tensor =>
  weightDecay === 0 ? theta : mul(theta, sub(1, mul(constant(weightDecay), learningRate)))

/** Scales the gradient down to the Euclidean norm `largest` if its norm is larger. */
export const clipGlobalNorm = (gradient: Tensor, largest: number): Tensor => {
  const norm = sqrt(sum(square(gradient)))
  return mul(gradient, minimum(div(constant(largest), add(norm, 1e-6)), 1))
}
