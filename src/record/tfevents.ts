/**
 * TensorBoard's event files: records of a length, its checksum, a protobuf `Event`, and its checksum.
 *
 * @example
 * ```ts
 * const file = [header(0), scalars(0, 128, { "losses/entropy": 0.69 })]
 * ```
 */

const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = (value >>> 1) ^ ((value & 1) === 0 ? 0 : 0x82f63b78)
  return value
})

/** The Castagnoli checksum. */
export const crc32c = (bytes: Uint8Array): number => {
  let crc = 0xffffffff
  for (const byte of bytes) crc = (crc >>> 8) ^ crcTable[(crc ^ byte) & 0xff]
  return (crc ^ 0xffffffff) >>> 0
}

/** TFRecord's mask: a checksum of data that holds checksums would be weak. */
const masked = (crc: number): number => (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0

const record = (payload: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(payload.length + 16)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, payload.length, true)
  view.setUint32(8, masked(crc32c(bytes.subarray(0, 8))), true)
  bytes.set(payload, 12)
  view.setUint32(12 + payload.length, masked(crc32c(payload)), true)
  return bytes
}

const encoder = new TextEncoder()

const varint = (value: number): Array<number> => {
  const bytes: Array<number> = []
  let rest = value
  while (rest >= 128) {
    bytes.push((rest % 128) | 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return bytes
}

/** wall_time is field 1, a double. */
const event = (wallSeconds: number, fields: ReadonlyArray<number>): Uint8Array => {
  const bytes = new Uint8Array(9 + fields.length)
  bytes[0] = 0x09
  new DataView(bytes.buffer).setFloat64(1, wallSeconds, true)
  bytes.set(fields, 9)
  return record(bytes)
}

/** What every file begins with. */
export const header = (wallSeconds: number): Uint8Array => {
  const version = encoder.encode("brain.Event:2")
  return event(wallSeconds, [0x1a, version.length, ...version])
}

const tags = new Map<string, ReadonlyArray<number>>()

/** Field 1 of a Summary.Value: its tag, encoded once. */
const tagField = (tag: string): ReadonlyArray<number> => {
  const known = tags.get(tag)
  if (known !== undefined) return known
  const bytes = encoder.encode(tag)
  const field = [0x0a, ...varint(bytes.length), ...bytes]
  tags.set(tag, field)
  return field
}

const float = new DataView(new ArrayBuffer(4))

/** Scalars of one step in one event. */
export const scalars = (wallSeconds: number, step: number, values: Readonly<Record<string, number>>): Uint8Array => {
  const summary: Array<number> = []
  for (const tag in values) {
    const name = tagField(tag)
    float.setFloat32(0, values[tag], true)
    summary.push(0x0a, ...varint(name.length + 5), ...name, 0x15)
    for (let byte = 0; byte < 4; byte++) summary.push(float.getUint8(byte))
  }
  return event(wallSeconds, [0x10, ...varint(step), 0x2a, ...varint(summary.length), ...summary])
}
