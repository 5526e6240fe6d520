/**
 * What the compiler works on: a smaller vocabulary than the graph's. A `Node` computes an array and keeps it row-major;
 * every movement of data that needs no copy (reshape, transpose, slice, broadcast) is only a `Ref`: a node read with
 * strides.
 */
import type { BinaryFn, CompareFn, DType, ReduceFn, Shape, UnaryFn } from "../Tensor.ts"
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

export interface Piece {
  readonly offset: number
  readonly strides: ReadonlyArray<number>
}

export type Work =
  | { readonly kind: "leaf"; readonly source: "input" | "state"; readonly name: string }
  | { readonly kind: "constant"; readonly data: Float32Array | Int32Array | Uint8Array }
  /** Element by element; inputs are broadcast to the node's shape by zero strides. */
  | { readonly kind: "map"; readonly fn: MapFn }
  /** The input without `axes`. */
  | { readonly kind: "reduce"; readonly fn: Exclude<ReduceFn, "mean">; readonly axes: ReadonlyArray<number> }
  /**
   * [...batch, m, k] × [...batch, k, n], both with all of the batch's axes, vectorised over the columns n, the rows m or
   * the inner dimension k.
   */
  | { readonly kind: "matmul"; readonly along: "columns" | "rows" | "inner" }
  | { readonly kind: "scan"; readonly axis: number; readonly exclusive: boolean; readonly reverse: boolean }
  /** Data as [rows, width] and indices as one list, both contiguous. */
  | { readonly kind: "gather"; readonly width: number }
  /** Indices as one list and updates as [count, width], both contiguous. */
  | { readonly kind: "scatterAdd"; readonly width: number }
  /** Inputs laid side by side (or added, in order) into an array that starts as `fill`, if that is given. */
  | {
      readonly kind: "assemble"
      readonly pieces: ReadonlyArray<Piece>
      readonly fill: number | undefined
      readonly accumulate: boolean
    }

export interface Node {
  readonly id: number
  readonly work: Work
  readonly inputs: ReadonlyArray<Ref>
  readonly shape: Shape
  readonly dtype: DType
  /** How often it changes: see `Phase`. */
  readonly phase: Phase
}

/**
 * 0: only when a state is written; 1: once a run; 2: in each minibatch, or once a run where there are none. A node is as
 * changeable as its inputs.
 */
export type Phase = 0 | 1 | 2

export interface Ref {
  readonly node: Node
  readonly shape: Shape
  /** Both in elements. */
  readonly strides: ReadonlyArray<number>
  readonly offset: number
}

export const bytesPer = (dtype: DType): number => (dtype === "bool" ? 1 : 4)

export const wholeOf = (node: Node, shape: Shape = node.shape): Ref => ({
  node,
  shape,
  strides: stridesOf(shape),
  offset: 0,
})

/** Whether the elements lie one after another, in order. */
export const isContiguous = (ref: Ref): boolean => {
  let expected = 1
  for (let axis = ref.shape.length - 1; axis >= 0; axis--) {
    if (ref.shape[axis] === 1) continue
    if (ref.strides[axis] !== expected) return false
    expected *= ref.shape[axis]
  }
  return true
}

/** Whether the ref reads all of its node, each element once, in order. */
export const isWhole = (ref: Ref): boolean =>
  ref.offset === 0 && isContiguous(ref) && sizeOf(ref.shape) === sizeOf(ref.node.shape)

/**
 * The strides that read the same elements in the same order as `strides` over `shape`, when the elements are counted
 * by `dims`; undefined where no strides do.
 */
export const restride = (
  shape: Shape,
  strides: ReadonlyArray<number>,
  dims: ReadonlyArray<number>,
): ReadonlyArray<number> | undefined => {
  const result = new Array<number>(dims.length).fill(0)
  let axis = shape.length - 1
  let left = 1 // how much of the axis is still to be counted
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
    // The dimension spans several axes, which must follow each other in memory.
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

/** Dimensions that both factorings of one size divide into; undefined where there are none. */
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
