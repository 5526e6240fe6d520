/**
 * Defines the tensors and ops of graphs. A tensor is an expression: an op, the tensors that it reads, a static shape
 * and a dtype.
 *
 * A backend (`onnx`, `wasm`, `reference`) must implement all ops of this file and nothing else. Layers, distributions
 * and optimisers are composed of these ops, in files of their own. This file has types and functions on shapes; it
 * computes no values.
 */

/**
 * The types of numbers. Only states are `i8`: weights that no program changes, from −128 to 127. A `cast` makes `f32` of
 * them; a product with a matrix that is such a cast reads the bytes themselves, so the cast takes no memory.
 */
export type DType = "f32" | "i32" | "i8" | "bool"
export type Shape = ReadonlyArray<number>

/** The numbers of a tensor: f32 in a Float32Array, i32 in an Int32Array, i8 in an Int8Array, bool as 0 and 1 in a Uint8Array. */
export type TensorData = Float32Array | Int32Array | Int8Array | Uint8Array

interface ArrayType {
  new (length: number): TensorData
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): TensorData
  readonly from: (numbers: ArrayLike<number>) => TensorData
}

/** The classes of the arrays that hold the numbers of a tensor. */
export const arrayTypes: Readonly<Record<DType, ArrayType>> = {
  f32: Float32Array,
  i32: Int32Array,
  i8: Int8Array,
  bool: Uint8Array,
}

/** The names of functions of one element, from f32 to f32. */
export type UnaryFn =
  | "neg"
  | "abs"
  | "sign"
  | "exp"
  | "log"
  | "sqrt"
  | "reciprocal"
  | "sin"
  | "cos"
  | "tanh"
  | "sigmoid"
  | "relu"
  | "softplus"
  | "floor"

/**
 * The names of functions of two elements. Both inputs have the same dtype: f32, or i32 for add, sub, mul, min and max.
 * They broadcast as in NumPy.
 */
export type BinaryFn = "add" | "sub" | "mul" | "div" | "pow" | "min" | "max"

/**
 * The names of comparisons. Both inputs are f32 or both are i32, and the output is bool. They broadcast as in NumPy.
 */
export type CompareFn = "less" | "lessEqual" | "greater" | "greaterEqual" | "equal" | "notEqual"

export type ReduceFn = "sum" | "mean" | "max" | "min"

export interface Conv2dAttributes {
  readonly strides: readonly [number, number]
  /** The numbers of zero rows or columns that are added at the top, left, bottom and right. */
  readonly padding: readonly [number, number, number, number]
}

