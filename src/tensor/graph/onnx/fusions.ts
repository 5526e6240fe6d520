/**
 * Finds groups of ops for which ONNX has a single op, for `nodes.ts`. Each node that is saved saves 0.25 µs and an
 * array.
 */
import { sameShape } from "../ops/core.ts"
import type { Tensor } from "../Tensor.ts"

/**
 * Returns how many users of a tensor could compute it in their own nodes; 0 if the tensor already has a name. If there
 * is just one, the tensor needs no node of its own if that user's node computes it.
 */
export type Uses = (tensor: Tensor) => number

/**
 * Lists the tensors that need no node of their own, because the node of `tensor` computes them too. `runtimeOps` says
 * whether it can be an op that only ONNX Runtime has.
 */
export const absorbedBy = (tensor: Tensor, uses: Uses, runtimeOps: boolean): ReadonlyArray<Tensor> => {
  const part = biasedProduct(tensor, uses)?.product ?? sumOfSquares(tensor, uses)?.square
  if (part !== undefined) return [part]
  return (runtimeOps ? rotation(tensor, uses)?.parts : undefined) ?? []
}

/**
 * Recognises add(matmul(a, b), c), which is one Gemm if the product has no other user; else returns undefined. The Gemm
 * adds c, a bias or a whole matrix, while it writes its result, so that a sum of products needs no Add. If c is a product
 * too, the one with shorter sums adds the other, because it passes over its result fewer times.
 */
export const biasedProduct = (tensor: Tensor, uses: Uses) => {
  if (tensor.op.kind !== "binary" || tensor.op.fn !== "add" || tensor.shape.length !== 2) return undefined
  const [a, b] = tensor.inputs
  const both = [
    { product: a, bias: b },
    { product: b, bias: a },
  ]
  const fitting = both.filter(({ product, bias }) => {
    const [, n] = product.shape
    const broadcasts =
      bias.shape.length === 0 ||
      (bias.shape.length === 1 && (bias.shape[0] === n || bias.shape[0] === 1)) ||
      sameShape(bias.shape, product.shape)
    return lengthOfSums(product) > 0 && uses(product) === 1 && product !== bias && broadcasts
  })
  return fitting.sort((first, second) => lengthOfSums(first.product) - lengthOfSums(second.product)).at(0)
}

/** Returns how many products of numbers each element of a product of matrices sums; 0 for other tensors. */
const lengthOfSums = ({ op, inputs: [a], shape }: Tensor): number =>
  op.kind === "matmul" && shape.length === 2 ? a.shape[op.transposeA ? 0 : 1] : 0

/** Recognises sum(mul(x, x)), which is one ReduceSumSquare; otherwise returns undefined. */
export const sumOfSquares = (tensor: Tensor, uses: Uses) => {
  if (tensor.op.kind !== "reduce" || tensor.op.fn !== "sum") return undefined
  const [square] = tensor.inputs
  const isSquare =
    square.op.kind === "binary" && square.op.fn === "mul" && square.inputs[0] === square.inputs[1] && uses(square) === 1
  return isSquare && square.dtype === "f32" ? { square, x: square.inputs[0] } : undefined
}

/** A rotation of the pairs (i, i + half) of each head, as in rotary position embeddings. */
export interface Rotation {
  /** [...tokens, heads, 2 half] */
  readonly x: Tensor
  /** [...tokens, 1, half] */
  readonly cos: Tensor
  readonly sin: Tensor
  /** Whether the rotation is by the negative angles, as in the gradient of a rotation. */
  readonly isBack: boolean
  /** The tensors that only the rotation uses. */
  readonly parts: ReadonlyArray<Tensor>
}

/**
 * Recognises concat(a cos − b sin, b cos + a sin), where a and b are the halves of x along its last axis, and the same with
 * −sin; otherwise returns undefined. ONNX Runtime has one op for it.
 */
export const rotation = ({ op, inputs, shape }: Tensor, uses: Uses): Rotation | undefined => {
  const axis = shape.length - 1
  if (op.kind !== "concat" || op.axis !== axis || inputs.length !== 2 || axis < 2) return undefined
  const [first, second] = inputs.map((sum, half) => rotatedHalf(sum, half, uses))
  if (first === undefined || second === undefined) return undefined
  const { x, cos, sin } = first
  const isRotation =
    first.isDifference !== second.isDifference &&
    second.x === x &&
    second.cos === cos &&
    second.sin === sin &&
    [cos, sin].every((factor) => sameShape(factor.shape, [...shape.slice(0, -2), 1, shape[axis] / 2]))
  const products = inputs.flatMap((sum) => sum.inputs)
  const halves = products.flatMap((product) => product.inputs).filter((part) => isHalfOf(part, x) && uses(part) === 2)
  const parts = [...inputs, ...products, ...halves]
  return isRotation ? { x, cos, sin, isBack: second.isDifference, parts } : undefined
}

