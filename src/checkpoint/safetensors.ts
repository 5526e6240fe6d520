import { Schema } from "effect"

/**
 * The safetensors format: a little-endian length, a JSON header, and the tensors' bytes one after another. Readable by
 * Python's `safetensors` and everything built on it.
 *
 * @example
 * ```ts
 * const bytes = encode({ weight: { shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) } })
 * decode(bytes).weight.data // the same numbers
 * ```
 */
export type TensorArray = Float32Array | Float64Array | Int32Array | Uint8Array

export type Tensors = Readonly<Record<string, { readonly shape: ReadonlyArray<number>; readonly data: TensorArray }>>

/** Bytes that are no such file: what is wrong with them. */
export class SafetensorsError extends Schema.TaggedError<SafetensorsError>()("SafetensorsError", {
  message: Schema.String,
}) {}

const kinds = {
  F32: { width: 4, read: (bytes: ArrayBuffer) => new Float32Array(bytes) },
  F64: { width: 8, read: (bytes: ArrayBuffer) => new Float64Array(bytes) },
  I32: { width: 4, read: (bytes: ArrayBuffer) => new Int32Array(bytes) },
  U8: { width: 1, read: (bytes: ArrayBuffer) => new Uint8Array(bytes) },
} as const

const kindOf = (data: TensorArray): keyof typeof kinds =>
  data instanceof Float32Array
    ? "F32"
    : data instanceof Float64Array
      ? "F64"
      : data instanceof Int32Array
        ? "I32"
        : "U8"

const Header = Schema.Record(
  Schema.String,
  Schema.Struct({
    dtype: Schema.Literals(["F32", "F64", "I32", "U8"]),
    shape: Schema.Array(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))),
    data_offsets: Schema.Tuple([Schema.Int, Schema.Int]),
  }),
)
const decodeHeader = Schema.decodeUnknownSync(Header)

const largestHeader = 100_000_000

export const encode = (tensors: Tensors, metadata: Readonly<Record<string, string>> = {}): Uint8Array => {
  let offset = 0
  const header: Record<string, unknown> = Object.keys(metadata).length === 0 ? {} : { __metadata__: metadata }
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    header[name] = { dtype: kindOf(data), shape, data_offsets: [offset, offset + data.byteLength] }
    offset += data.byteLength
  }
  const text = JSON.stringify(header)
  const encoded = new TextEncoder().encode(text)
  // Padded with spaces, so that the numbers begin at a multiple of eight.
  const padded = Math.ceil(encoded.length / 8) * 8
  const bytes = new Uint8Array(8 + padded + offset).fill(0x20, 8, 8 + padded)
  new DataView(bytes.buffer).setBigUint64(0, BigInt(padded), true)
  bytes.set(encoded, 8)
  let at = 8 + padded
  for (const { data } of Object.values(tensors)) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at)
    at += data.byteLength
  }
  return bytes
}

/** Throws a SafetensorsError. Every byte must be accounted for: no holes, no overlaps, nothing after the end. */
export const decode = (bytes: Uint8Array): Tensors => {
  const complain = (message: string): never => {
    throw new SafetensorsError({ message })
  }
  if (bytes.length < 8) complain(`the file has ${bytes.length} bytes, less than its first field`)
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true))
  if (length > largestHeader || 8 + length > bytes.length)
    complain(`the header's ${length} bytes do not fit in the file's ${bytes.length}`)
  const { __metadata__: _, ...described } = parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)), complain)
  const entries = Object.entries(headerOf(described, complain)).sort(
    ([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0],
  )
  const data = bytes.subarray(8 + length)
  let end = 0
  const tensors = entries.map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [start, stop],
      },
    ]) => {
      const size = shape.reduce((product, dimension) => product * dimension, 1) * kinds[dtype].width
      if (start !== end) complain(`tensor "${name}" begins at ${start}, expected ${end}`)
      if (stop - start !== size)
        complain(`tensor "${name}" has ${stop - start} bytes, its shape [${shape.join(", ")}] needs ${size}`)
      if (stop > data.length) complain(`tensor "${name}" ends at ${stop}, beyond the ${data.length} bytes of data`)
      end = stop
      return [name, { shape, data: kinds[dtype].read(new Uint8Array(data.subarray(start, stop)).buffer) }] as const
    },
  )
  if (end !== data.length) complain(`${data.length - end} bytes after the last tensor`)
  return Object.fromEntries(tensors)
}

const parse = (text: string, complain: (message: string) => never): { readonly [key: string]: unknown } => {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value }
  } catch {
    // said below
  }
  return complain("the header is not a JSON object")
}

const headerOf = (described: unknown, complain: (message: string) => never): typeof Header.Type => {
  try {
    return decodeHeader(described)
  } catch (error) {
    return complain(
      `the header does not describe tensors: ${error instanceof Error ? error.message.replace(/\s+/g, " ") : String(error)}`,
    )
  }
}
