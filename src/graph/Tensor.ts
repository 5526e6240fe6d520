/**
 * A tensor as an expression: the op that makes it, the tensors that op reads, its static shape and kind of number.
 *
 * This file is the whole vocabulary of the graph: what a compiler target (`onnx`, `wasm`, `reference`) must know.
 * Everything richer (layers, distributions, optimisers) is composed of these ops in its own file.
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

/** Both sides of one kind (f32, or i32 for add, sub, mul, min, max), broadcast as NumPy does. */
export type BinaryFn = "add" | "sub" | "mul" | "div" | "pow" | "min" | "max"

/** f32 or i32 on both sides → bool, broadcast as NumPy does. */
export type CompareFn = "less" | "lessEqual" | "greater" | "greaterEqual" | "equal" | "notEqual"

export type ReduceFn = "sum" | "mean" | "max" | "min"

export interface Conv2dAttributes {
  readonly strides: readonly [number, number]
  /** top, left, bottom, right. */
  readonly padding: readonly [number, number, number, number]
}

export type Op =
  // Leaves
  | { readonly kind: "input"; readonly name: string }
  | { readonly kind: "state"; readonly name: string }
  /** bool constants hold 0 and 1 in a Uint8Array. */
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
  /** The identity, through which no gradient flows. */
  | { readonly kind: "stopGradient" }
  // Linear algebra
  /** [..., m, k] × [..., k, n] after the transposes of the last two axes; leading axes broadcast. */
  | { readonly kind: "matmul"; readonly transposeA: boolean; readonly transposeB: boolean }
  /** Inputs: x [N, C, H, W], w [O, C, kh, kw]. Output [N, O, H', W']. Cross-correlation, as every framework has it. */
  | ({ readonly kind: "conv2d" } & Conv2dAttributes)
  /** Inputs: dy, w. The output's shape is that of x. */
  | ({ readonly kind: "conv2dInputGrad" } & Conv2dAttributes)
  /** Inputs: x, dy. The output's shape is that of w. */
  | ({ readonly kind: "conv2dWeightGrad" } & Conv2dAttributes)
  // Along axes
  /** Axes ascending, not negative, without repeats. Over no axes: the identity. */
  | { readonly kind: "reduce"; readonly fn: ReduceFn; readonly axes: ReadonlyArray<number>; readonly keepDims: boolean }
  /** f32 → i32; the first of equals; the axis is dropped. */
  | { readonly kind: "argMax"; readonly axis: number }
  /** Over the last axis. */
  | { readonly kind: "softmax" }
  | { readonly kind: "logSoftmax" }
  | { readonly kind: "cumSum"; readonly axis: number; readonly exclusive: boolean; readonly reverse: boolean }
  // Movement
  | { readonly kind: "reshape" }
  | { readonly kind: "transpose"; readonly permutation: ReadonlyArray<number> }
  | { readonly kind: "broadcastTo" }
  | { readonly kind: "slice"; readonly starts: ReadonlyArray<number> } // one start an axis; the output's shape holds the sizes
  | { readonly kind: "concat"; readonly axis: number }
  | {
      readonly kind: "pad"
      readonly before: ReadonlyArray<number>
      readonly after: ReadonlyArray<number>
      readonly value: number
    }
  // Indexed by an i32 tensor
  /** Inputs: data [rows, ...rest], indices (any shape). Output: [...indices.shape, ...rest]. Out of range is undefined. */
  | { readonly kind: "gather" }
  /** The gradient of gather. Inputs: indices, updates [...indices.shape, ...rest]. Output [rows, ...rest]: zeros, plus each update at its row, in order. */
  | { readonly kind: "scatterAdd" }
  /** i32 [...] → f32 [..., depth]; an index out of range gives zeros. */
  | { readonly kind: "oneHot"; readonly depth: number }

export type OpKind = Op["kind"]

export interface Tensor {
  /** Grows with each tensor made: ascending ids are a topological order. */
  readonly id: number
  readonly op: Op
  readonly inputs: ReadonlyArray<Tensor>
  readonly shape: Shape
  readonly dtype: DType
}

export const sizeOf = (shape: Shape): number => shape.reduce((size, dimension) => size * dimension, 1)

/** Row-major strides, in elements. */
export const stridesOf = (shape: Shape): ReadonlyArray<number> => {
  const strides = new Array<number>(shape.length)
  let stride = 1
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    strides[axis] = stride
    stride *= shape[axis]
  }
  return strides
}

/** Everything that `roots` need, each once, inputs before users. */
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
