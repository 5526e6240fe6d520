/**
 * Puts programs into the metadata of an ONNX model and reads them again. Any ONNX runtime can run the model, and this
 * library can compile its programs on every backend, without an ONNX runtime. The metadata names the model's initializers
 * instead of repeating their numbers, so the weights are in the file once.
 */
import { Record } from "effect"
import * as Schema from "effect/Schema"
import { jsonText } from "../../../base/text/jsonText.ts"
import { fieldsOf } from "../../../base/formats/protobuf.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { decodeNodes, EncodedNodes, encodeNodes, tensorAt } from "../encoded.ts"
import { GraphError } from "../GraphError.ts"
import { fail } from "../ops/core.ts"
import type { ProgramSpec } from "../Program.ts"
import { arrayTypes, type DType, sizeOf, type TensorData } from "../Tensor.ts"
import type { Initializer } from "./model.ts"

/** Programs without states, and a text about them. */
export interface Embedded {
  readonly about: string
  readonly programs: Readonly<Record<string, ProgramSpec>>
}

/** The number of bytes of an element. */
const widths: Readonly<Record<DType, number>> = { f32: 4, i32: 4, i8: 1, bool: 1 }

/** The key of the programs in a model's metadata. */
export const embeddedKey = "effect-rl"

const Positions = Schema.Record(Schema.String, Schema.Int)
const Json = jsonText(
  Schema.toCodecJson(
    Schema.Struct({
      about: Schema.String,
      nodes: EncodedNodes,
      /** The numbers of each constant, by its position in `nodes`: the name of an initializer, or bytes in base64. */
      constants: Schema.Record(
        Schema.String,
        Schema.Union([
          Schema.Struct({ initializer: Schema.String }),
          Schema.Struct({ base64: Schema.Uint8ArrayFromBase64 }),
        ]),
      ),
      programs: Schema.Record(
        Schema.String,
        Schema.Struct({ name: Schema.String, inputs: Positions, outputs: Positions }),
      ),
    }),
  ),
)
/** Encodes a value like the Schema `Json`, but faster: it does not try every kind of op for each node. */
const encodeJson = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) =>
    typeof item === "number" && !Number.isFinite(item) ? String(item) : item,
  )
const encodeBase64 = Schema.encodeSync(Schema.Uint8ArrayFromBase64)
const decodeJson = Schema.decodeUnknownSync(Json)

/**
 * Returns a function that makes the text for a model's metadata from `about` and the numbers of the programs' states.
 * Numbers that the model already has (in `initializers`, or in the states that `inModel` names) are only referred to;
 * the text holds all others.
 */
export const embedding = (programs: Embedded["programs"], initializers: ReadonlyArray<Initializer>) => {
  const roots = Object.values(programs).flatMap(({ inputs, outputs }) => [
    ...Object.values(inputs),
    ...Object.values(outputs),
  ])
  const { nodes, constants, positionOf } = encodeNodes(roots)
  const states = nodes.flatMap(({ op }, position) => (op.kind === "state" ? [{ position, name: op.name }] : []))
  const written = Array.from(constants, ([position, data]) => {
    const same = initializers.find(({ dtype, data: other }) => dtype === nodes[position].dtype && isEqual(data, other))
    return [`${position}`, same === undefined ? inBase64(data) : { initializer: same.name }] as const
  })
  const nodesText = encodeJson(
    nodes.map((node) => (node.op.kind === "state" ? { ...node, op: { kind: "constant" } } : node)),
  )
  const programsText = encodeJson(
    Record.map(programs, ({ name, inputs, outputs }) => ({
      name,
      inputs: Record.map(inputs, positionOf),
      outputs: Record.map(outputs, positionOf),
    })),
  )
  return (about: string, numbers: ReadonlyArray<Initializer>, inModel: ReadonlySet<string>): string => {
    const dataOf = new Map(numbers.map(({ name, data }) => [name, data]))
    const filled = states.map(({ position, name }) => {
      const data = dataOf.get(name) ?? fail("export", `the numbers of state "${name}" are missing`)
      return [`${position}`, inModel.has(name) ? { initializer: name } : inBase64(data)] as const
    })
    const constantsText = encodeJson(Object.fromEntries([...written, ...filled]))
    return `{"about":${encodeJson(about)},"nodes":${nodesText},"constants":${constantsText},"programs":${programsText}}`
  }
}

