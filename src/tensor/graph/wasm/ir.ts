/**
 * Defines the compiler's intermediate representation, which has fewer kinds of ops than the graph. A `Node` computes an
 * array and stores it row-major. A movement of data that needs no copy (reshape, transpose, slice, broadcast) is a
 * `Ref`: a node that is read with other strides.
 */
import type { BinaryFn, CompareFn, DType, ReduceFn, Shape, TensorData, UnaryFn } from "../Tensor.ts"
import { sizeOf, stridesOf } from "../Tensor.ts"

export type MapFn =
  | UnaryFn
  | BinaryFn
  | CompareFn
  | "and"
  | "or"
  | "not"
  | "where"
  | "copy"
  | "toInt"
  | "toFloat"
  | "toBool"
  | { readonly clip: readonly [number, number] }

/**
 * The position of an input in an array that is assembled from pieces: offset and strides, in elements of that array.
 */
interface Piece {
  readonly offset: number
  readonly strides: ReadonlyArray<number>
}

export type Work =
  | { readonly kind: "leaf"; readonly source: "input" | "state"; readonly name: string }
  | { readonly kind: "constant"; readonly data: TensorData }
  /** An elementwise op. Inputs are broadcast to the node's shape by strides of zero. */
  | { readonly kind: "map"; readonly fn: MapFn }
  /** A reduction of the input over `axes`, which the output lacks. */
  | { readonly kind: "reduce"; readonly fn: Exclude<ReduceFn, "mean">; readonly axes: ReadonlyArray<number> }
  /**
   * The product [...batch, m, k] × [...batch, k, n], both with the same batch axes, vectorised over the columns n, the
   * rows m or the inner dimension k.
   */
  | { readonly kind: "matmul"; readonly along: "columns" | "rows" | "inner" }
  /** Cumulative sums along an axis. */
  | { readonly kind: "scan"; readonly axis: number; readonly exclusive: boolean; readonly reverse: boolean }
  /** Reads rows by index, from data [rows, width] and a vector of indices, both contiguous. */
  | { readonly kind: "gather"; readonly width: number }
  /** The gradient of gather, from a vector of indices and updates [count, width], both contiguous. */
  | { readonly kind: "scatterAdd"; readonly width: number }
  /** Copies each input to its piece of an array, or adds it there (`accumulate`). First, `fill` sets the whole array. */
  | {
      readonly kind: "assemble"
      readonly pieces: ReadonlyArray<Piece>
      readonly fill: number | undefined
      readonly accumulate: boolean
    }

export type WorkOf<Kind extends Work["kind"]> = Extract<Work, { readonly kind: Kind }>

export interface Node {
  readonly id: number
  readonly work: Work
  readonly inputs: ReadonlyArray<Ref>
  readonly shape: Shape
  readonly dtype: DType
  /** How often the node's value changes. */
  readonly phase: NodePhase
}

/**
 * Says how often a value changes. 0 means only when a state is written; 1 means in each run; 2 means in each minibatch, or in
 * each run of a program without minibatches. A node has the highest phase of its inputs.
 */
export type NodePhase = 0 | 1 | 2

export interface Ref {
  readonly node: Node
  readonly shape: Shape
  /** The stride of each dimension. Strides and `offset` are in elements. */
  readonly strides: ReadonlyArray<number>
  readonly offset: number
}

export const bytesPer = (dtype: DType): number => (dtype === "bool" || dtype === "i8" ? 1 : 4)

export const wholeOf = (node: Node, shape: Shape = node.shape): Ref => ({
  node,
  shape,
  strides: stridesOf(shape),
  offset: 0,
})

/** Tells whether the elements are contiguous in memory, in order. */
export const isContiguous = (ref: Ref): boolean => {
  let expected = 1
  for (let axis = ref.shape.length - 1; axis >= 0; axis--) {
    if (ref.shape[axis] === 1) continue
    if (ref.strides[axis] !== expected) return false
    expected *= ref.shape[axis]
  }
  return true
}

/** Tells whether the ref reads its whole node, each element once, in order. */
export const isWhole = (ref: Ref): boolean =>
  ref.offset === 0 && isContiguous(ref) && sizeOf(ref.shape) === sizeOf(ref.node.shape)

/**
 * Computes strides over `dims` that read the same elements in the same order as `strides` over `shape`; undefined if there
 * are none.
 */
export const restride = (
  shape: Shape,
  strides: ReadonlyArray<number>,
  dims: ReadonlyArray<number>,
): ReadonlyArray<number> | undefined => {
  const result = new Array<number>(dims.length).fill(0)
  let axis = shape.length - 1
  let left = 1 // the size of the part of the axis that no dimension covers yet
  let stride = 0
  const next = (): void => {
    while (axis >= 0 && shape[axis] === 1) axis--
    if (axis < 0) return
    left = shape[axis]
    stride = strides[axis]
    axis--
  }
  next()
  for (let d = dims.length - 1; d >= 0; d--) {
    let need = dims[d]
    if (need === 1) continue
    if (left === 1) next()
    result[d] = stride
    if (left % need === 0) {
      left /= need
      stride *= need
      continue
    }
    // The dimension spans several axes, which must be contiguous to each other in memory.
    while (need > 1) {
      if (need % left !== 0) return undefined
      need /= left
      const following = stride * left
      left = 1
      if (need === 1) break
      next()
      if (stride !== following) return undefined
      if (left % need === 0) {
        left /= need
        stride *= need
        need = 1
      }
    }
  }
  return result
}

/**
 * Divides the dimensions of two shapes of equal size into smaller ones that fit both, so that both have strides over
 * them: [6, 4] and [2, 12] give [2, 3, 4]. Returns undefined if there are none.
 */
export const commonDims = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): ReadonlyArray<number> | undefined => {
  const cuts = new Set<number>()
  for (const dims of [a, b]) {
    let product = 1
    for (let d = dims.length - 1; d >= 0; d--) {
      product *= dims[d]
      cuts.add(product)
    }
  }
  cuts.delete(1)
  const ascending = [...cuts].sort((x, y) => x - y)
  const result: Array<number> = []
  let previous = 1
  for (const cut of ascending) {
    if (cut % previous !== 0) return undefined
    result.unshift(cut / previous)
    previous = cut
  }
  return result
}
