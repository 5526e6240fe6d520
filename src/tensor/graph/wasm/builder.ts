/** Makes the nodes of the wasm compiler, and refs (strided views of a node's data) with another order or shape. */
import { type DType, type Shape, sizeOf, type TensorData } from "../Tensor.ts"
import { commonShape, lastTwoSwapped } from "../ops/core.ts"
import { isContiguous, type MapFn, type Node, type NodePhase, type Ref, restride, wholeOf, type Work } from "./ir.ts"

/** Makes nodes and lists them in topological order. */
export class Builder {
  readonly nodes: Array<Node> = []
  private readonly copies = new Map<string, Ref>()

  /** Adds a node. By default its phase (how often it changes) is the highest phase of its inputs. */
  node(work: Work, inputs: ReadonlyArray<Ref>, shape: Shape, dtype: DType, phase?: NodePhase): Ref {
    const changes =
      phase ?? inputs.reduce<NodePhase>((latest, input) => (input.node.phase > latest ? input.node.phase : latest), 0)
    const node: Node = { id: this.nodes.length, work, inputs, shape, dtype, phase: changes }
    this.nodes.push(node)
    return wholeOf(node)
  }

  map(fn: MapFn, inputs: ReadonlyArray<Ref>, shape: Shape, dtype: DType): Ref {
    const stretched = inputs.map((input) => broadcast(input, shape))
    return this.node({ kind: "map", fn }, stretched, shape, dtype)
  }

  reduce(fn: "sum" | "max" | "min", input: Ref, axes: ReadonlyArray<number>): Ref {
    const kept = input.shape.filter((_, axis) => !axes.includes(axis))
    if (axes.every((axis) => input.shape[axis] === 1)) return this.reshape(input, kept)
    return this.node({ kind: "reduce", fn, axes }, [input], kept, input.node.dtype)
  }

  /** Copies a matrix so that its rows, or its columns, are contiguous. */
  private packed(matrix: Ref, contiguous: "rows" | "columns"): Ref {
    return contiguous === "rows" ? this.copy(matrix) : swapLast(this.copy(swapLast(matrix)))
  }

  /** Makes a matrix product, of floats or with bytes as B: chooses the axis to vectorise over, and copies operands whose layout does not suit it. */
  matmul(a: Ref, b: Ref): Ref {
    const { along, packA, packB } = b.node.dtype === "i8" ? ofBytes : planMatmul(a, b)
    const left = packA ? this.packed(a, along === "rows" ? "columns" : "rows") : a
    const right = packB ? this.packed(b, along === "inner" ? "columns" : "rows") : b
    const [m, k] = a.shape.slice(-2)
    const n = b.shape[b.shape.length - 1]
    const batch = commonShape(a.shape.slice(0, -2), b.shape.slice(0, -2)) ?? []
    const sides = [broadcast(left, [...batch, m, k]), broadcast(right, [...batch, k, n])]
    return this.node({ kind: "matmul", along }, sides, [...batch, m, n], "f32")
  }

  /** Makes a constant. If all its numbers are equal, one is stored and broadcast. */
  constant(data: TensorData, shape: Shape, dtype: DType): Ref {
    let uniform = data.length > 1
    for (let i = 1; uniform && i < data.length; i++) uniform = Object.is(data[i], data[0])
    return uniform
      ? broadcast(this.node({ kind: "constant", data: data.slice(0, 1) }, [], [], dtype), shape)
      : this.node({ kind: "constant", data }, [], shape, dtype)
  }

  scalar(value: number): Ref {
    return this.constant(Float32Array.of(value), [], "f32")
  }

  /** Copies a ref to a node of its own; the same ref is copied only once. */
  copy(ref: Ref): Ref {
    const key = `${ref.node.id}@${ref.offset}:${ref.shape.join()}/${ref.strides.join()}`
    const existing = this.copies.get(key)
    if (existing !== undefined) return existing
    const copied = this.map("copy", [ref], ref.shape, ref.node.dtype)
    this.copies.set(key, copied)
    return copied
  }

  contiguous(ref: Ref): Ref {
    return isContiguous(ref) ? ref : this.copy(ref)
  }

  /** Returns a ref of another shape; copies the data if no strides can express it. */
  reshape(ref: Ref, shape: Shape): Ref {
    const strides = restride(ref.shape, ref.strides, shape)
    return strides === undefined ? wholeOf(this.copy(ref).node, shape) : { ...ref, shape, strides }
  }
}

