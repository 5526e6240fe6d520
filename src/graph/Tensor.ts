/**
 * Tensors as expressions: a tensor is an op, the tensors that the op reads, a static shape and a dtype.
 *
 * This file is the whole vocabulary of the graph: all that a compiler target (`onnx`, `wasm`, `reference`) must implement.
 * Layers, distributions and optimisers are composed of these ops, in files of their own.
 */

export type DType = "f32" | "i32" | "bool"
export type Shape = ReadonlyArray<number>

/** f32 → f32, element by element. */
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

/** Both inputs have the same dtype: f32, or i32 for add, sub, mul, min and max. They broadcast as in NumPy. */
export type BinaryFn = "add" | "sub" | "mul" | "div" | "pow" | "min" | "max"

/** Both inputs are f32 or both i32, and the output is bool. They broadcast as in NumPy. */
export type CompareFn = "less" | "lessEqual" | "greater" | "greaterEqual" | "equal" | "notEqual"

export type ReduceFn = "sum" | "mean" | "max" | "min"

export interface Conv2dAttributes {
  readonly strides: readonly [number, number]
  /** The rows or columns added at the top, left, bottom and right. */
  readonly padding: readonly [number, number, number, number]
}

export type Op =
  // Leaves
  | { readonly kind: "input"; readonly name: string }
  | { readonly kind: "state"; readonly name: string }
  /** A bool constant holds 0 and 1 in a Uint8Array. */
  | { readonly kind: "constant"; readonly data: Float32Array | Int32Array | Uint8Array }
  // Element by element
  | { readonly kind: "unary"; readonly fn: UnaryFn }
  | { readonly kind: "binary"; readonly fn: BinaryFn }
  | { readonly kind: "compare"; readonly fn: CompareFn }
  | { readonly kind: "logical"; readonly fn: "and" | "or" }
  | { readonly kind: "not" }
  /** Inputs: condition (bool), then, otherwise; all three broadcast. */
  | { readonly kind: "where" }
  | { readonly kind: "clip"; readonly min: number; readonly max: number }
  /** f32 → i32 truncates toward zero; bool → number gives 0 and 1; number → bool is `!= 0`. */
  | { readonly kind: "cast" }
  /** Returns its input; no gradient flows through it. */
  | { readonly kind: "stopGradient" }
  // Linear algebra
  /** [..., m, k] × [..., k, n] → [..., m, n], after transposing the last two axes if asked; leading axes broadcast. */
  | { readonly kind: "matmul"; readonly transposeA: boolean; readonly transposeB: boolean }
  /** Inputs: x [N, C, H, W], w [O, C, kh, kw]. Output [N, O, H', W']. It is a cross-correlation, as in every framework. */
  | ({ readonly kind: "conv2d" } & Conv2dAttributes)
  /** Inputs: dy, w. The output's shape is that of x. */
  | ({ readonly kind: "conv2dInputGrad" } & Conv2dAttributes)
  /** Inputs: x, dy. The output's shape is that of w. */
  | ({ readonly kind: "conv2dWeightGrad" } & Conv2dAttributes)
  // Along axes
  /** The axes are ascending, not negative and distinct. Without axes it returns its input. */
  | { readonly kind: "reduce"; readonly fn: ReduceFn; readonly axes: ReadonlyArray<number>; readonly keepDims: boolean }
  /** f32 → i32, without the axis. Of equal elements, the first one counts. */
  | { readonly kind: "argMax"; readonly axis: number }
  /** Over the last axis. */
  | { readonly kind: "softmax" }
  | { readonly kind: "logSoftmax" }
  | { readonly kind: "cumSum"; readonly axis: number; readonly exclusive: boolean; readonly reverse: boolean }
  // Movement
  | { readonly kind: "reshape" }
  | { readonly kind: "transpose"; readonly permutation: ReadonlyArray<number> }
  | { readonly kind: "broadcastTo" }
  | { readonly kind: "slice"; readonly starts: ReadonlyArray<number> } // one start for each axis; the output's shape holds the sizes
  | { readonly kind: "concat"; readonly axis: number }
  | {
      readonly kind: "pad"
      readonly before: ReadonlyArray<number>
      readonly after: ReadonlyArray<number>
      readonly value: number
    }
  // Indexed by an i32 tensor
  /** Inputs: data [rows, ...rest], indices (any shape). Output: [...indices.shape, ...rest]. The result of an index out of range is undefined. */
  | { readonly kind: "gather" }
  /** The gradient of gather. Inputs: indices, updates [...indices.shape, ...rest]. Output [rows, ...rest]: zeros, to which each update is added at its row, in order. */
  | { readonly kind: "scatterAdd" }
  /** i32 [...] → f32 [..., depth]; an index out of range gives zeros. */
  | { readonly kind: "oneHot"; readonly depth: number }

export interface Tensor {
  /** Grows with each new tensor, so ascending ids are a topological order. */
  readonly id: number
  readonly op: Op
  readonly inputs: ReadonlyArray<Tensor>
  readonly shape: Shape
  readonly dtype: DType
}

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
