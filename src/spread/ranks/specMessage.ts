/**
 * Encodes a program's graph as bytes, so that another process compiles the same program without the code that made it.
 */
import { Record, Schema } from "effect"
import { jsonText } from "../../base/text/jsonText.ts"
import * as Safetensors from "../../base/formats/safetensors.ts"
import { decodeNodes, EncodedNodes, encodeNodes, tensorAt } from "../../tensor/graph/encoded.ts"
import type { TensorData } from "../../tensor/graph/Tensor.ts"
import type { SlicedSpec } from "./SlicedSpec.ts"

/** A program whose tensors are named by their positions in `nodes`. The tensors of the message hold the constants. */
const SentSpec = Schema.Struct({
  name: Schema.String,
  nodes: EncodedNodes,
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
// A limit of `clip` may be infinite, and JSON has no infinite numbers.
const Json = jsonText(Schema.toCodecJson(SentSpec))
const encodeJson = Schema.encodeSync(Json)
const decodeJson = Schema.decodeUnknownSync(Json)

/** Encodes a program as the bytes of a safetensors file. The program must change its state only when the state is written. */
export const encodeSpec = ({ name, inputs, state, outputs, minibatches }: SlicedSpec): Uint8Array => {
  const states = Record.map(state, ({ tensor }) => tensor)
  const roots = [inputs, states, outputs].flatMap((named) => Object.values(named))
  const { nodes, constants, positionOf } = encodeNodes(roots)
  const spec = encodeJson({
    name,
    nodes,
    inputs: Record.map(inputs, positionOf),
    state: Record.map(states, positionOf),
    outputs: Record.map(outputs, positionOf),
    minibatches,
  })
  const tensors = [...constants].flatMap(([position, data]) =>
    // Only states have bytes.
    data instanceof Int8Array ? [] : [[`${position}`, { shape: [data.length], data }] as const],
  )
  return Safetensors.encode(Object.fromEntries(tensors), { spec })
}

/** Decodes what `encodeSpec` encoded. Throws for other bytes. */
export const decodeSpec = (bytes: Uint8Array): SlicedSpec => {
  const { nodes, inputs, state, outputs, ...rest } = decodeJson(Safetensors.metadata(bytes).spec)
  const constants = Safetensors.decode(bytes)
  const tensors = decodeNodes(nodes, (position) => dataOf(constants, `${position}`))
  const at = (position: number) => tensorAt(tensors, position)
  return {
    ...rest,
    inputs: Record.map(inputs, at),
    state: Record.map(state, (position) => ({ tensor: at(position) })),
    outputs: Record.map(outputs, at),
  }
}

const dataOf = (constants: Safetensors.TensorEntries, name: string): TensorData => {
  const data = constants[name]?.data
  if (data === undefined || data instanceof Float64Array) throw new TypeError(`graph: constant ${name} has no numbers`)
  return data
}
