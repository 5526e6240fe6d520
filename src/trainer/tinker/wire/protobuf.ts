/** Reads and writes the protobuf messages of Tinker's protocol. The numbers of fields are those of its public schema. */
import { utf8 } from "../../../base/text/utf8.ts"
import { fieldsOf, type ProtobufField, ProtobufMessage } from "../../../base/formats/protobuf.ts"
import type { LossOutput, SampleOutput } from "./outcomes.ts"
import { DatumProblem, type RawDatum, type RawLossRequest, type RequestTensor } from "../training/Datum.ts"

/** A request to compute a loss, with the model that it is for. */
export interface AddressedLossRequest {
  readonly modelId: string
  /** The number of the request among the model's requests; null if the client did not number it. */
  readonly seqId: number | null
  readonly forwardOnly: boolean
  readonly request: RawLossRequest
}

const bytesIn = ({ field, value }: ProtobufField): Uint8Array => {
  if (typeof value !== "number") return value
  throw new RangeError(`protobuf: field ${field}: expected bytes, found a number`)
}
const numberIn = ({ field, value }: ProtobufField): number => {
  if (typeof value === "number") return value
  throw new RangeError(`protobuf: field ${field}: expected a number, found bytes`)
}
const textIn = (field: ProtobufField): string => utf8.decode(bytesIn(field))

const doubleIn = (field: ProtobufField): number => {
  const bytes = bytesIn(field)
  if (bytes.length !== 8) throw new RangeError(`protobuf: field ${field.field}: expected a double`)
  return new DataView(bytes.buffer, bytes.byteOffset, 8).getFloat64(0, true)
}

/** The most fields of a request. An empty field has two bytes, so a body could have millions, each with objects in memory. */
const mostFields = 2 ** 21

/** The most examples of a request, and the most inputs of an example. */
const most = { data: 65_536, inputs: 16 } as const

/** The fields that a request may still have. */
interface FieldBudget {
  left: number
}

/** Yields the fields of a message, and counts them. */
function* countedFields(bytes: Uint8Array, budget: FieldBudget): Generator<ProtobufField, void> {
  for (const field of fieldsOf(bytes)) {
    if (--budget.left < 0) throw new RangeError(`protobuf: expected at most ${mostFields} fields; send fewer at a time`)
    yield field
  }
}

const bytesOf = (array: ArrayBufferView): Uint8Array => new Uint8Array(array.buffer, array.byteOffset, array.byteLength)

type Decode<A> = (field: ProtobufField, budget: FieldBudget) => A

/** Returns the entry of a map, whose value is decoded by `decode`. */
const entryIn = <A>(
  field: ProtobufField,
  budget: FieldBudget,
  { decode, otherwise }: { readonly decode: Decode<A>; readonly otherwise: A },
): readonly [string, A] => {
  let key = ""
  let value = otherwise
  for (const part of countedFields(bytesIn(field), budget)) {
    if (part.field === 1) key = textIn(part)
    else if (part.field === 2) value = decode(part, budget)
  }
  return [key, value]
}

/** The types of a tensor's numbers in the schema. */
const dtypes = { float32: 1, int64: 2, int32: 3 } as const

/** Copies bytes of numbers to an array, which must begin at a multiple of its width. */
const aligned = (bytes: Uint8Array, width: number, place: string): ArrayBuffer => {
  if (bytes.length % width !== 0) throw new RangeError(`protobuf: ${place}: expected numbers of ${width} bytes each`)
  const copy = new ArrayBuffer(bytes.length)
  new Uint8Array(copy).set(bytes)
  return copy
}

const arrayOf = (bytes: Uint8Array, dtype: number): RequestTensor["data"] => {
  switch (dtype) {
    case dtypes.float32:
      return new Float32Array(aligned(bytes, 4, "a tensor"))
    case dtypes.int64:
      return new BigInt64Array(aligned(bytes, 8, "a tensor"))
    case dtypes.int32:
      return new Int32Array(aligned(bytes, 4, "a tensor"))
    default:
      throw new RangeError(`protobuf: a tensor: expected float32, int64 or int32, found the type ${dtype}`)
  }
}