export type Op =
  // Leaves: ops without inputs
  | { readonly kind: "input"; readonly name: string }
  | { readonly kind: "state"; readonly name: string }
  | { readonly kind: "constant"; readonly data: TensorData }
  // Element by element
  | { readonly kind: "unary"; readonly fn: UnaryFn }
  | { readonly kind: "binary"; readonly fn: BinaryFn }
  | { readonly kind: "compare"; readonly fn: CompareFn }
  | { readonly kind: "logical"; readonly fn: "and" | "or" }
  | { readonly kind: "not" }
  /** Selects by a condition. Inputs: condition (bool), then, otherwise; all three broadcast. */
  | { readonly kind: "where" }
  | { readonly kind: "clip"; readonly min: number; readonly max: number }
  /** Converts the dtype: f32 to i32 truncates toward zero; bool to a number gives 0 or 1; a number to bool is `!= 0`. */
  | { readonly kind: "cast" }
  /** Returns its input; no gradient flows through it. */
  | { readonly kind: "stopGradient" }
  // Linear algebra
  /**
   * Multiplies matrices: [..., m, k] × [..., k, n] → [..., m, n]; leading axes broadcast. `transposeA` and `transposeB`
   * exchange the last two axes of an input before the product.
   */
  | { readonly kind: "matmul"; readonly transposeA: boolean; readonly transposeB: boolean }
  /** A convolution without flipping the kernel. Inputs: x [N, C, H, W], w [O, C, kh, kw]. Output: [N, O, H', W']. */
  | ({ readonly kind: "conv2d" } & Conv2dAttributes)
  /** The gradient of `conv2d` with respect to x. Inputs: dy (its output's gradient), w. The output has x's shape. */
  | ({ readonly kind: "conv2dInputGrad" } & Conv2dAttributes)
  /** The gradient of `conv2d` with respect to w. Inputs: x, dy. The output has the shape of w. */
  | ({ readonly kind: "conv2dWeightGrad" } & Conv2dAttributes)
  // Along axes
  /** Reduces over axes, which are ascending, not negative and distinct. With no axes, the result is the input. */
  | { readonly kind: "reduce"; readonly fn: ReduceFn; readonly axes: ReadonlyArray<number>; readonly keepDims: boolean }
  /** Finds the i32 index of the largest f32 element along `axis` (the first at a tie). The output lacks this axis. */
  | { readonly kind: "argMax"; readonly axis: number }
  /** Normalises exp(x) to a sum of 1 over the last axis. */
  | { readonly kind: "softmax" }
  | { readonly kind: "logSoftmax" }
  /** Sums up along `axis`, from the end if `reverse`. With `exclusive`, an element is not part of its own sum. */
  | { readonly kind: "cumSum"; readonly axis: number; readonly exclusive: boolean; readonly reverse: boolean }
  // Ops that move elements without changing their values
  | { readonly kind: "reshape" }
  | { readonly kind: "transpose"; readonly permutation: ReadonlyArray<number> }
  | { readonly kind: "broadcastTo" }
  /** Cuts out a range along each axis. `starts` has one element for each axis; the output's shape holds the sizes. */
  | { readonly kind: "slice"; readonly starts: ReadonlyArray<number> }
  | { readonly kind: "concat"; readonly axis: number }
  | {
      readonly kind: "pad"
      readonly before: ReadonlyArray<number>
      readonly after: ReadonlyArray<number>
      readonly value: number
    }
  // Indexed by an i32 tensor
  /**
   * Selects rows. Inputs: data [rows, ...rest], indices (any shape). Output: [...indices.shape, ...rest]. The result of an
   * index out of range is undefined.
   */
  | { readonly kind: "gather" }
  /**
   * The gradient of gather. Inputs: indices, updates [...indices.shape, ...rest]. Output: [rows, ...rest], which starts as
   * zeros; each update is added to the row of its index, in order.
   */
  | { readonly kind: "scatterAdd" }
  /** Turns i32 indices [...] into f32 [..., depth] with a 1 at each index; an index out of range gives only zeros. */
  | { readonly kind: "oneHot"; readonly depth: number }

export type OpOf<Kind extends Op["kind"]> = Extract<Op, { readonly kind: Kind }>

export interface Tensor {
  /** Each new tensor gets a greater id than its inputs have, so ascending ids are a topological order. */
  readonly id: number
  readonly op: Op
  readonly inputs: ReadonlyArray<Tensor>
  readonly shape: Shape
  readonly dtype: DType
}

const elementwise = new Set<Op["kind"]>(["unary", "binary", "compare", "logical", "not", "where", "clip", "cast"])

/**
 * Tells whether each element of the result depends only on the input elements at the same position, after broadcasting.
 */
export const isElementwise = ({ kind }: Op): boolean => elementwise.has(kind)

export const sizeOf = (shape: Shape): number => shape.reduce((size, dimension) => size * dimension, 1)

/** Returns row-major strides, in elements. */
export const stridesOf = (shape: Shape): ReadonlyArray<number> => {
  const strides = new Array<number>(shape.length)
  let stride = 1
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride
    stride *= shape[axis]
  }
  return strides
}

/** Lists all tensors that `roots` depend on, each once, and each after its inputs. */
export const topologicalOrder = (roots: Iterable<Tensor>): ReadonlyArray<Tensor> => {
  const seen = new Set<Tensor>()
  const stack = [...roots]
  while (stack.length > 0) {
    const tensor = stack.pop()
    if (tensor === undefined || seen.has(tensor)) continue
    seen.add(tensor)
    for (const input of tensor.inputs) stack.push(input)
  }
  return [...seen].sort((a, b) => a.id - b.id)
}