/** Recognises one half of a rotation: this half of x times its cosines, plus or minus the other half times its sines. */
const rotatedHalf = (sum: Tensor, half: number, uses: Uses) => {
  const { op, inputs } = sum
  if (op.kind !== "binary" || (op.fn !== "add" && op.fn !== "sub")) return undefined
  const isDifference = op.fn === "sub"
  const terms = inputs.map(scaledHalf)
  const own = terms.find((term) => term?.half === half)
  const other = terms.find((term) => term?.half === 1 - half)
  const isWhole = own !== undefined && other?.x === own.x && !(isDifference && terms[0] !== own)
  const isOnlyHere = [sum, ...inputs].every((part) => uses(part) === 1)
  return isWhole && isOnlyHere ? { x: own.x, cos: own.factor, sin: other.factor, isDifference } : undefined
}

/** Recognises the product of a half of x along the last axis with a factor. */
const scaledHalf = (product: Tensor) => {
  for (const [part, factor] of factorsOf(product)) {
    const [x] = part.inputs
    if (part.op.kind === "slice" && isHalfOf(part, x))
      return { x, factor, half: part.op.starts[x.shape.length - 1] === 0 ? 0 : 1 }
  }
  return undefined
}

/** Tells whether a tensor is the first or the second half of x along its last axis. */
const isHalfOf = ({ op, inputs, shape }: Tensor, x: Tensor): boolean => {
  const axis = x.shape.length - 1
  const size = x.shape[axis] / 2
  const isSlice = op.kind === "slice" && inputs[0] === x && axis >= 0 && sameShape(shape, x.shape.with(axis, size))
  return isSlice && op.starts[axis] % size === 0
}

/** A normalisation of the last axis to a root mean square of 1, times a scale. */
export interface RmsNorm {
  readonly x: Tensor
  readonly scale: Tensor
  readonly epsilon: number
  /** x · scale / √(mean(x²) + ε) */
  readonly result: Tensor
  /** √(mean(x²) + ε) */
  readonly root: Tensor
  /** 1 / √(mean(x²) + ε) */
  readonly inverse: Tensor
  /** Whether other nodes, such as the gradient's, read the inverse and the root. */
  readonly isInverseRead: boolean
  readonly isRootRead: boolean
  /** The tensors that need no node of their own. */
  readonly parts: ReadonlyArray<Tensor>
}

/**
 * Finds normalisations to a root mean square of 1, for which ONNX Runtime has one op, and maps them by their tensor
 * `inverse`, which comes before every node that reads a result of the op.
 */
export const rmsNorms = (order: ReadonlyArray<Tensor>, uses: Uses): ReadonlyMap<Tensor, RmsNorm> => {
  const norms = new Map<Tensor, RmsNorm>()
  for (const tensor of order) {
    const norm = rmsNorm(tensor, uses)
    if (norm !== undefined && !norms.has(norm.inverse)) norms.set(norm.inverse, norm)
  }
  return norms
}

const rmsNorm = (result: Tensor, uses: Uses): RmsNorm | undefined => {
  for (const [normal, scale] of factorsOf(result)) {
    // Inputs and states already have names.
    const isNamed = scale.op.kind === "state" || scale.op.kind === "input"
    const isScale = isNamed && scale.shape.length === 1 && scale.shape[0] === normal.shape.at(-1)
    if (!isScale || uses(normal) !== 1) continue
    for (const [x, inverse] of factorsOf(normal)) {
      const found = uses(inverse) > 0 ? inverseRoot(inverse) : undefined
      if (found?.x !== x || ![found.shifted, found.mean, found.square].every((part) => uses(part) === 1)) continue
      const { epsilon, root, shifted, mean, square } = found
      const isRootRead = uses(root) > 1
      const isInverseRead = isRootRead || uses(inverse) > 1
      const parts = [normal, root, shifted, mean, square]
      return { x, scale, epsilon, result, root, inverse, isInverseRead, isRootRead, parts }
    }
  }
  return undefined
}

/** Recognises 1 / √(mean(x²) + ε) over the last axis. */
const inverseRoot = (inverse: Tensor) => {
  const [root] = inverse.inputs
  if (inverse.op.kind !== "unary" || inverse.op.fn !== "reciprocal") return undefined
  if (root.op.kind !== "unary" || root.op.fn !== "sqrt") return undefined
  const [shifted] = root.inputs
  if (shifted.op.kind !== "binary" || shifted.op.fn !== "add") return undefined
  for (const [mean, added] of [shifted.inputs, [...shifted.inputs].reverse()]) {
    const epsilon = added.op.kind === "constant" && added.op.data.length === 1 ? added.op.data[0] : undefined
    if (epsilon === undefined || mean.op.kind !== "reduce" || mean.op.fn !== "mean" || !mean.op.keepDims) continue
    const [square] = mean.inputs
    const isOverLast = mean.op.axes.join() === `${square.shape.length - 1}`
    for (const [x, same] of factorsOf(square))
      if (isOverLast && x === same) return { x, epsilon, root, shifted, mean, square }
  }
  return undefined
}

/** Returns both orders of the factors of a product; none for another tensor. */
const factorsOf = ({ op, inputs: [a, b] }: Tensor): ReadonlyArray<readonly [Tensor, Tensor]> => {
  if (op.kind !== "binary" || op.fn !== "mul") return []
  const both = [a, b] as const
  return [both, [b, a]]
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