/** The most axes of a tensor's shape that are read. */
const mostAxes = 8

const noTensor: RequestTensor = { data: [], shape: null, isSparse: false }

const tensorIn: Decode<RequestTensor> = (field, budget) => {
  let dense = new Uint8Array(0)
  let dtype = 0
  let isSparse = false
  const shape: Array<number> = []
  for (const part of countedFields(bytesIn(field), budget)) {
    if (part.field === 1) dense = Uint8Array.from(bytesIn(part))
    else if (part.field === 2) isSparse = true
    else if (part.field === 3) dtype = numberIn(part)
    else if (part.field === 4) {
      // A list of numbers is one field of bytes, or a field for each number.
      if (typeof part.value === "number") shape.push(part.value)
      else shape.push(...varintsIn(part.value))
      if (shape.length > mostAxes) throw new RangeError(`protobuf: a tensor: expected at most ${mostAxes} axes`)
    }
  }
  return { data: isSparse ? [] : arrayOf(dense, dtype), shape: shape.length === 0 ? null : shape, isSparse }
}

function* varintsIn(bytes: Uint8Array): Generator<number, void> {
  let value = 0
  let scale = 1
  for (const byte of bytes.subarray(0, 10 * mostAxes)) {
    value += (byte & 127) * scale
    scale *= 128
    if (byte >= 128) continue
    yield value
    value = 0
    scale = 1
  }
}

/** The kinds of chunks of an input, by their numbers. */
const chunkKinds: Readonly<Record<number, string>> = { 2: "an image", 3: "audio" }

const datumIn: Decode<RawDatum> = (field, budget) => {
  const tokens: Array<number> = []
  let unsupported: string | undefined
  const inputs = new Map<string, RequestTensor>()
  for (const part of countedFields(bytesIn(field), budget)) {
    if (part.field === 2) inputs.set(...entryIn(part, budget, { decode: tensorIn, otherwise: noTensor }))
    if (inputs.size > most.inputs)
      throw new RangeError(`protobuf: expected at most ${most.inputs} inputs of an example`)
    if (part.field !== 1) continue
    for (const chunk of countedFields(bytesIn(part), budget)) {
      if (chunk.field !== 1) unsupported = chunkKinds[chunk.field] ?? "an unknown chunk"
      else
        for (const inner of countedFields(bytesIn(chunk), budget))
          if (inner.field === 1) for (const id of new Int32Array(aligned(bytesIn(inner), 4, "tokens"))) tokens.push(id)
    }
  }
  return { tokens: unsupported === undefined ? tokens : { unsupported }, inputs }
}

/** One example of a request: its tokens, for each of them the token that should follow, and columns of numbers by name. */
export interface SentDatum {
  readonly tokens: Int32Array
  readonly targets: Int32Array
  readonly columns: Readonly<Record<string, Float32Array>>
}

/** A request to compute a loss, as a client sends it. */
interface SentLossRequest {
  readonly modelId: string
  readonly seqId: number
  readonly forwardOnly: boolean
  readonly loss: string
  readonly lossConfig: Readonly<Record<string, number>>
  readonly data: ReadonlyArray<SentDatum>
}

const tensorMessage = (array: Float32Array | BigInt64Array): ProtobufMessage =>
  new ProtobufMessage()
    .bytes(1, bytesOf(array))
    .int(3, array instanceof Float32Array ? dtypes.float32 : dtypes.int64)
    .int(4, array.length)

const datumMessage = ({ tokens, targets, columns }: SentDatum): ProtobufMessage => {
  const text = new ProtobufMessage().bytes(1, bytesOf(tokens))
  const message = new ProtobufMessage().message(1, new ProtobufMessage().message(1, text))
  const inputs = { target_tokens: BigInt64Array.from(targets, BigInt), ...columns }
  for (const [name, array] of Object.entries(inputs))
    message.message(2, new ProtobufMessage().text(1, name).message(2, tensorMessage(array)))
  return message
}

