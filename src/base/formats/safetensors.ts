/**
 * Encodes and decodes safetensors files in memory: the header's length (little-endian), a JSON header, then the bytes
 * of the tensors. Python's `safetensors` can read these files. `Weights.ts` loads and saves them.
 *
 * Tensors are held in four kinds of typed array. If the number type in the file is another, such as BF16, `dtype` names
 * it, and the tensor is written in that type again. See `dtypes.ts`.
 *
 * @example
 * ```ts
 * const bytes = encode({ weight: { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) } }, { format: "pt" })
 * decode(bytes).weight.data // the same numbers
 * metadata(bytes) // { format: "pt" }
 * ```
 */
import * as Schema from "effect/Schema"
import { joined } from "../text/bytes.ts"
import { jsonValue, messageOf } from "../text/text.ts"
import { codecs, type Dtype, dtypeOf, dtypes, elements, type TensorArray } from "./dtypes.ts"
import { repeatedKey } from "./repeatedKey.ts"
import { utf8 } from "../text/utf8.ts"
import { FormatError } from "./FormatError.ts"

export type { Dtype, TensorArray } from "./dtypes.ts"

export interface TensorEntry {
  readonly shape: ReadonlyArray<number>
  readonly data: TensorArray
  /** The number type in the file, if it is not the array's own type, e.g. BF16 for a Float32Array. */
  readonly dtype?: Dtype | undefined
}

export type TensorEntries = Readonly<Record<string, TensorEntry>>

const Size = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Header = Schema.Record(
  Schema.String,
  Schema.Struct({
    dtype: Schema.String,
    shape: Schema.Array(Size),
    data_offsets: Schema.Tuple([Size, Size]),
  }),
)
const decodeHeader = Schema.decodeUnknownSync(Header)
const decodeMetadata = Schema.decodeUnknownSync(Schema.Record(Schema.String, Schema.String))

const metadataKey = "__metadata__"
/** The largest header, in bytes, that Python's `safetensors` accepts. */
const largestHeader = 100_000_000
/**
 * The largest number of tensors in a file. The largest published models have about 100,000 tensors, over many files.
 */
const mostTensors = 200_000

const refuse = (message: string): never => {
  throw new FormatError({ message })
}

/** Returns the number type that a tensor has in a file. */
/** Returns the number type in which a tensor is stored. */
export const dtypeIn = ({ dtype, data }: TensorEntry): Dtype => dtype ?? dtypeOf(data)

/** Returns the number of bytes that a tensor has in a file. */
export const byteLength = (tensor: TensorEntry): number => tensor.data.length * codecs[dtypeIn(tensor)].width

/**
 * Encodes tensors as the bytes of a file. They are sorted as Python's `safetensors` does it: by number type, wide types
 * first, so that every tensor is aligned, and then by name. So the order of the argument's keys does not change the
 * bytes. Throws a `FormatError`.
 */
export const encode = (tensors: TensorEntries, metadata: Readonly<Record<string, string>> = {}): Uint8Array =>
  joined([...encodeParts(tensors, metadata)])

/**
 * Yields the bytes of `encode` in parts, first the header and then each tensor, for tensors that are too large to be in
 * memory twice. The tensors must not change until the generator has ended. It throws a `FormatError`.
 */
export function* encodeParts(
  tensors: TensorEntries,
  metadata: Readonly<Record<string, string>> = {},
): Generator<Uint8Array, void> {
  const entries = Object.entries(tensors)
    .map(([name, tensor]) => ({ name, ...tensor, kind: dtypeIn(tensor), size: byteLength(tensor) }))
    .sort((a, b) => dtypes.indexOf(a.kind) - dtypes.indexOf(b.kind) || (a.name < b.name ? -1 : 1))
  const described: Array<readonly [string, unknown]> = Object.keys(metadata).length > 0 ? [[metadataKey, metadata]] : []
  let end = 0
  for (const { name, shape, data, kind, size } of entries) {
    if (name === metadataKey) refuse(`a tensor cannot be named "${metadataKey}"`)
    if (elements(shape) !== data.length) {
      refuse(`tensor "${name}" has ${data.length} numbers, its shape [${shape.join(", ")}] needs ${elements(shape)}`)
    }
    described.push([name, { dtype: kind, shape, data_offsets: [end, end + size] }])
    end += size
  }
  // The JSON is joined by hand, because a JavaScript object would put names that are integers first.
  const fields = described.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  const header = utf8.encode(`{${fields.join(",")}}`)
  // The header is padded with spaces, so that the data begin at a multiple of eight.
  const padded = Math.ceil(header.length / 8) * 8
  if (padded > largestHeader) refuse(`the header would have ${padded} bytes; expected at most ${largestHeader}`)
  const head = new Uint8Array(8 + padded).fill(0x20, 8)
  new DataView(head.buffer).setBigUint64(0, BigInt(padded), true)
  head.set(header, 8)
  yield head
  for (const { name, data, kind } of entries) {
    yield checked(() => codecs[kind].encode(data), `tensor "${name}" cannot be written as ${kind}`)
  }
}

