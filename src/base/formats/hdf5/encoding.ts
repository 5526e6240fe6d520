/**
 * Encodes the pieces of an HDF5 file as bytes, for `Hdf5.ts`, as the HDF Group's "HDF5 File Format Specification"
 * (version 3.0) describes them. The comments name the sections of that document. All numbers are little-endian;
 * addresses and lengths take 8 bytes.
 */
import { joined as join } from "../../text/bytes.ts"
import { lookup3 } from "./lookup3.ts"
import { utf8 } from "../../text/utf8.ts"

const integer =
  (width: number) =>
  (value: number): Uint8Array => {
    const bytes = new Uint8Array(width)
    let rest = value
    for (let index = 0; index < width; index++) {
      bytes[index] = rest % 256
      rest = Math.floor(rest / 256)
    }
    return bytes
  }
const u16 = integer(2)
const u32 = integer(4)
const u64 = integer(8)
const bytes = (...values: ReadonlyArray<number>): Uint8Array => Uint8Array.from(values)
const text = (value: string): Uint8Array => utf8.encode(value)

/** The address that HDF5 calls undefined: all bits are 1. */
const nowhere = new Uint8Array(8).fill(0xff)

/** Appends zeros up to a multiple of eight bytes. */
const padded = (data: Uint8Array): Uint8Array => {
  const missing = -data.length & 7
  return missing === 0 ? data : join([data, new Uint8Array(missing)])
}

/** Joins parts and appends their checksum. */
const sealed = (...parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const data = join(parts)
  return join([data, u32(lookup3(data))])
}

export const superblockSize = 48

/** Encodes the superblock (the head of a file; section II.A), version 2. `root` is the address of the root group. */
export const superblock = (end: number, root: number): Uint8Array =>
  sealed(bytes(0x89), text("HDF\r\n"), bytes(0x1a, 0x0a), bytes(2, 8, 8, 0), u64(0), nowhere, u64(end), u64(root))

/** A message: a part of an object's header, with one property of a group or dataset, such as its shape. */
export interface HeaderMessage {
  readonly type: number
  readonly flags?: number
  readonly data: Uint8Array
}

/** The largest length of a message, which is written in 16 bits. */
export const longestMessage = 0xffff

/**
 * Encodes the header of an object, which is a group or a dataset (section IV.A.1.b), version 2: all messages are in one
 * chunk, whose size takes 4 bytes. The header has no timestamps, so that equal trees give equal bytes.
 */
export const objectHeader = (messages: ReadonlyArray<HeaderMessage>): Uint8Array => {
  const written = join(
    messages.map(({ type, flags = 0, data }) => join([bytes(type), u16(data.length), bytes(flags), data])),
  )
  return sealed(text("OHDR"), bytes(2, 0b10), u32(written.length), written)
}

/** Encodes a heap collection (section III.E), which numbers its texts from 1. Readers expect at least 4096 bytes. */
export const heapCollection = (texts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const objects = join(
    texts.map((data, index) => join([u16(index + 1), u16(1), new Uint8Array(4), u64(data.length), padded(data)])),
  )
  const header = 16 // the size of the collection's own header, and of the header of each object in it
  // The rest of the collection is object 0, the free space, whose size includes the object's header.
  const free = Math.max(header, 4096 - header - objects.length)
  const size = header + objects.length + free
  const rest = join([u16(0), u16(0), new Uint8Array(4), u64(free), new Uint8Array(free - header)])
  return join([text("GCOL"), bytes(1, 0, 0, 0), u64(size), objects, rest])
}

/** Encodes the shape of a dataset (section IV.A.2.b), version 2; the 0 or 1 means a single number or an array. */
const dataspace = (shape: ReadonlyArray<number>): Uint8Array =>
  join([bytes(2, shape.length, 0, shape.length === 0 ? 0 : 1), ...shape.map(u64)])

/** The arrays that a dataset can hold; a Uint8Array holds booleans, each 0 or 1. */
export type DatasetNumbers = Float32Array | Float64Array | Int32Array | Uint8Array

/**
 * Encodes a type of IEEE 754 numbers (section IV.A.2.d). The sign is the highest bit; the exponent and the fraction, of these
 * numbers of bits, are below it.
 */
