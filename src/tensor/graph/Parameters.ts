/**
 * Lays out named parameters in one flat vector (`theta`), so that a program has one state to keep, one chain of ops for
 * the optimiser, and one array to save. Models, learners and algorithms call `layout`.
 *
 * @example
 * ```ts
 * const parameters = layout({
 *   weight: { shape: [4, 2], init: Initialisers.orthogonal(1) },
 *   bias: { shape: [2], init: Initialisers.zeros },
 * })
 * const theta = Graph.state("theta", [parameters.size])
 * const { weight, bias } = parameters.tensorsOf(theta)
 * ```
 */
import type { Stream } from "../../base/rng/Rng.ts"
import type { Initialiser } from "./initialisers.ts"
import { concat, flatten, reshape, slice } from "./ops.ts"
import { fail, sameShape, shapeText } from "./ops/core.ts"
import { type Shape, sizeOf, type Tensor } from "./Tensor.ts"

export interface ParameterLayout {
  readonly names: ReadonlyArray<string>
  readonly size: number
  /** Slices `theta` into one tensor for each parameter. Further calls with the same `theta` return the same tensors. */
  readonly tensorsOf: (theta: Tensor) => Readonly<Record<string, Tensor>>
  /** Joins one tensor for each parameter into a flat vector. */
  readonly flatten: (tensors: Readonly<Record<string, Tensor>>) => Tensor
  /** Draws all initial values. A parameter's random stream depends on its name, so others do not change its values. */
  readonly initialise: (random: Stream) => Float32Array
  /** Makes a flat vector with one number per parameter: all elements of the parameter `name` are `numberOf(name)`. */
  readonly spread: (numberOf: (name: string) => number) => Float32Array
  /** Cuts a flat vector into copies of the parameters, by name. */
  readonly toNamed: (theta: Float32Array) => Readonly<Record<string, NamedArray>>
  /** Joins named arrays into a flat vector. Throws a `GraphError` if a parameter is missing or has another shape. */
  readonly fromNamed: (named: Readonly<Record<string, NamedArray>>) => Float32Array
}

export interface NamedArray {
  readonly shape: Shape
  readonly data: Float32Array
}

/** Weights by parameter name, each an array with its shape. */
export type NamedTensors = Readonly<Record<string, NamedArray>>

/** Arrays by name, each with its shape, of all the number types that a checkpoint can hold. */
export type NamedArrays = Readonly<
  Record<string, Pick<NamedArray, "shape"> & { readonly data: Float32Array | Float64Array | Int32Array | Uint8Array }>
>

export interface Declaration {
  readonly shape: Shape
  readonly init: Initialiser
  /** The type of the parameter's state; `f32` by default. One of `i8` is not trained, and its initial values are zeros. */
  readonly dtype?: "i8"
}

/** The largest number of weights of a layout, which take one gibibyte. An optimiser keeps more numbers per weight. */
const mostWeights = 2 ** 28

export const layout = (declarations: Readonly<Record<string, Declaration>>): ParameterLayout => {
  const names = Object.keys(declarations)
  let size = 0
  const entries = names.map((name) => {
    const { shape, init } = declarations[name]
    const entry = { name, shape, init, offset: size, length: sizeOf(shape) }
    size += entry.length
    return entry
  })
  if (size > mostWeights) throw new RangeError(`${size} weights; expected at most ${mostWeights}`)
  const slicesByTheta = new WeakMap<Tensor, Readonly<Record<string, Tensor>>>()
  const slicesOf = (theta: Tensor): Readonly<Record<string, Tensor>> =>
    Object.fromEntries(
      entries.map(({ name, shape, offset, length }) => [name, reshape(slice(theta, [offset], [length]), shape)]),
    )
  return {
    names,
    size,
    tensorsOf: (theta) => {
      if (!sameShape(theta.shape, [size])) fail("tensorsOf", `expected the flat vector [${size}]`, theta)
      const slices = slicesByTheta.get(theta) ?? slicesOf(theta)
      slicesByTheta.set(theta, slices)
      return slices
    },
    flatten: (tensors) =>
      concat(
        entries.map(({ name, shape }) => {
          const tensor = tensors[name] ?? fail("flatten", `parameter "${name}": its tensor is missing`)
          if (!sameShape(tensor.shape, shape))
            fail("flatten", `parameter "${name}": expected shape ${shapeText(shape)}`, tensor)
          return flatten(tensor)
        }),
      ),
    initialise: (random) => {
      const theta = new Float32Array(size)
      for (const { name, shape, init, offset } of entries) theta.set(init(random.child(name), shape), offset)
      return theta
    },
    spread: (numberOf) => {
      const vector = new Float32Array(size)
      for (const { name, offset, length } of entries) vector.fill(numberOf(name), offset, offset + length)
      return vector
    },
    toNamed: (theta) =>
      Object.fromEntries(
        entries.map(({ name, shape, offset, length }) => [name, { shape, data: theta.slice(offset, offset + length) }]),
      ),
    fromNamed: (named) => {
      const theta = new Float32Array(size)
      for (const { name, shape, offset, length } of entries) {
        const parameter = named[name] ?? fail("fromNamed", `parameter "${name}" is missing`)
        const isShape = sameShape(parameter.shape, shape)
        if (!isShape || parameter.data.length !== length) {
          const actual = isShape ? `${parameter.data.length} numbers` : shapeText(parameter.shape)
          return fail("fromNamed", `parameter "${name}": expected shape ${shapeText(shape)}, found ${actual}`)
        }
        theta.set(parameter.data, offset)
      }
      return theta
    },
  }
}
