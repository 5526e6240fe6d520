/**
 * The safetensors format: a little-endian length, a JSON header, and the tensors' bytes one after another. Readable by
 * Python's `safetensors` and everything built on it.
 *
 * @example
 * ```ts
 * const bytes = encode({ weight: { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) } }, { format: "pt" })
 * decode(bytes).weight.data // the same numbers
 * metadata(bytes) // { format: "pt" }
 * ```
 */
import { Schema } from "effect"
import { numberKinds, type TensorArray } from "./numbers.ts"

export type { TensorArray } from "./numbers.ts"

export interface TensorEntry {
  readonly shape: ReadonlyArray<number>
  readonly data: TensorArray
}

export type Tensors = Readonly<Record<string, TensorEntry>>

/** Bytes that are no such file, or tensors that cannot be one: what is wrong with them. */
export class SafetensorsError extends Schema.TaggedError<SafetensorsError>()("SafetensorsError", {
  message: Schema.String,
}) {}

/** What is written; more kinds are read. */
const kindOf = (data: TensorArray): keyof typeof numberKinds =>
  data instanceof Float32Array
    ? "F32"
    : data instanceof Float64Array
      ? "F64"
      : data instanceof Int32Array
        ? "I32"
        : "U8"

const Size = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Header = Schema.Record(
  Schema.String,
  Schema.Struct({
    dtype: Schema.Literals(["F64", "I64", "F32", "I32", "F16", "BF16", "I16", "I8", "U8", "BOOL"]),
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

const elements = (shape: ReadonlyArray<number>): number => shape.reduce((product, dimension) => product * dimension, 1)

/**
 * Throws a SafetensorsError. Wide numbers come first, so that every tensor begins at a multiple of its numbers' width,
 * then by name: the same tensors give the same bytes, in whatever order they come.
 */
export const encode = (tensors: Tensors, metadata: Readonly<Record<string, string>> = {}): Uint8Array => {
  const entries = Object.entries(tensors)
    .map(([name, { shape, data }]) => ({ name, shape, data, kind: kindOf(data) }))
    .sort((a, b) => numberKinds[b.kind].width - numberKinds[a.kind].width || (a.name < b.name ? -1 : 1))
  const described: Array<readonly [string, unknown]> = Object.keys(metadata).length > 0 ? [[metadataKey, metadata]] : []
  let size = 0
  for (const { name, shape, data, kind } of entries) {
    if (name === metadataKey) complain(`a tensor cannot be named "${metadataKey}"`)
    if (elements(shape) !== data.length) {
      complain(`tensor "${name}" has ${data.length} numbers, its shape [${shape.join(", ")}] needs ${elements(shape)}`)
    }
    described.push([name, { dtype: kind, shape, data_offsets: [size, size + data.byteLength] }])
    size += data.byteLength
  }
  const header = new TextEncoder().encode(JSON.stringify(Object.fromEntries(described)))
  // Padded with spaces, so that the numbers begin at a multiple of eight.
  const padded = Math.ceil(header.length / 8) * 8
  if (padded > largestHeader) complain(`the header would have ${padded} bytes; ${largestHeader} are allowed`)
  const bytes = new Uint8Array(8 + padded + size).fill(0x20, 8, 8 + padded)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true)
  bytes.set(header, 8)
  let at = 8 + padded
  for (const { data } of entries) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at)
    at += data.byteLength
  }
  return bytes
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
    const size = elements(shape) * numberKinds[dtype].width
    if (start !== end) complain(`tensor "${name}" begins at ${start}, expected ${end}`)
    if (stop - start !== size) {
      complain(`tensor "${name}" has ${stop - start} bytes, its shape [${shape.join(", ")}] needs ${size}`)
    }
    if (stop > data.length) complain(`tensor "${name}" ends at ${stop}, beyond the ${data.length} bytes of data`)
    end = stop
    return [name, { shape, data: numberKinds[dtype].read(new Uint8Array(data.subarray(start, stop))) }] as const
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
  const text = new TextDecoder().decode(bytes.subarray(8, 8 + length))
  const header = checked((): unknown => JSON.parse(text), "the header is not JSON")
  // It begins with "{", so it is an object.
  return { header: { ...(typeof header === "object" ? header : {}) }, data: bytes.subarray(8 + length) }
}

/** Other kinds of error as ours, in one line. */
const checked = <A>(read: () => A, what: string): A => {
  try {
    return read()
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/\s*\n\s*/g, "; ") : String(error)
    return complain(`${what}: ${why}`)
  }
}
