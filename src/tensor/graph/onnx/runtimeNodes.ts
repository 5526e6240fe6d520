/**
 * Translates groups of tensors to ops that only ONNX Runtime has, for `nodes.ts`, if the scope's `runtimeOps` is true.
 */
import { sizeOf, type Tensor } from "../Tensor.ts"
import type { RmsNorm, Rotation } from "./fusions.ts"
import { type Attribute, runtimeDomain } from "./model.ts"
import { int64, nameOf, node, type Scope } from "./scope.ts"

/** Adds a node with an op of ONNX Runtime's own domain. */
const runtimeNode = (
  scope: Scope,
  op: string,
  inputs: ReadonlyArray<string>,
  attributes: Readonly<Record<string, Attribute>>,
): string => {
  const output = scope.fresh(op.toLowerCase())
  scope.graph.nodes.push({ op, domain: runtimeDomain, inputs, outputs: [output], attributes })
  return output
}

/**
 * Multiplies matrices, of which each may be transposed. This op reads a transposed side in place, while a separate
 * transpose would copy it.
 */
export const transposedProduct = (
  scope: Scope,
  [a, b]: ReadonlyArray<string>,
  { transposeA, transposeB }: { readonly transposeA: boolean; readonly transposeB: boolean },
): string => runtimeNode(scope, "FusedMatMul", [a, b], { transA: transposeA ? 1 : 0, transB: transposeB ? 1 : 0 })

/** The number of multiply-adds from which on one more transpose costs comparatively little. */
const manyMultiplyAdds = 1 << 18

/**
 * Tells whether a product aᵀ b takes less time as the transpose of bᵀ a: ONNX Runtime copies a transposed first input, so
 * the first input should be the narrower one. The gradients of an adapter's matrices are such products.
 */
export const isQuickerTransposed = ({ op, inputs: [a], shape: [m, n] }: Tensor): boolean =>
  op.kind === "matmul" && op.transposeA && 4 * n <= m && m * n * a.shape[0] >= manyMultiplyAdds

/**
 * Computes aᵀ b as the transpose of bᵀ a. It avoids Gemm, because ONNX Runtime would merge the transpose back into a
 * Gemm.
 */
export const narrowProduct = (scope: Scope, { op, inputs: [a, b] }: Tensor): string => {
  const isTransposed = op.kind === "matmul" && op.transposeB
  const sides = [nameOf(scope, b), nameOf(scope, a)]
  const product = transposedProduct(scope, sides, { transposeA: !isTransposed, transposeB: false })
  return node(scope, "Transpose", [product], { perm: [1, 0] })
}

/** Rotates the pairs of each head by ONNX Runtime's op, which takes a sixth of the time of the nodes it replaces. */
export const rotary = (scope: Scope, { x, cos, sin, isBack }: Rotation): string => {
  const [heads, size] = x.shape.slice(-2)
  const tokens = sizeOf(x.shape) / (heads * size)
  // The op looks up cosines and sines by a token's position; we pass a row for each token, so its position is its
  // index.
  const places = int64(
    scope,
    Array.from({ length: tokens }, (_, place) => place),
    [1, tokens],
  )
  const table = (angles: string): string => node(scope, "Reshape", [angles, int64(scope, [tokens, size / 2])])
  const sines = isBack ? node(scope, "Neg", [nameOf(scope, sin)]) : nameOf(scope, sin)
  const rotated = runtimeNode(
    scope,
    "RotaryEmbedding",
    [
      node(scope, "Reshape", [nameOf(scope, x), int64(scope, [1, tokens, heads * size])]),
      places,
      table(nameOf(scope, cos)),
      table(sines),
    ],
    { num_heads: heads },
  )
  return node(scope, "Reshape", [rotated, int64(scope, x.shape)])
}

/** Normalises to a root mean square of 1 with ONNX Runtime's op, and names the results that other nodes read. */
export const rmsNormalise = (scope: Scope, norm: RmsNorm): void => {
  const { graph, names, fresh } = scope
  const [result, inverse] = [fresh("normal"), fresh("inverse")]
  graph.nodes.push({
    // ONNX Runtime implements this op in the standard domain.
    op: "SimplifiedLayerNormalization",
    inputs: [nameOf(scope, norm.x), nameOf(scope, norm.scale)],
    outputs: norm.isInverseRead ? [result, inverse] : [result],
    attributes: { axis: -1, epsilon: { float: norm.epsilon } },
  })
  names.set(norm.result, result)
  if (norm.isInverseRead) names.set(norm.inverse, inverse)
  if (norm.isRootRead) names.set(norm.root, node(scope, "Reciprocal", [inverse]))
}
