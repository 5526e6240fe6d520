/**
 * Encodes and decodes the bytes of TensorBoard's event files; it touches no files. `run/record/` writes the files, and
 * the dashboard reads them. A file is a list of records: each is the length of an event, the checksum of the length,
 * the event (a protobuf message), and the checksum of the event.
 *
 * @example
 * ```ts
 * const file = new ByteWriter()
 * writeHeader(file, 0)
 * writeScalars(file, 0, 128, { "losses/entropy": 0.69 })
 * decode(file.written).events[1].scalars // { "losses/entropy": 0.6899999976158142 }
 * ```
 */
import { utf8 } from "../text/utf8.ts"
import type { ByteWriter } from "./ByteWriter.ts"
import { crcOf } from "./crc.ts"
import { type ProtobufField, fieldsOf, ProtobufMessage } from "./protobuf.ts"

/** Computes the CRC-32C (Castagnoli's variant of the CRC-32), the checksum of event files. */
export const crc32c = crcOf(0x82f63b78)

/** Masks a CRC as the event file format (TFRecord) requires, because the CRC of data that contains CRCs is weak. */
const masked = (crc: number): number => (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0

/**
 * The number of bytes in a record before its event (the payload): eight for the length of the payload, and four for the
 * CRC of the length. After the payload come four bytes with its CRC.
 */
const beforePayload = 12

/** Writes one record: the time of the event, then its other fields, which `writeOtherFields` writes. */
const record = (to: ByteWriter, wallSeconds: number, writeOtherFields: () => void): void => {
  const start = to.length
  // Leave twelve bytes for the length and its CRC, which are set below, when the length is known.
  for (let word = 0; word < 3; word++) to.uint32(0)
  // Write Event.wall_time, which is field 1, a double.
  to.byte(0x09)
  to.float64(wallSeconds)
  writeOtherFields()
  to.setUint32(start, to.length - start - beforePayload)
  to.setUint32(start + 8, masked(crc32c(to.bytes, start, start + 8)))
  to.uint32(masked(crc32c(to.bytes, start + beforePayload, to.length)))
}

/** The bytes of Event.file_version: 0x1a begins a text in field 3, and 0x0d is its length. */
const version = utf8.encode("\u001a\u000dbrain.Event:2")

/** Writes the first record of every file, which holds the version of the format. */
export const writeHeader = (to: ByteWriter, wallSeconds: number): void =>
  record(to, wallSeconds, () => to.piece(version))

const prefixes = new Map<string, Uint8Array>()

/** Returns the bytes of Summary.value (field 1) before its number: they hold the tag (1) and begin simple_value (2). */
const prefixOf = (tag: string): Uint8Array => {
  const cached = prefixes.get(tag)
  if (cached !== undefined) return cached
  const prefix = new ProtobufMessage().message(1, new ProtobufMessage().text(1, tag).float(2, 0)).finish().slice(0, -4)
  prefixes.set(tag, prefix)
  return prefix
}

/** Writes the scalars of one step as one event: 0x10 begins Event.step (field 2), and 0x2a Event.summary (field 5). */
export const writeScalars = (
  to: ByteWriter,
  wallSeconds: number,
  step: number,
  values: Readonly<Record<string, number>>,
): void =>
  record(to, wallSeconds, () => {
    let size = 0
    for (const tag in values) size += prefixOf(tag).length + 4
    to.byte(0x10)
    to.varint(step)
    to.byte(0x2a)
    to.varint(size)
    for (const tag in values) {
      to.piece(prefixOf(tag))
      to.float32(values[tag])
    }
  })

/**
 * Writes an event with data for a plugin of TensorBoard and without a number: Summary.value holds the tag (field 1), an
 * empty tensor (field 8) and `metadata` (field 9), whose content the plugin defines.
 */
export const writeSummary = (to: ByteWriter, wallSeconds: number, tag: string, metadata: Uint8Array): void => {
  const value = new ProtobufMessage().text(1, tag).bytes(8, emptyTensor).bytes(9, metadata)
  const summary = new ProtobufMessage().message(5, new ProtobufMessage().message(1, value))
  record(to, wallSeconds, () => to.piece(summary.finish()))
}

/**
 * A tensor without numbers, as TensorBoard writes it if a tensor is required but not used: its type (field 1) is
 * float32, and its shape (field 2) has one dimension of size 0.
 */
const emptyTensor = Uint8Array.of(0x08, 1, 0x12, 2, 0x12, 0)

export interface DecodedEvent {
  readonly wallSeconds: number
  readonly step: number
  readonly fileVersion?: string
  readonly scalars: Readonly<Record<string, number>>
  /** The metadata for plugins, by tag (see `writeSummary`); left out if the event has none. */
  readonly metadata?: Readonly<Record<string, Uint8Array>>
}

interface DecodedEvents {
  readonly events: ReadonlyArray<DecodedEvent>
  /** The number of bytes of whole records; a record that is damaged or cut off may follow them. */
  readonly intactBytes: number
}

/** Yields each record's payload, and the position after the record; stops at one that is cut off or damaged. */
function* payloadsOf(bytes: Uint8Array): Generator<{ readonly payload: Uint8Array; readonly end: number }, void> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let at = 0; at + beforePayload + 4 <= bytes.length;) {
    const start = at + beforePayload
    const end = start + Number(view.getBigUint64(at, true))
    if (end + 4 > bytes.length || view.getUint32(at + 8, true) !== masked(crc32c(bytes, at, at + 8))) return
    if (view.getUint32(end, true) !== masked(crc32c(bytes, start, end))) return
    at = end + 4
    yield { payload: bytes.subarray(start, end), end: at }
  }
}