const float = (size: number, exponentBits: number, fractionBits: number): Uint8Array =>
  join([
    bytes(0x11, 0x20, 8 * size - 1, 0),
    u32(size),
    u16(0),
    u16(8 * size),
    bytes(fractionBits, exponentBits, 0, fractionBits),
    u32(2 ** (exponentBits - 1) - 1),
  ])

/** Encodes a type of signed whole numbers (section IV.A.2.d). */
const signed = (size: number): Uint8Array => join([bytes(0x10, 0x08, 0, 0), u32(size), u16(0), u16(8 * size)])

/** The type of booleans as h5py writes them: an enumeration (section IV.A.2.d) of FALSE and TRUE over one byte. */
const boolean = join([
  bytes(0x18, 2, 0, 0),
  u32(1),
  signed(1),
  padded(join([text("FALSE"), bytes(0)])),
  padded(join([text("TRUE"), bytes(0)])),
  bytes(0, 1),
])

const typeOf = (data: DatasetNumbers): Uint8Array => {
  if (data instanceof Float32Array) return float(4, 8, 23)
  if (data instanceof Float64Array) return float(8, 11, 52)
  return data instanceof Int32Array ? signed(4) : boolean
}

/**
 * The type of UTF-8 text of any length (section IV.A.2.d): a sequence of unsigned bytes. A value of this type is the
 * text's place in a heap collection.
 */
const anyText = join([bytes(0x19, 0x01, 0x01, 0x00), u32(16), bytes(0x10, 0, 0, 0), u32(1), u16(0), u16(8)])

/** The place of a text in the heap: its collection, and its number in that collection. */
export interface TextPlace {
  readonly length: number
  readonly collection: number
  readonly index: number
}

const reference = ({ length, collection, index }: TextPlace): Uint8Array =>
  join([u32(length), u64(collection), u32(index)])

/** The code that says that a name is in UTF-8. */
const utf8Name = 1

/**
 * Says that an object keeps its attributes in its header (section IV.A.2.v). Without this message, HDF5's library finds
 * no attributes.
 */
export const attributeInfo: HeaderMessage = { type: 0x15, flags: 4, data: join([bytes(0, 0), nowhere, nowhere]) }

/** Encodes an attribute (section IV.A.2.m), version 3. Its value is one text, or one whole number from 0. */
export const attribute = (name: string, value: TextPlace | number): HeaderMessage => {
  const zeroEnded = join([text(name), bytes(0)])
  const scalar = dataspace([])
  const type = typeof value === "number" ? signed(8) : anyText
  const sizes = join([u16(zeroEnded.length), u16(type.length), u16(scalar.length)])
  const encoded = typeof value === "number" ? u64(value) : reference(value)
  return { type: 0x0c, data: join([bytes(3, 0), sizes, bytes(utf8Name), zeroEnded, type, scalar, encoded]) }
}

/** The messages of a group: its links, which name its children, are in its header (sections IV.A.2.c and k). */
export const groupMessages: ReadonlyArray<HeaderMessage> = [
  { type: 0x02, data: join([bytes(0, 0), nowhere, nowhere]) },
  { type: 0x0a, flags: 1, data: bytes(0, 0) },
]

/** Encodes a hard link (section IV.A.2.g): the name and address of a group's child. The name's length takes 2 bytes. */
export const link = (name: string, address: number): HeaderMessage => {
  const named = text(name)
  return { type: 0x06, data: join([bytes(1, 0b10001, utf8Name), u16(named.length), named, u64(address)]) }
}

/**
 * Encodes the messages of a dataset (sections IV.A.2.b, d, f and i): its shape, its number type, its fill value,
 * and its place in the file. There is no fill value: 0b1010 says only that space is allocated late, and that a fill
 * value would be written if it were set.
 */
export const datasetMessages = (
  shape: ReadonlyArray<number>,
  data: DatasetNumbers,
  place: { readonly address: number; readonly size: number },
): ReadonlyArray<HeaderMessage> => [
  { type: 0x01, data: dataspace(shape) },
  { type: 0x03, flags: 1, data: typeOf(data) },
  { type: 0x05, flags: 1, data: bytes(3, 0b1010) },
  { type: 0x08, data: join([bytes(3, 1), place.size === 0 ? nowhere : u64(place.address), u64(place.size)]) },
]
