/** Defines how the initial values of parameters are drawn, such as Xavier, He and orthogonal initialisation. */
import type { Stream } from "../../base/rng/Rng.ts"
import { type Shape, sizeOf } from "./Tensor.ts"

/** Draws the initial values of a parameter from a random stream. */
export type Initialiser = (random: Stream, shape: Shape) => Float32Array

export const constant =
  (value: number): Initialiser =>
  (_, shape) =>
    new Float32Array(sizeOf(shape)).fill(value)

export const zeros: Initialiser = constant(0)

export const normal =
  (deviation: number): Initialiser =>
  (random, shape) => {
    const out = new Float32Array(sizeOf(shape))
    random.fillNormal(out)
    return out.map((value) => value * deviation)
  }

export const uniform =
  (bound: number): Initialiser =>
  (random, shape) =>
    new Float32Array(sizeOf(shape)).map(() => random.between(-bound, bound))

/** Returns the number of inputs of one unit, for a matrix [inputs, outputs] or a convolution kernel [O, C, kh, kw]. */
const fanIn = (shape: Shape): number => (shape.length === 4 ? sizeOf(shape.slice(1)) : sizeOf(shape.slice(0, -1)))
const fanOut = (shape: Shape): number => (shape.length === 4 ? shape[0] * shape[2] * shape[3] : shape[shape.length - 1])

/**
 * Replaces the initial values of linear layers by PyTorch's: weights and biases are uniform within ±1/√inputs. Other
 * parameters keep theirs.
 */
export const asPytorch = <D extends { readonly shape: Shape; readonly init: Initialiser }>(
  declarations: Readonly<Record<string, D>>,
): Readonly<Record<string, D>> =>
  Object.fromEntries(
    Object.entries(declarations).map(([name, declaration]) => {
      const weight = declarations[name.replace(/\.bias$/, ".weight")]
      return /\.(weight|bias)$/.test(name) && weight !== undefined
        ? [name, { ...declaration, init: uniform(1 / Math.sqrt(fanIn(weight.shape))) }]
        : [name, declaration]
    }),
  )

/** Draws uniformly within ±√(6 / (inputs + outputs)) (Glorot and Bengio 2010). */
export const xavier: Initialiser = (random, shape) =>
  uniform(Math.sqrt(6 / (fanIn(shape) + fanOut(shape))))(random, shape)

/** Draws from a normal distribution with variance 2 / inputs (He et al. 2015). */
export const he: Initialiser = (random, shape) => normal(Math.sqrt(2 / fanIn(shape)))(random, shape)

/** Draws from a normal distribution with variance 1 / inputs (LeCun et al. 1998). */
export const lecun: Initialiser = (random, shape) => normal(Math.sqrt(1 / fanIn(shape)))(random, shape)

/**
 * Draws a matrix with orthonormal rows or columns, whichever are fewer, and multiplies it by `gain` (Saxe et al. 2013). A
 * convolution kernel [O, C, kh, kw] counts as a matrix of O rows.
 */
export const orthogonal =
  (gain: number): Initialiser =>
  (random, shape) => {
    const rows = shape.length === 4 ? shape[0] : sizeOf(shape.slice(0, -1))
    const columns = sizeOf(shape) / rows
    // Orthogonalise along the shorter side: `count` vectors of `length` numbers.
    const [count, length] = rows < columns ? [rows, columns] : [columns, rows]
    const vectors = Array.from({ length: count }, () => new Float64Array(length))
    for (const vector of vectors) random.fillNormal(vector)
    vectors.forEach((vector, index) => {
      // Subtract the parts along all earlier vectors; a second pass removes the rounding errors of the first.
      for (let pass = 0; pass < 2; pass++)
        for (let other = 0; other < index; other++) subtractProjection(vector, vectors[other])
      const norm = Math.sqrt(dot(vector, vector))
      for (let at = 0; at < length; at++) vector[at] /= norm
    })
    const out = new Float32Array(rows * columns)
    vectors.forEach((vector, index) => {
      const [first, step] = rows < columns ? [index * columns, 1] : [index, columns]
      for (let at = 0; at < length; at++) out[first + at * step] = gain * vector[at]
    })
    return out
  }

const dot = (a: Float64Array, b: Float64Array): number => {
  let total = 0
  for (let at = 0; at < a.length; at++) total += a[at] * b[at]
  return total
}

const subtractProjection = (vector: Float64Array, unit: Float64Array): void => {
  const along = dot(vector, unit)
  for (let at = 0; at < vector.length; at++) vector[at] -= along * unit[at]
}