/** The position of a tensor's bytes in a file, with their number type and shape. */
export interface TensorPlace {
  readonly dtype: Dtype
  readonly shape: ReadonlyArray<number>
  /** The position of the first byte in the file. */
  readonly offset: number
  readonly bytes: number
}

/** Returns the number of bytes before a file's tensors, from the first 8 bytes of the file. Throws a `FormatError`. */
export const headerLength = (first: Uint8Array, fileSize: number): number => {
  if (fileSize < 8) refuse(`the file has ${fileSize} bytes, expected at least 8`)
  const length = Number(new DataView(first.buffer, first.byteOffset, 8).getBigUint64(0, true))
  if (length > largestHeader) refuse(`the header has ${length} bytes; expected at most ${largestHeader}`)
  if (8 + length > fileSize) refuse(`the header's ${length} bytes do not fit in the file's ${fileSize}`)
  return 8 + length
}

/**
 * Returns the places of all tensors by name, in the order of the file. `head` is the bytes before the first tensor,
 * whose number `headerLength` returns. Throws a `FormatError`, also if tensors overlap or do not fill the file.
 */
export const placesIn = (head: Uint8Array, fileSize: number): ReadonlyMap<string, TensorPlace> => {
  const { [metadataKey]: _, ...described } = headerIn(head)
  const count = Object.keys(described).length
  if (count > mostTensors) refuse(`the file has ${count} tensors; expected at most ${mostTensors}`)
  const entries = Object.entries(checked(() => decodeHeader(described), "the header does not describe tensors")).sort(
    ([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1],
  )
  const data = fileSize - head.length
  const places = new Map<string, TensorPlace>()
  let end = 0
  for (const [name, { dtype, shape, data_offsets }] of entries) {
    const [start, stop] = data_offsets
    const kind = dtypes.find((name) => name === dtype)
    if (kind === undefined) {
      return refuse(`tensor "${name}" has the unknown dtype ${dtype}; expected one of ${dtypes.join(", ")}`)
    }
    const size = elements(shape) * codecs[kind].width
    if (start !== end) refuse(`tensor "${name}" begins at ${start}, expected ${end}`)
    if (stop - start !== size) {
      refuse(`tensor "${name}" has ${stop - start} bytes, its shape [${shape.join(", ")}] needs ${size}`)
    }
    if (stop > data) refuse(`tensor "${name}" ends at ${stop}, beyond the ${data} bytes of data`)
    end = stop
    places.set(name, { dtype: kind, shape, offset: head.length + start, bytes: size })
  }
  if (end !== data) refuse(`expected the file to end after the last tensor, found ${data - end} more bytes`)
  return places
}

/** Decodes the bytes of one tensor. Throws a `FormatError`. */
export const decodeTensor = (name: string, { dtype, shape }: TensorPlace, bytes: Uint8Array): TensorEntry => {
  const numbers = checked(() => codecs[dtype].decode(bytes), `tensor "${name}"`)
  return { shape, data: numbers, ...(dtype === dtypeOf(numbers) ? {} : { dtype }) }
}

/** Returns the bytes of `encode` in parts, like `encodeParts`, but as a value that can be iterated more than once. */
export const partsOf = (
  tensors: TensorEntries,
  metadata: Readonly<Record<string, string>> = {},
): Iterable<Uint8Array> => ({
  [Symbol.iterator]: () => encodeParts(tensors, metadata),
})

/** Decodes a file to tensors by name. Throws a `FormatError`, also if tensors overlap or do not fill the file. */
export const decode = (bytes: Uint8Array): TensorEntries => {
  const places = placesIn(headOf(bytes), bytes.length)
  return Object.fromEntries(
    Array.from(places, ([name, place]) => [
      name,
      decodeTensor(name, place, bytes.subarray(place.offset, place.offset + place.bytes)),
    ]),
  )
}

/** Returns the metadata of a file: texts by name. Throws a `FormatError`. */
export const metadata = (bytes: Uint8Array): Readonly<Record<string, string>> => {
  const header = headerIn(headOf(bytes))
  if (!Object.hasOwn(header, metadataKey)) return {}
  return checked(() => decodeMetadata(header[metadataKey]), "expected metadata of texts by name")
}

const headOf = (bytes: Uint8Array): Uint8Array => bytes.subarray(0, headerLength(bytes, bytes.length))

/** Parses the header of a file, from all bytes before the tensors. */
const headerIn = (head: Uint8Array): Readonly<Record<string, unknown>> => {
  if (head[8] !== 0x7b) refuse(`the header does not begin with "{"`)
  const text = checked(() => utf8.decodeExact(head.subarray(8)), "the header is not UTF-8")
  const header = checked(() => jsonValue(text), "the header is not JSON")
  const repeated = repeatedKey(text)
  if (repeated !== undefined) refuse(`the header has "${repeated}" twice`)
  // The text begins with "{", so the value is an object.
  return { ...(typeof header === "object" ? header : {}) }
}

/** Returns the result of `read`. If it throws, throws a `FormatError` whose message begins with `what`. */
const checked = <A>(read: () => A, what: string): A => {
  try {
    return read()
  } catch (error) {
    return refuse(`${what}: ${messageOf(error)}`)
  }
}