export const broadcast = (ref: Ref, shape: Shape): Ref => {
  const missing = shape.length - ref.shape.length
  return {
    ...ref,
    shape,
    strides: shape.map((size, axis) => {
      const own = axis - missing
      return own < 0 || (ref.shape[own] === 1 && size !== 1) ? 0 : ref.strides[own]
    }),
  }
}

/** The plan of a product whose B has bytes: only products over columns convert them. */
const ofBytes = { along: "columns", packA: false, packB: false } as const

/** The number of elements from which on a matrix that never changes is not copied to transpose it. */
const largeMatrix = 1 << 16

/** The number of rows of A from which on a product that transposes B piece by piece takes no longer than one with a copy. */
const enoughRows = 4

/**
 * Chooses the cheapest way to vectorise a product; costs are in vector multiply-adds, roughly. Vectorising over columns
 * needs contiguous rows of B; over rows, contiguous columns of A; over the inner dimension, contiguous rows of A and columns
 * of B. Copies of data that never changes cost no time. But they stay in memory, so a large B is not copied if its columns
 * are contiguous and A has enough rows: the product then transposes it piece by piece.
 */
const planMatmul = (
  a: Ref,
  b: Ref,
): { readonly along: "columns" | "rows" | "inner"; readonly packA: boolean; readonly packB: boolean } => {
  const [m, k] = a.shape.slice(-2)
  const n = b.shape[b.shape.length - 1]
  const [rowsA, innerA] = a.strides.slice(-2)
  const [innerB, columnsB] = b.strides.slice(-2)
  const batch = (commonShape(a.shape.slice(0, -2), b.shape.slice(0, -2)) ?? []).reduce((size, next) => size * next, 1)
  /**
   * Returns how many matrices of an operand are copied per product of the batch; less than 1 if the operand is
   * broadcast.
   */
  const copies = ({ shape, strides }: Ref): number =>
    shape.slice(0, -2).reduce((size, next, axis) => (strides[axis] === 0 ? size : size * next), 1) / batch
  const unit = (stride: number, size: number): boolean => stride === 1 || size === 1
  const costA = (needed: boolean): number => (needed && a.node.phase > 0 ? 1.5 * m * k * copies(a) : 0)
  const costB = (needed: boolean): number => (needed && b.node.phase > 0 ? 1.5 * k * n * copies(b) : 0)
  const isLarge = sizeOf(b.node.shape) >= largeMatrix && m >= enoughRows
  const readsColumns = b.node.phase === 0 && innerB === 1 && isLarge
  const columns = { along: "columns", packA: false, packB: !unit(columnsB, n) && !readsColumns } as const
  const rows = { along: "rows", packA: !unit(rowsA, m), packB: false } as const
  const inner = { along: "inner", packA: !unit(innerA, k), packB: !unit(innerB, k) } as const
  const ranked = [
    { plan: columns, cost: m * Math.ceil(n / 4) * k + costB(columns.packB) },
    { plan: rows, cost: n * Math.ceil(m / 4) * k + m * n * 0.75 + costA(rows.packA) },
    { plan: inner, cost: m * n * Math.ceil(k / 4) + m * n * 2 + costA(inner.packA) + costB(inner.packB) },
  ]
  return ranked.reduce((best, entry) => (entry.cost < best.cost ? entry : best)).plan
}

export const transpose = (ref: Ref, permutation: ReadonlyArray<number>): Ref => ({
  ...ref,
  shape: permutation.map((axis) => ref.shape[axis]),
  strides: permutation.map((axis) => ref.strides[axis]),
})

export const swapLast = (ref: Ref): Ref => transpose(ref, lastTwoSwapped(ref.shape.length))

export const slice = (ref: Ref, starts: ReadonlyArray<number>, shape: Shape): Ref => ({
  ...ref,
  shape,
  offset: starts.reduce((offset, start, axis) => offset + start * ref.strides[axis], ref.offset),
})

export const insertAxis = (ref: Ref, axis: number): Ref => ({
  ...ref,
  shape: [...ref.shape.slice(0, axis), 1, ...ref.shape.slice(axis)],
  strides: [...ref.strides.slice(0, axis), 0, ...ref.strides.slice(axis)],
})
