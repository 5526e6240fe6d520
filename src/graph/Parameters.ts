import type { Stream } from "../rng/Rng.ts"
import type { Initialiser } from "./initialisers.ts"
import { concat, flatten, reshape, slice } from "./ops.ts"
import { fail, sameShape, shapeText } from "./ops/core.ts"
import { type Shape, sizeOf, type Tensor } from "./Tensor.ts"

/**
 * Named parameters laid out in one flat vector: one state to keep, one chain of ops for the optimiser, one array to
 * save.
 *
 * @example
 * ```ts
 * const parameters = layout({ weight: { shape: [4, 2], init: orthogonal(1) }, bias: { shape: [2], init: zeros } })
 * const theta = state("theta", [parameters.size])
 * const { weight, bias } = parameters.tensorsOf(theta)
 * ```
 */
export interface Layout {
  readonly names: ReadonlyArray<string>
  readonly size: number
  /** Each parameter as a part of the flat vector: for one vector always the same tensors, so gradients find them. */
  readonly tensorsOf: (theta: Tensor) => Readonly<Record<string, Tensor>>
  /** One tensor a parameter, joined in the layout's order. */
  readonly flatten: (tensors: Readonly<Record<string, Tensor>>) => Tensor
  /** First values: each parameter draws from its own child of the stream, so adding one changes no other. */
  readonly initialise: (random: Stream) => Float32Array
  /** A number for each parameter, in all of its places. */
  readonly spread: (numberOf: (name: string) => number) => Float32Array
  readonly toNamed: (theta: Float32Array) => Readonly<Record<string, NamedArray>>
  /** Throws a GraphError where a parameter is missing or has another shape. */
  readonly fromNamed: (named: Readonly<Record<string, NamedArray>>) => Float32Array
}

export interface NamedArray {
  readonly shape: Shape
  readonly data: Float32Array
}

export interface Declaration {
  readonly shape: Shape
  readonly init: Initialiser
}

/** A gibibyte of them; what learns keeps several numbers for each. */
const mostWeights = 2 ** 28

export const layout = (declarations: Readonly<Record<string, Declaration>>): Layout => {
  const names = Object.keys(declarations)
  let size = 0
  const entries = names.map((name) => {
    const { shape, init } = declarations[name]
    const entry = { name, shape, init, offset: size, length: sizeOf(shape) }
    size += entry.length
    return entry
  })
  if (size > mostWeights) throw new RangeError(`${size} weights, of at most ${mostWeights}`)
  const parts = new WeakMap<Tensor, Readonly<Record<string, Tensor>>>()
  const partsOf = (theta: Tensor): Readonly<Record<string, Tensor>> =>
    Object.fromEntries(
      entries.map(({ name, shape, offset, length }) => [name, reshape(slice(theta, [offset], [length]), shape)]),
    )
  return {
    names,
    size,
    tensorsOf: (theta) => {
      if (!sameShape(theta.shape, [size])) fail("tensorsOf", `expected the flat vector [${size}]`, theta)
      const known = parts.get(theta) ?? partsOf(theta)
      parts.set(theta, known)
      return known
    },
    flatten: (tensors) =>
      concat(
        entries.map(({ name, shape }) => {
          const tensor = tensors[name]
          if (tensor === undefined) return fail("flatten", `there is no tensor for parameter "${name}"`)
          if (!sameShape(tensor.shape, shape)) fail("flatten", `"${name}" is ${shapeText(shape)}`, tensor)
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
      for (const { name, shape, offset } of entries) {
        const given = named[name]
        if (given === undefined) return fail("fromNamed", `there is no parameter "${name}"`)
        if (!sameShape(given.shape, shape)) {
          return fail(
            "fromNamed",
            `parameter "${name}" has shape ${shapeText(given.shape)}, expected ${shapeText(shape)}`,
          )
        }
        if (given.data.length !== sizeOf(shape))
          return fail("fromNamed", `parameter "${name}" has ${given.data.length} numbers for ${shapeText(shape)}`)
        theta.set(given.data, offset)
      }
      return theta
    },
  }
}
