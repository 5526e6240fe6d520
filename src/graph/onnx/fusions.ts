/** Finds groups of ops for which ONNX has one op, for `nodes.ts`. Each node less saves 0.25 µs and an array. */
import type { Tensor } from "../Tensor.ts"

/** Whether a tensor has one user and no name yet, so that its user's node can compute it too. */
export type Once = (tensor: Tensor) => boolean

/** Lists the tensors that need no node of their own, because the node of `tensor` computes them too. */
export const absorbedBy = (tensor: Tensor, once: Once): ReadonlyArray<Tensor> => {
  const part = biasedProduct(tensor, once)?.product ?? sumOfSquares(tensor, once)?.square
  return part === undefined ? [] : [part]
}

/** Recognises add(matmul(a, b), bias), which is one Gemm if the product has no other user; else returns undefined. */
export const biasedProduct = (tensor: Tensor, once: Once) => {
  if (tensor.op.kind !== "binary" || tensor.op.fn !== "add") return undefined
  for (const [product, bias] of [tensor.inputs, [...tensor.inputs].reverse()]) {
    const fits = product.op.kind === "matmul" && product.shape.length === 2 && once(product) && product !== bias
    const [, n] = product.shape
    const broadcasts =
      bias.shape.length === 0 || (bias.shape.length === 1 && (bias.shape[0] === n || bias.shape[0] === 1))
    if (fits && broadcasts && tensor.shape.length === 2) return { product, bias }
  }
  return undefined
}

/** Recognises sum(mul(x, x)), which is one ReduceSumSquare; otherwise returns undefined. */
export const sumOfSquares = (tensor: Tensor, once: Once) => {
  if (tensor.op.kind !== "reduce" || tensor.op.fn !== "sum") return undefined
  const [square] = tensor.inputs
  const isSquare =
    square.op.kind === "binary" && square.op.fn === "mul" && square.inputs[0] === square.inputs[1] && once(square)
  return isSquare && square.dtype === "f32" ? { square, x: square.inputs[0] } : undefined
}

/**
 * Finds slices that together cut a tensor into consecutive pieces along one axis: ONNX computes them with one Split.
 * Maps each such slice to all slices of that tensor, itself included, from first to last. Other slices have no entry.
 */
export const siblingSlices = (order: ReadonlyArray<Tensor>): ReadonlyMap<Tensor, ReadonlyArray<Tensor>> => {
  const slices = order.filter(({ op }) => op.kind === "slice")
  const groups = new Map<Tensor, ReadonlyArray<Tensor>>()
  for (const [source, siblings] of Map.groupBy(slices, ({ inputs }) => inputs[0])) {
    for (let axis = 0; axis < source.shape.length; axis++) {
      const along = siblings
        .filter(({ shape }) => shape.every((size, other) => (other === axis ? size > 0 : size === source.shape[other])))
        .sort((a, b) => startOf(a, axis) - startOf(b, axis))
      let end = 0
      const contiguous = along.every((slice) => {
        const begins = startOf(slice, axis) === end
        end += slice.shape[axis]
        return begins
      })
      if (along.length > 1 && contiguous && end === source.shape[axis])
        for (const slice of along) groups.set(slice, along)
    }
  }
  return groups
}

const startOf = ({ op }: Tensor, axis: number): number => (op.kind === "slice" ? op.starts[axis] : 0)
