/**
 * Encodes a program's graph as bytes, so that another process compiles the same program without the code that made it.
 *
 * @example
 * ```ts
 * decodeSpec(encodeSpec(spec)) // an equal graph, with the tensors in the same order
 * ```
 */
import { Record, Schema } from "effect"
import * as Safetensors from "../formats/safetensors.ts"
import { make } from "../graph/ops/core.ts"
import { type Tensor, type TensorData, topologicalOrder } from "../graph/Tensor.ts"
import type { SlicedSpec } from "./Ranks.ts"

const ints = Schema.Array(Schema.Int)
const name = Schema.String
const op = <Kind extends string, Fields extends Schema.Struct.Fields>(kind: Kind, fields: Fields) =>
  Schema.Struct({ kind: Schema.Literal(kind), ...fields })
const pair = Schema.Tuple([Schema.Int, Schema.Int])
const convolution = { strides: pair, padding: Schema.Tuple([Schema.Int, Schema.Int, Schema.Int, Schema.Int]) }
const unaryFns = ["neg", "abs", "sign", "exp", "log", "sqrt", "reciprocal", "sin", "cos", "tanh", "sigmoid"] as const

/** The ops but for constants, whose numbers are tensors of the message. */
const SentOp = Schema.Union([
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

/** A program whose tensors are named by their positions in `nodes`, each after its inputs. */
const SentSpec = Schema.Struct({
  name,
  nodes: Schema.Array(
    Schema.Struct({
      op: Schema.Union([SentOp, op("constant", {})]),
      inputs: ints,
      shape: ints,
      dtype: Schema.Literals(["f32", "i32", "bool"]),
    }),
  ),
  inputs: Schema.Record(Schema.String, Schema.Int),
  state: Schema.Record(Schema.String, Schema.Int),
  outputs: Schema.Record(Schema.String, Schema.Int),
  minibatches: Schema.Struct({
    rows: Schema.Int,
    batch: Schema.Int,
    count: Schema.Int,
    gathered: Schema.Array(Schema.String),
  }),
})
// A limit of `clip` may be infinite, which JSON has no number for.
const Json = Schema.fromJsonString(Schema.toCodecJson(SentSpec))
const encodeJson = Schema.encodeSync(Json)
const decodeJson = Schema.decodeUnknownSync(Json)

/** Encodes a program as the bytes of a safetensors file. Its state may change only when it is written. */
export const encodeSpec = ({ name, inputs, state, outputs, minibatches }: SlicedSpec): Uint8Array => {
  const states = Record.map(state, ({ tensor }) => tensor)
  const tensors = topologicalOrder([inputs, states, outputs].flatMap((named) => Object.values(named)))
  const positions = new Map(tensors.map((tensor, position) => [tensor, position]))
  const positionOf = (tensor: Tensor): number => positions.get(tensor) ?? -1
  const constants: Record<string, Safetensors.TensorEntry> = {}
  const nodes = tensors.map(({ op, inputs: read, shape, dtype }, position) => {
    if (op.kind === "constant") constants[`${position}`] = { shape: [op.data.length], data: op.data }
    const sent = op.kind === "constant" ? ({ kind: op.kind } as const) : op
    return { op: sent, inputs: read.map(positionOf), shape, dtype }
  })
  const spec = encodeJson({
    name,
    nodes,
    inputs: Record.map(inputs, positionOf),
    state: Record.map(states, positionOf),
    outputs: Record.map(outputs, positionOf),
    minibatches,
  })
  return Safetensors.encode(constants, { spec })
}

/** Decodes what `encodeSpec` encoded. Throws for other bytes. */
export const decodeSpec = (bytes: Uint8Array): SlicedSpec => {
  const { nodes, inputs, state, outputs, ...rest } = decodeJson(Safetensors.metadata(bytes).spec)
  const constants = Safetensors.decode(bytes)
  const tensors: Array<Tensor> = []
  const tensorAt = (position: number): Tensor => {
    const tensor = tensors[position]
    if (tensor === undefined) throw new RangeError(`graph: expected a tensor at ${position}`)
    return tensor
  }
  for (const [position, { op, inputs: read, shape, dtype }] of nodes.entries()) {
    const made = op.kind === "constant" ? { kind: op.kind, data: dataOf(constants, `${position}`) } : op
    tensors.push(make(made, read.map(tensorAt), shape, dtype))
  }
  return {
    ...rest,
    inputs: Record.map(inputs, tensorAt),
    state: Record.map(state, (position) => ({ tensor: tensorAt(position) })),
    outputs: Record.map(outputs, tensorAt),
  }
}

const dataOf = (constants: Safetensors.Tensors, name: string): TensorData => {
  const data = constants[name]?.data
  if (data === undefined || data instanceof Float64Array) throw new TypeError(`graph: constant ${name} has no numbers`)
  return data
}