/** Returns the number of bytes before the first record that is cut off, damaged, or of a step after `lastStep`. */
export const intactBytes = (bytes: Uint8Array, lastStep = Infinity): number => {
  let intact = 0
  for (const { payload, end } of payloadsOf(bytes)) {
    if (decodeEvent(payload).step > lastStep) return intact
    intact = end
  }
  return intact
}

/** Reads a file up to the first record that is damaged, or cut off because its writer was stopped. */
export const decode = (bytes: Uint8Array): DecodedEvents => {
  const records = [...payloadsOf(bytes)]
  return { events: records.map(({ payload }) => decodeEvent(payload)), intactBytes: records.at(-1)?.end ?? 0 }
}

type Fields = ReadonlyMap<number, number | Uint8Array>

/** Parses a message, up to a field that is damaged or of an unknown type. */
const fieldsIn = (message: Uint8Array): ReadonlyArray<ProtobufField> => {
  const fields: Array<ProtobufField> = []
  try {
    for (const field of fieldsOf(message)) fields.push(field)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
  return fields
}

const asMap = (fields: ReadonlyArray<ProtobufField>): Fields =>
  new Map(fields.map(({ field, value }) => [field, value]))

/** Returns a varint, double or float; 0 if there is none. */
const numberIn = (fields: Fields, number: number): number => {
  const value = fields.get(number) ?? 0
  if (typeof value === "number") return value
  const view = new DataView(value.buffer, value.byteOffset, value.byteLength)
  return value.length === 8 ? view.getFloat64(0, true) : value.length === 4 ? view.getFloat32(0, true) : 0
}

const bytesIn = (fields: Fields, number: number): Uint8Array => {
  const value = fields.get(number)
  return value instanceof Uint8Array ? value : new Uint8Array(0)
}

const decodeEvent = (payload: Uint8Array): DecodedEvent => {
  const event = asMap(fieldsIn(payload))
  const values = fieldsIn(bytesIn(event, 5)).map(({ value }) => asMap(typeof value === "number" ? [] : fieldsIn(value)))
  const tagOf = (value: Fields): string => utf8.decode(bytesIn(value, 1))
  // A value without a number (simple_value, field 2) is for a plugin.
  const [plugins, scalars] = [values.filter((value) => !value.has(2)), values.filter((value) => value.has(2))]
  return {
    wallSeconds: numberIn(event, 1),
    step: numberIn(event, 2),
    ...(event.has(3) ? { fileVersion: utf8.decode(bytesIn(event, 3)) } : {}),
    scalars: Object.fromEntries(scalars.map((value) => [tagOf(value), numberIn(value, 2)])),
    ...(plugins.length === 0
      ? {}
      : { metadata: Object.fromEntries(plugins.map((value) => [tagOf(value), bytesIn(value, 9)])) }),
  }
}