const inBase64 = (data: TensorData | BigInt64Array) => ({ base64: encodeBase64(bytesOf(data)) })

const bytesOf = ({ buffer, byteOffset, byteLength }: TensorData | BigInt64Array): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength)

/** Compares bit by bit, so that −0 stays −0. */
const isEqual = (one: TensorData, other: TensorData | BigInt64Array): boolean => {
  if (one.byteLength !== other.byteLength) return false
  const [left, right] = [bytesOf(one), bytesOf(other)]
  for (let at = 0; at < left.length; at++) if (left[at] !== right[at]) return false
  return true
}

/**
 * Reads the programs in an ONNX model; undefined if it has none. Throws an Error, such as a `GraphError`, if the bytes are
 * no ONNX model, an op does not fit its inputs, or the programs do not fit the model's initializers.
 */
export const readEmbedded = (model: Uint8Array): Embedded | undefined => {
  let text: string | undefined
  const initializers = new Map<string, Uint8Array>()
  for (const { field, value } of fieldsOf(model)) {
    if (typeof value === "number") continue
    // ModelProto: graph is field 7, and metadata_props is field 14.
    if (field === 14) {
      const { key, value: entry } = metadataOf(value)
      if (key === embeddedKey) text = entry
    }
    if (field !== 7) continue
    for (const part of fieldsOf(value)) {
      // GraphProto: initializer is field 5.
      if (part.field !== 5 || typeof part.value === "number") continue
      const { name, bytes } = initializerOf(part.value)
      initializers.set(name, bytes)
    }
  }
  return text === undefined ? undefined : decoded(text, initializers, mostNumbersIn(model))
}

/**
 * Returns the largest number of elements that all tensors of a model's programs may have together. A policy computes one row
 * at a time, and has a few tensors for each of its weights, so a file that needs far more is refused before it can take all
 * memory.
 */
const mostNumbersIn = (model: Uint8Array): number => 2 ** 26 + 64 * Math.ceil(model.length / widths.f32)

/** Reads an entry of the metadata: its key is field 1, and its value is field 2. */
const metadataOf = (entry: Uint8Array) => {
  const texts = textsIn(entry)
  return { key: texts.get(1) ?? "", value: texts.get(2) ?? "" }
}

const textsIn = (message: Uint8Array): ReadonlyMap<number, string> =>
  new Map(
    [...fieldsOf(message)].flatMap(({ field, value }) =>
      typeof value === "number" ? [] : [[field, utf8.decode(value)] as const],
    ),
  )

/** Reads the name (field 8) and the bytes (field 9) of an initializer. */
const initializerOf = (message: Uint8Array) => {
  let [name, bytes] = ["", new Uint8Array(0)]
  for (const { field, value } of fieldsOf(message)) {
    if (typeof value === "number") continue
    if (field === 8) name = utf8.decode(value)
    if (field === 9) bytes = value.slice()
  }
  return { name, bytes }
}

const decoded = (text: string, initializers: ReadonlyMap<string, Uint8Array>, mostNumbers: number): Embedded => {
  const { about, nodes, constants, programs } = decodeJson(text)
  const numbersOf = (position: number): TensorData => {
    const constant = constants[`${position}`]
    const { shape, dtype } = nodes[position]
    const bytes =
      constant === undefined
        ? undefined
        : "base64" in constant
          ? constant.base64
          : initializers.get(constant.initializer)
    const length = sizeOf(shape)
    if (bytes === undefined || bytes.length !== length * widths[dtype]) {
      const message = `node ${position}: constant: expected ${length} numbers, found ${bytes?.length ?? 0} bytes`
      throw new GraphError({ op: "constant", message, shapes: [shape], where: "" })
    }
    return new arrayTypes[dtype](Uint8Array.from(bytes).buffer, 0, length)
  }
  const tensors = decodeNodes(nodes, numbersOf, mostNumbers)
  const at = (position: number) => tensorAt(tensors, position)
  return {
    about,
    programs: Record.map(programs, ({ name, inputs, outputs }) => ({
      name,
      inputs: Record.map(inputs, at),
      state: {},
      outputs: Record.map(outputs, at),
    })),
  }
}