/** Encodes a request to compute a loss. */
export const encodeLossRequest = (request: SentLossRequest): Uint8Array => {
  const message = new ProtobufMessage().text(1, request.modelId).int(2, request.seqId)
  for (const datum of request.data) message.message(3, datumMessage(datum))
  message.text(4, request.loss)
  for (const [name, value] of Object.entries(request.lossConfig))
    message.message(5, new ProtobufMessage().text(1, name).double(2, value))
  return message.int(6, request.forwardOnly ? 1 : 0).finish()
}

/** Decodes a request to compute a loss. Throws a `RangeError` if the bytes are no such message. */
export const decodeLossRequest = (bytes: Uint8Array): AddressedLossRequest => {
  let modelId = ""
  let seqId: number | null = null
  let forwardOnly = false
  let loss = ""
  const lossConfig = new Map<string, number>()
  const data: Array<RawDatum> = []
  const budget: FieldBudget = { left: mostFields }
  for (const field of countedFields(bytes, budget)) {
    if (field.field === 1) modelId = textIn(field)
    // The schema has no way to leave the number out, so clients send 0 instead.
    else if (field.field === 2) seqId = numberIn(field) === 0 ? null : numberIn(field)
    else if (field.field === 3) {
      if (data.length === most.data) throw new RangeError(`protobuf: data: expected at most ${most.data} examples`)
      data.push(datumIn(field, budget))
    } else if (field.field === 4) loss = textIn(field)
    else if (field.field === 5) lossConfig.set(...entryIn(field, budget, { decode: doubleIn, otherwise: 0 }))
    else if (field.field === 6) forwardOnly = numberIn(field) !== 0
  }
  if (modelId === "") throw new DatumProblem("model_id", "it is missing")
  return { modelId, seqId, forwardOnly, request: { loss, lossConfig, data } }
}

/** Encodes the output of a loss: for each name one tensor with the numbers of all examples, and where each begins. */
export const encodeLossOutput = ({ loss_fn_output_type, loss_fn_outputs, metrics }: LossOutput): Uint8Array => {
  const record = new ProtobufMessage().text(1, loss_fn_output_type)
  for (const name of Object.keys(loss_fn_outputs[0] ?? {})) {
    const all = loss_fn_outputs.map((output) => output[name].data)
    const offsets = new BigInt64Array(all.length + 1)
    all.forEach(({ length }, at) => (offsets[at + 1] = offsets[at] + BigInt(4 * length)))
    const tensor = new ProtobufMessage()
      .bytes(1, bytesOf(Float32Array.from(all.flat())))
      .bytes(2, bytesOf(offsets))
      .int(3, dtypes.float32)
    record.message(2, new ProtobufMessage().text(1, name).message(2, tensor))
  }
  record.int(3, loss_fn_outputs.length)
  const message = new ProtobufMessage().text(1, loss_fn_output_type).message(2, record)
  for (const [name, value] of Object.entries(metrics))
    message.message(3, new ProtobufMessage().text(1, name).double(2, value))
  return message.finish()
}

/** Returns the numbers of each example in a tensor with the numbers of all of them. */
const examplesIn = (field: ProtobufField, budget: FieldBudget): ReadonlyArray<Float32Array> => {
  let numbers = new Float32Array(0)
  let offsets = new BigInt64Array(0)
  for (const part of countedFields(bytesIn(field), budget)) {
    if (part.field === 1) numbers = new Float32Array(aligned(bytesIn(part), 4, "an output"))
    else if (part.field === 2) offsets = new BigInt64Array(aligned(bytesIn(part), 8, "offsets of an output"))
    else if (part.field === 3 && numberIn(part) !== dtypes.float32)
      throw new RangeError(`protobuf: an output: expected float32, found the type ${numberIn(part)}`)
  }
  if (offsets.length > most.data + 1)
    throw new RangeError(`protobuf: an output: expected at most ${most.data} examples, found ${offsets.length - 1}`)
  const places = Array.from(offsets, (offset) => Number(offset) / 4)
  const isOrdered = places.every((place, at) => Number.isInteger(place) && place >= (at === 0 ? 0 : places[at - 1]))
  if (!isOrdered || (places.at(-1) ?? 0) > numbers.length)
    throw new RangeError("protobuf: an output: expected offsets that lie in its numbers")
  return places.slice(1).map((end, at) => numbers.slice(places[at], end))
}

