/**
 * Converts the numbers of GGUF files to 32-bit floats. Quantized numbers are in blocks, each with integers and the factors
 * that make numbers of them. The results have the bits of llama.cpp's: all products are rounded to 32 bits.
 */
import { codecs } from "./dtypes.ts"

export interface BlockType {
  /** The number of the type in the format. */
  readonly id: number
  readonly name: string
  /** The number of numbers in a block. */
  readonly numbers: number
  /** The number of bytes of a block. */
  readonly bytes: number
  /** Decodes one block: reads from the byte `from` on, and writes from the index `to` on. Undefined for plain numbers. */
  readonly decode?: (bytes: DataView, from: number, data: Float32Array, to: number) => void
}

const { fround } = Math

/** Reads a half float. */
const half = (view: DataView, at: number): number =>
  codecs.F16.decode(new Uint8Array(view.buffer, view.byteOffset + at, 2))[0]

const decodeQ8_0: BlockType["decode"] = (view, from, data, to) => {
  const scale = half(view, from)
  for (let index = 0; index < 32; index++) data[to + index] = scale * view.getInt8(from + 2 + index)
}

/** Returns the scale and the minimum, 6 bits each, of one of the eight parts of a block, which are in twelve bytes. */
const scaleAndMinimum = (view: DataView, at: number, part: number): readonly [number, number] => {
  const byte = (index: number): number => view.getUint8(at + index)
  if (part < 4) return [byte(part) & 63, byte(part + 4) & 63]
  return [(byte(part + 4) & 15) | ((byte(part - 4) >> 6) << 4), (byte(part + 4) >> 4) | ((byte(part) >> 6) << 4)]
}

const decodeQ4_K: BlockType["decode"] = (view, from, data, to) => {
  const [scale, minimum] = [half(view, from), half(view, from + 2)]
  for (let part = 0; part < 8; part++) {
    const [ofScale, ofMinimum] = scaleAndMinimum(view, from + 4, part)
    const [factor, shift] = [fround(scale * ofScale), fround(minimum * ofMinimum)]
    // Two parts share 32 bytes: the lower half bytes are the first part, the upper ones the second.
    const first = from + 16 + Math.floor(part / 2) * 32
    for (let index = 0; index < 32; index++) {
      const byte = view.getUint8(first + index)
      data[to + part * 32 + index] = fround(factor * (part % 2 === 0 ? byte & 15 : byte >> 4)) - shift
    }
  }
}

const decodeQ6_K: BlockType["decode"] = (view, from, data, to) => {
  const scale = half(view, from + 208)
  for (let index = 0; index < 256; index++) {
    // Each half of a block has 64 bytes with the lower four bits of its numbers, and 32 bytes with the upper two.
    const [part, at] = [index >> 7, index & 127]
    const lower = view.getUint8(from + part * 64 + (at & 63)) >> (at < 64 ? 0 : 4)
    const upper = view.getUint8(from + 128 + part * 32 + (at & 31)) >> (2 * (at >> 5))
    const integer = ((lower & 15) | ((upper & 3) << 4)) - 32
    data[to + index] = fround(scale * view.getInt8(from + 192 + (index >> 4))) * integer
  }
}

/** The types of numbers that are read. */
export const blockTypes: ReadonlyArray<BlockType> = [
  { id: 0, name: "F32", numbers: 1, bytes: 4 },
  { id: 1, name: "F16", numbers: 1, bytes: 2 },
  { id: 30, name: "BF16", numbers: 1, bytes: 2 },
  { id: 8, name: "Q8_0", numbers: 32, bytes: 34, decode: decodeQ8_0 },
  { id: 12, name: "Q4_K", numbers: 256, bytes: 144, decode: decodeQ4_K },
  { id: 14, name: "Q6_K", numbers: 256, bytes: 210, decode: decodeQ6_K },
]

/** Decodes the bytes of a tensor. */
export const decodeBlocks = ({ name, numbers, bytes: width, decode }: BlockType, bytes: Uint8Array): Float32Array => {
  if (decode === undefined) {
    const codec = name === "F32" ? codecs.F32 : name === "F16" ? codecs.F16 : codecs.BF16
    return Float32Array.from(codec.decode(bytes))
  }
  const blocks = bytes.length / width
  const data = new Float32Array(blocks * numbers)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let block = 0; block < blocks; block++) decode(view, block * width, data, block * numbers)
  return data
}
