/**
 * Defines the graph of an ONNX model and encodes it as bytes (ir_version 9, opset 18). It writes no files. The first
 * argument of each `Message` method is a field number of ONNX's protobuf format (`onnx.proto`).
 */
import { ProtobufMessage } from "../../../base/formats/protobuf.ts"
import type { DType, Shape, TensorData } from "../Tensor.ts"

/** The codes of element types in ONNX. */
export const elementType: Readonly<Record<DType | "i64", number>> = { f32: 1, i32: 6, i8: 3, i64: 7, bool: 9 }

/** The domain of the ops that ONNX Runtime has besides those of the standard. */
export const runtimeDomain = "com.microsoft"

/** The value of an attribute; a number is an integer, unless it is marked as a float. */
export type Attribute = number | string | ReadonlyArray<number> | Graph | { readonly float: number }

export interface OnnxNode {
  readonly op: string
  /** Names the set of ops that the op belongs to: ONNX's own by default. */
  readonly domain?: typeof runtimeDomain
  readonly inputs: ReadonlyArray<string>
  readonly outputs: ReadonlyArray<string>
  readonly attributes?: Readonly<Record<string, Attribute>>
}

export interface OnnxValue {
  readonly name: string
  readonly dtype: DType | "i64"
  /** The shape, with a name for an axis of any size. It is absent if it is unknown before the model runs. */
  readonly shape?: ReadonlyArray<number | string>
}

export interface Initializer {
  readonly name: string
  readonly dtype: DType | "i64"
  readonly shape: Shape
  readonly data: TensorData | BigInt64Array
}

export class Graph {
  readonly name: string
  readonly nodes: Array<OnnxNode> = []
  readonly inputs: Array<OnnxValue> = []
  readonly outputs: Array<OnnxValue> = []
  readonly initializers: Array<Initializer> = []

  constructor(name: string) {
    this.name = name
  }
}

const valueInfo = ({ name, dtype, shape }: OnnxValue): ProtobufMessage => {
  const tensorType = new ProtobufMessage().int(1, elementType[dtype])
  if (shape !== undefined) {
    const dimensions = new ProtobufMessage()
    for (const size of shape)
      dimensions.message(
        1,
        typeof size === "string" ? new ProtobufMessage().text(2, size) : new ProtobufMessage().int(1, size),
      )
    tensorType.message(2, dimensions)
  }
  return new ProtobufMessage().text(1, name).message(2, new ProtobufMessage().message(1, tensorType))
}

const tensorProto = ({ name, dtype, shape, data }: Initializer): ProtobufMessage => {
  const message = new ProtobufMessage()
  for (const size of shape) message.int(1, size)
  return message
    .int(2, elementType[dtype])
    .text(8, name)
    .bytes(9, new Uint8Array(data.buffer, data.byteOffset, data.byteLength))
}

const attributeProto = (name: string, value: Attribute): ProtobufMessage => {
  const message = new ProtobufMessage().text(1, name)
  // Attribute types: FLOAT 1, INT 2, STRING 3, GRAPH 5, INTS 7.
  if (typeof value === "number") return message.int(3, value).int(20, 2)
  if (typeof value === "string") return message.text(4, value).int(20, 3)
  if (value instanceof Graph) return message.message(6, graphProto(value)).int(20, 5)
  if ("float" in value) return message.float(2, value.float).int(20, 1)
  for (const item of value) message.int(8, item)
  return message.int(20, 7)
}

const nodeProto = ({ op, domain, inputs, outputs, attributes = {} }: OnnxNode): ProtobufMessage => {
  const message = new ProtobufMessage()
  for (const input of inputs) message.text(1, input)
  for (const output of outputs) message.text(2, output)
  message.text(4, op)
  for (const [name, value] of Object.entries(attributes)) message.message(5, attributeProto(name, value))
  return domain === undefined ? message : message.text(7, domain)
}

const graphProto = (graph: Graph): ProtobufMessage => graphEncoder(graph)([])

/** Encodes a graph once; the function that it returns adds initializers. */
const graphEncoder = (graph: Graph): ((more: ReadonlyArray<Initializer>) => ProtobufMessage) => {
  const before = new ProtobufMessage()
  for (const node of graph.nodes) before.message(1, nodeProto(node))
  before.text(2, graph.name)
  for (const initializer of graph.initializers) before.message(5, tensorProto(initializer))
  const after = new ProtobufMessage()
  for (const input of graph.inputs) after.message(11, valueInfo(input))
  for (const output of graph.outputs) after.message(12, valueInfo(output))
  const [first, last] = [before.finish(), after.finish()]
  return (more) => {
    const message = new ProtobufMessage().fields(first)
    for (const initializer of more) message.message(5, tensorProto(initializer))
    return message.fields(last)
  }
}

/** Encodes a model. `metadata` are texts by name, which runtimes ignore. */
export const modelBytes = (graph: Graph, metadata: Readonly<Record<string, string>> = {}): Uint8Array =>
  modelEncoder(graph)([], metadata)

/**
 * Encodes a model except for initializers and texts that change; the function that it returns encodes those, and returns the
 * bytes of the whole model. A training saves its policy many times, and only the weights differ.
 */
export const modelEncoder = (
  graph: Graph,
): ((more: ReadonlyArray<Initializer>, metadata: Readonly<Record<string, string>>) => Uint8Array) => {
  const encoded = graphEncoder(graph)
  const opsets = new ProtobufMessage().message(8, new ProtobufMessage().text(1, "").int(2, 18))
  if (usesRuntimeOps(graph)) opsets.message(8, new ProtobufMessage().text(1, runtimeDomain).int(2, 1))
  const afterGraph = opsets.finish()
  return (more, metadata) => {
    const message = new ProtobufMessage().int(1, 9).text(2, "effect-rl").message(7, encoded(more)).fields(afterGraph)
    for (const [key, value] of Object.entries(metadata))
      message.message(14, new ProtobufMessage().text(1, key).text(2, value))
    return message.finish()
  }
}

/** Tells whether only ONNX Runtime can run the graph. */
const usesRuntimeOps = ({ nodes }: Graph): boolean =>
  nodes.some(
    ({ domain, attributes = {} }) =>
      domain !== undefined ||
      Object.values(attributes).some((value) => value instanceof Graph && usesRuntimeOps(value)),
  )