/** The output of a loss, as a client receives it: the log-probabilities of the targets of each example, and the metrics. */
export interface ReceivedLoss {
  readonly logProbabilities: ReadonlyArray<Float32Array>
  readonly metrics: Readonly<Record<string, number>>
}

/** Decodes what `encodeLossOutput` has encoded. Throws a `RangeError` if the bytes are no such message. */
export const decodeLossOutput = (bytes: Uint8Array): ReceivedLoss => {
  const logProbabilities: Array<Float32Array> = []
  const metrics = new Map<string, number>()
  const budget: FieldBudget = { left: mostFields }
  for (const field of countedFields(bytes, budget)) {
    if (field.field === 3) metrics.set(...entryIn(field, budget, { decode: doubleIn, otherwise: 0 }))
    if (field.field !== 2) continue
    for (const part of countedFields(bytesIn(field), budget)) {
      if (part.field !== 2) continue
      const [name, examples] = entryIn(part, budget, { decode: examplesIn, otherwise: [] })
      if (name === "logprobs") for (const one of examples) logProbabilities.push(one)
      if (logProbabilities.length > most.data)
        throw new RangeError(`protobuf: an output: expected at most ${most.data} examples, found more`)
    }
  }
  return { logProbabilities, metrics: Object.fromEntries(metrics) }
}

/** Decodes the sequences of what `encodeSampleOutput` has encoded. Throws a `RangeError` if the bytes are no such message. */
export const decodeSequences = (bytes: Uint8Array): SampleOutput["sequences"] => {
  const sequences: Array<SampleOutput["sequences"][number]> = []
  const budget: FieldBudget = { left: mostFields }
  for (const field of countedFields(bytes, budget)) {
    if (field.field !== 1) continue
    let isCut = false
    let tokens = new Int32Array(0)
    let logprobs = new Float32Array(0)
    for (const part of countedFields(bytesIn(field), budget)) {
      if (part.field === 1) isCut = numberIn(part) !== 0
      else if (part.field === 2) tokens = new Int32Array(aligned(bytesIn(part), 4, "tokens"))
      else if (part.field === 3) logprobs = new Float32Array(aligned(bytesIn(part), 4, "logprobs"))
    }
    sequences.push({ stop_reason: isCut ? "length" : "stop", tokens: [...tokens], logprobs: [...logprobs] })
  }
  return sequences
}

/** The numbers that fill the places without likeliest tokens. */
const noCandidate = { id: 0, logprob: -99_999 }

/** Encodes the output of sampling. */
export const encodeSampleOutput = ({
  sequences,
  prompt_logprobs: prompt,
  topk_prompt_logprobs: topk,
}: SampleOutput): Uint8Array => {
  const message = new ProtobufMessage()
  for (const { stop_reason, tokens, logprobs } of sequences)
    message.message(
      1,
      new ProtobufMessage()
        .int(1, stop_reason === "stop" ? 0 : 1)
        .bytes(2, bytesOf(Int32Array.from(tokens)))
        .bytes(3, bytesOf(Float32Array.from(logprobs))),
    )
  if (prompt !== null) message.bytes(2, bytesOf(Float32Array.from(prompt, (one) => one ?? NaN)))
  if (topk !== null) {
    const most = topk.reduce((k, candidates) => Math.max(k, candidates?.length ?? 0), 0)
    const ids = new Int32Array(topk.length * most).fill(noCandidate.id)
    const logprobs = new Float32Array(topk.length * most).fill(noCandidate.logprob)
    topk.forEach((candidates, place) =>
      candidates?.forEach(([id, logprob], rank) => {
        ids[place * most + rank] = id
        logprobs[place * most + rank] = logprob
      }),
    )
    const table = new ProtobufMessage().bytes(1, bytesOf(ids)).bytes(2, bytesOf(logprobs)).int(3, most)
    message.message(3, table.int(4, topk.length))
  }
  return message.finish()
}
