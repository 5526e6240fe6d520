/**
 * Turns graphs into plain data and back, so that another process can compile a program without the code that made it:
 * `spread/ranks/specMessage.ts` sends programs to other processes, and `onnx/embedded.ts` puts them into ONNX models.
 *
 * @example
 * ```ts
 * const { nodes, positionOf } = encodeNodes([loss])
 * const tensors = decodeNodes(nodes, () => Float32Array.of(1))
 * tensors[positionOf(loss)] // an equal tensor
 * ```
 */
import * as Schema from "effect/Schema"
import { GraphError } from "./GraphError.ts"
import { rebuilt } from "./rebuilt.ts"
import { sizeOf, type Tensor, type TensorData, topologicalOrder } from "./Tensor.ts"

const ints = Schema.Array(Schema.Int)
const name = Schema.String
const op = <Kind extends string, Fields extends Schema.Struct.Fields>(kind: Kind, fields: Fields) =>
  Schema.Struct({ kind: Schema.Literal(kind), ...fields })
const pair = Schema.Tuple([Schema.Int, Schema.Int])
const convolution = { strides: pair, padding: Schema.Tuple([Schema.Int, Schema.Int, Schema.Int, Schema.Int]) }
const unaryFns = ["neg", "abs", "sign", "exp", "log", "sqrt", "reciprocal", "sin", "cos", "tanh", "sigmoid"] as const

/** All ops except constants, whose numbers are stored separately from the nodes. */
const EncodedOp = Schema.Union([
  op("input", { name }),
  op("state", { name }),
  op("unary", { fn: Schema.Literals([...unaryFns, "relu", "softplus", "floor"]) }),
  op("binary", { fn: Schema.Literals(["add", "sub", "mul", "div", "pow", "min", "max"]) }),
  op("compare", {
    fn: Schema.Literals(["less", "lessEqual", "greater", "greaterEqual", "equal", "notEqual"]),
  }),
  op("logical", { fn: Schema.Literals(["and", "or"]) }),
  op("not", {}),
  op("where", {}),
  op("clip", { min: Schema.Number, max: Schema.Number }),
  op("cast", {}),
  op("stopGradient", {}),
  op("matmul", { transposeA: Schema.Boolean, transposeB: Schema.Boolean }),
  op("conv2d", convolution),
  op("conv2dInputGrad", convolution),
  op("conv2dWeightGrad", convolution),
  op("reduce", { fn: Schema.Literals(["sum", "mean", "max", "min"]), axes: ints, keepDims: Schema.Boolean }),
  op("argMax", { axis: Schema.Int }),
  op("softmax", {}),
  op("logSoftmax", {}),
  op("cumSum", { axis: Schema.Int, exclusive: Schema.Boolean, reverse: Schema.Boolean }),
  op("reshape", {}),
  op("transpose", { permutation: ints }),
  op("broadcastTo", {}),
  op("slice", { starts: ints }),
  op("concat", { axis: Schema.Int }),
  op("pad", { before: ints, after: ints, value: Schema.Number }),
  op("gather", {}),
  op("scatterAdd", {}),
  op("oneHot", { depth: Schema.Int }),
])

/** The tensors of a graph, each after its inputs, which are named by their positions in this list. */
export const EncodedNodes = Schema.Array(
  Schema.Struct({
    op: Schema.Union([EncodedOp, op("constant", {})]),
    inputs: ints,
    shape: ints,
    dtype: Schema.Literals(["f32", "i32", "i8", "bool"]),
  }),
)
export type EncodedNodes = typeof EncodedNodes.Type

/** The result of `encodeNodes`. */
interface Encoded {
  readonly nodes: EncodedNodes
  /** The constants by their positions in `nodes`. */
  readonly constants: ReadonlyMap<number, TensorData>
  /** Returns the position of a tensor in `nodes`; -1 for a tensor of another graph. */
  readonly positionOf: (tensor: Tensor) => number
}

/**
 * Encodes `roots` and all tensors that they depend on. A clip's limit may be infinite, which plain JSON cannot hold.
 */
export const encodeNodes = (roots: ReadonlyArray<Tensor>): Encoded => {
  const tensors = topologicalOrder(roots)
  const positions = new Map(tensors.map((tensor, position) => [tensor, position]))
  const positionOf = (tensor: Tensor): number => positions.get(tensor) ?? -1
  const constants = new Map<number, TensorData>()
  const nodes = tensors.map(({ op, inputs, shape, dtype }, position) => {
    if (op.kind === "constant") constants.set(position, op.data)
    const encoded = op.kind === "constant" ? ({ kind: op.kind } as const) : op
    return { op: encoded, inputs: inputs.map(positionOf), shape, dtype }
  })
  return { nodes, constants, positionOf }
}

/**
 * Makes the tensors of an encoded graph, in order. The graph may come from anybody, so all ops are checked as those that
 * `ops/` makes. Throws a `GraphError` that names the node if an op does not fit its inputs, or comes before one of them, or
 * if all tensors together have more than `mostNumbers` numbers.
 */
export const decodeNodes = (
  nodes: EncodedNodes,
  constantAt: (position: number) => TensorData,
  mostNumbers = Infinity,
): ReadonlyArray<Tensor> => {
  const tensors: Array<Tensor> = []
  let numbers = 0
  for (const [position, { op, inputs, shape, dtype }] of nodes.entries()) {
    numbers += sizeOf(shape)
    if (numbers > mostNumbers) {
      const message = `node ${position}: ${op.kind}: expected at most ${mostNumbers} numbers in all nodes up to this one, found ${numbers}`
      throw new GraphError({ op: op.kind, message, shapes: [shape], where: "" })
    }
    const decodedOp = op.kind === "constant" ? { kind: op.kind, data: constantAt(position) } : op
    const read = inputs.map((at) => tensorAt(tensors, at))
    tensors.push(rebuilt(position, { op: decodedOp, inputs: read, shape, dtype }))
  }
  return tensors
}

/** Returns the tensor at a position. Throws a `GraphError` if there is none. */
export const tensorAt = (tensors: ReadonlyArray<Tensor>, position: number): Tensor => {
  const tensor = tensors[position]
  if (tensor !== undefined) return tensor
  const message = `graph: expected one of the first ${tensors.length} nodes, found node ${position}`
  throw new GraphError({ op: "graph", message, shapes: [], where: "" })
}
