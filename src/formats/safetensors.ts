/**
 * The safetensors format: a little-endian length, a JSON header, and the tensors' bytes one after another. Readable by
 * Python's `safetensors` and everything built on it.
 *
 * Tensors come in four kinds of array; where the file's kind is another, such as BF16, `dtype` says so, and such a
 * tensor is written in that kind again. `dtypes.ts` says which array holds what.
 *
 * @example
 * ```ts
 * const bytes = encode({ weight: { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) } }, { format: "pt" })
 * decode(bytes).weight.data // the same numbers
 * metadata(bytes) // { format: "pt" }
 * ```
 */
import { Schema } from "effect"
import { messageOf } from "../config/text.ts"
import { codecs, type Dtype, dtypeOf, dtypes, elements, type TensorArray } from "./dtypes.ts"
import { repeatedKey } from "./repeatedKey.ts"
import { utf8 } from "../config/utf8.ts"

export type { Dtype, TensorArray } from "./dtypes.ts"

export interface TensorEntry {
  readonly shape: ReadonlyArray<number>
  readonly data: TensorArray
  /** The kind in the file, where the array does not say it. */
  readonly dtype?: Dtype | undefined
}

export type Tensors = Readonly<Record<string, TensorEntry>>

/** Bytes that are no such file, or tensors that cannot be one: what is wrong with them. */
export class SafetensorsError extends Schema.TaggedError<SafetensorsError>()("SafetensorsError", {
  message: Schema.String,
}) {}

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
const largestHeader = 100_000_000

const complain = (message: string): never => {
  throw new SafetensorsError({ message })
}

/** Its kind in a file. */
const kindOf = ({ dtype, data }: TensorEntry): Dtype => dtype ?? dtypeOf(data)

/** How many bytes its numbers take in a file. */
export const byteLength = (tensor: TensorEntry): number => tensor.data.length * codecs[kindOf(tensor)].width

/**
 * Throws a SafetensorsError. In the reference implementation's order: kinds from wide to narrow, so that every tensor
 * begins at a multiple of its numbers' width, then names. The same tensors give the same bytes, in whatever order.
 */
export const encode = (tensors: Tensors, metadata: Readonly<Record<string, string>> = {}): Uint8Array => {
  const parts = [...encodeParts(tensors, metadata)]
  const bytes = new Uint8Array(parts.reduce((size, part) => size + part.length, 0))
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return bytes
}

/**
 * The same bytes part by part, for tensors so large that there is no room for them twice: the header, then each tensor's
 * own memory, which must stay as it is until the last part was taken. What is wrong is thrown when its turn comes.
 */
export function* encodeParts(
  tensors: Tensors,
  metadata: Readonly<Record<string, string>> = {},
): Generator<Uint8Array, void> {
  const entries = Object.entries(tensors)
    .map(([name, tensor]) => ({ name, ...tensor, kind: kindOf(tensor), size: byteLength(tensor) }))
    .sort((a, b) => dtypes.indexOf(a.kind) - dtypes.indexOf(b.kind) || (a.name < b.name ? -1 : 1))
  const described: Array<readonly [string, unknown]> = Object.keys(metadata).length > 0 ? [[metadataKey, metadata]] : []
  let end = 0
  for (const { name, shape, data, kind, size } of entries) {
    if (name === metadataKey) complain(`a tensor cannot be named "${metadataKey}"`)
    if (elements(shape) !== data.length) {
      complain(`tensor "${name}" has ${data.length} numbers, its shape [${shape.join(", ")}] needs ${elements(shape)}`)
    }
    described.push([name, { dtype: kind, shape, data_offsets: [end, end + size] }])
    end += size
  }
  // Not as one object, which would put names that are numbers first.
  const fields = described.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`)
  const header = utf8.encode(`{${fields.join(",")}}`)
  // Padded with spaces, so that the numbers begin at a multiple of eight.
  const padded = Math.ceil(header.length / 8) * 8
  if (padded > largestHeader) complain(`the header would have ${padded} bytes; ${largestHeader} are allowed`)
  const head = new Uint8Array(8 + padded).fill(0x20, 8)
  new DataView(head.buffer).setBigUint64(0, BigInt(padded), true)
  head.set(header, 8)
  yield head
  for (const { name, data, kind } of entries) {
    yield checked(() => codecs[kind].encode(data), `tensor "${name}" cannot be ${kind}`)
  }
}

/** Throws a SafetensorsError. Every byte must be accounted for: no holes, no overlaps, nothing after the end. */
export const decode = (bytes: Uint8Array): Tensors => {
  const { header, data } = split(bytes)
  const { [metadataKey]: _, ...described } = header
  const entries = Object.entries(checked(() => decodeHeader(described), "the header does not describe tensors")).sort(
    ([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1],
  )
  let end = 0
  const tensors = entries.map(([name, { dtype, shape, data_offsets }]) => {
    const [start, stop] = data_offsets
    const kind = dtypes.find((known) => known === dtype)
    if (kind === undefined) {
      return complain(`tensor "${name}" has the kind ${dtype}; those that can be read are ${dtypes.join(", ")}`)
    }
    const size = elements(shape) * codecs[kind].width
    if (start !== end) complain(`tensor "${name}" begins at ${start}, expected ${end}`)
    if (stop - start !== size) {
      complain(`tensor "${name}" has ${stop - start} bytes, its shape [${shape.join(", ")}] needs ${size}`)
    }
    if (stop > data.length) complain(`tensor "${name}" ends at ${stop}, beyond the ${data.length} bytes of data`)
    end = stop
    const numbers = checked(() => codecs[kind].decode(data.subarray(start, stop)), `tensor "${name}"`)
    return [name, { shape, data: numbers, ...(kind === dtypeOf(numbers) ? {} : { dtype: kind }) }] as const
  })
  if (end !== data.length) complain(`${data.length - end} bytes after the last tensor`)
  return Object.fromEntries(tensors)
}

/** What a file says of itself, beside its tensors. Throws a SafetensorsError. */
export const metadata = (bytes: Uint8Array): Readonly<Record<string, string>> => {
  const { header } = split(bytes)
  if (!Object.hasOwn(header, metadataKey)) return {}
  return checked(() => decodeMetadata(header[metadataKey]), "the metadata is not text by name")
}

const split = (
  bytes: Uint8Array,
): { readonly header: Readonly<Record<string, unknown>>; readonly data: Uint8Array } => {
  if (bytes.length < 8) complain(`the file has ${bytes.length} bytes, less than its first field`)
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true))
  if (length > largestHeader) complain(`a header of ${length} bytes; ${largestHeader} are allowed`)
  if (8 + length > bytes.length) complain(`the header's ${length} bytes do not fit in the file's ${bytes.length}`)
  if (bytes[8] !== 0x7b) complain(`the header does not begin with "{"`)
  const text = checked(() => utf8.decodeExact(bytes.subarray(8, 8 + length)), "the header is not UTF-8")
  const header = checked((): unknown => JSON.parse(text), "the header is not JSON")
  const repeated = repeatedKey(text)
  if (repeated !== undefined) complain(`the header has "${repeated}" twice`)
  // It begins with "{", so it is an object.
  return { header: { ...(typeof header === "object" ? header : {}) }, data: bytes.subarray(8 + length) }
}

/** Other kinds of error as ours, in one line. */
const checked = <A>(read: () => A, what: string): A => {
  try {
    return read()
  } catch (error) {
    return complain(`${what}: ${messageOf(error)}`)
  }
}
