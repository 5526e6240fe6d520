/**
 * Converts the numbers of tensor files (safetensors, PyTorch) between bytes, which are little-endian, and typed arrays.
 * Files have 13 types of numbers; four kinds of typed array hold them exactly: half floats become a Float32Array, small
 * integers an Int32Array, and large integers a Float64Array. Integers beyond ±2^53 are refused, not rounded.
 *
 * @example
 * ```ts
 * codecs.BF16.decode(Uint8Array.of(0x80, 0x3f)) // Float32Array [1]
 * ```
 */
import { Struct } from "effect"

export type TensorArray = Float32Array | Float64Array | Int32Array | Uint8Array

interface Codec {
  /** The number of bytes per number. */
  readonly width: number
  /** Decodes bytes to a new array. Throws a RangeError if the array cannot hold a number exactly. */
  readonly decode: (bytes: Uint8Array) => TensorArray
  /**
   * Encodes numbers, perhaps as a view of `data` without a copy. Throws a RangeError if a number is not of this type.
   * Floats are rounded to the nearest, ties to even.
   */
  readonly encode: (data: TensorArray) => Uint8Array
}

/** A class of typed arrays. In memory, their bytes are as in files: all machines that we run on are little-endian. */
interface ArrayClass<A> {
  new (length: number): A
  new (buffer: ArrayBuffer): A
  readonly BYTES_PER_ELEMENT: number
}

const bytesOf = (data: ArrayBufferView): Uint8Array => new Uint8Array(data.buffer, data.byteOffset, data.byteLength)

/** Copies bytes to a new buffer, because a typed array can only begin at a multiple of its element size. */
const ownBuffer = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer

/**
 * Makes the codec of a number type whose bytes are an array of the class `Stored`, while memory holds an array of the
 * class `Held`.
 */
const converting = <N>(
  Stored: ArrayClass<ArrayBufferView & { readonly length: number; [index: number]: N }>,
  Held: ArrayClass<TensorArray>,
  decodeOne: (value: N) => number,
  encodeOne: (value: number) => N,
): Codec => ({
  width: Stored.BYTES_PER_ELEMENT,
  decode: (bytes) => {
    const values = new Stored(ownBuffer(bytes))
    const data = new Held(values.length)
    for (let index = 0; index < data.length; index++) data[index] = decodeOne(values[index])
    return data
  },
  encode: (data) => {
    const values = new Stored(data.length)
    for (let index = 0; index < data.length; index++) values[index] = encodeOne(data[index])
    return bytesOf(values)
  },
})

const same = (value: number): number => value

/** Makes the codec of a number type that has its own array class (`Own`), so that no conversion is needed. */
const natural = (Own: ArrayClass<TensorArray>, encodeOne: (value: number) => number): Codec => {
  const other = converting(Own, Own, same, encodeOne)
  return {
    ...other,
    decode: (bytes) => new Own(ownBuffer(bytes)),
    encode: (data) => (data instanceof Own ? bytesOf(data) : other.encode(data)),
  }
}

const integer =
  (name: string, least: number, most: number) =>
  (value: number): number => {
    if (Number.isInteger(value) && value >= least && value <= most) return value
    throw new RangeError(`${value} is not a ${name}`)
  }

const unsigned64 = integer("U64", 0, Number.MAX_SAFE_INTEGER)
const signed64 = integer("I64", Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)

/** Converts a 64-bit integer to a number; throws a RangeError if that would round. */
const exact = (value: bigint): number => {
  const rounded = Number(value)
  if (Number.isSafeInteger(rounded)) return rounded
  throw new RangeError(`${value} is beyond ±2^53, where float64 is not exact`)
}

/** Converts between floats and their bits: one is written to these bytes, and the other is read from them. */
const bits = new DataView(new ArrayBuffer(8))

/** Divides by `step` and rounds to the nearest integer, ties to even. */
const nearest = (value: number, step: number): number => {
  const down = Math.floor(value / step)
  const rest = value / step - down
  return rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down
}

/** Makes a function that encodes a 16-bit float: a sign, `exponentBits` bits of exponent, and a fraction. */
const toSmallFloat = (exponentBits: number) => {
  const fractionBits = 15 - exponentBits
  const bias = 2 ** (exponentBits - 1) - 1
  const infinity = (2 ** exponentBits - 1) << fractionBits
  return (value: number): number => {
    if (Number.isNaN(value)) return infinity + 2 ** (fractionBits - 1)
    bits.setFloat64(0, value)
    const high = bits.getUint32(0)
    const exponent = Math.max(1 - bias, ((high >>> 20) & 0x7ff) - 1023)
    const fraction = nearest(Math.abs(value), 2 ** (exponent - fractionBits))
    // `fraction` of a normal float includes the leading 1, which is not stored: adding it raises the exponent by 1, so
    // 1 is subtracted. If rounding makes the fraction too large, adding it raises the exponent once more, as it should.
    const size = (exponent + bias - 1) * 2 ** fractionBits + fraction
    return ((high >>> 31) << 15) | Math.min(size, infinity)
  }
}

/** Decodes a half float (F16): a sign, 5 bits of exponent, and 10 bits of fraction. */
const fromHalf = (half: number): number => {
  const sign = half & 0x8000 ? -1 : 1
  const exponent = (half >> 10) & 0x1f
  const fraction = half & 0x3ff
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25))
}

/** Decodes a bfloat16 (BF16), which is the upper half of a 32-bit float. */
const fromBrain = (brain: number): number => {
  bits.setUint32(0, brain << 16)
  return bits.getFloat32(0)
}

/** The codecs of the number types, by their names in safetensors, whose files hold tensors in this order of types. */
export const codecs = {
  U64: converting(BigUint64Array, Float64Array, exact, (value) => BigInt(unsigned64(value))),
  I64: converting(BigInt64Array, Float64Array, exact, (value) => BigInt(signed64(value))),
  F64: natural(Float64Array, same),
  F32: natural(Float32Array, same),
  U32: converting(Uint32Array, Float64Array, same, integer("U32", 0, 2 ** 32 - 1)),
  I32: natural(Int32Array, integer("I32", -(2 ** 31), 2 ** 31 - 1)),
  BF16: converting(Uint16Array, Float32Array, fromBrain, toSmallFloat(8)),
  F16: converting(Uint16Array, Float32Array, fromHalf, toSmallFloat(5)),
  U16: converting(Uint16Array, Int32Array, same, integer("U16", 0, 2 ** 16 - 1)),
  I16: converting(Int16Array, Int32Array, same, integer("I16", -(2 ** 15), 2 ** 15 - 1)),
  I8: converting(Int8Array, Int32Array, same, integer("I8", -128, 127)),
  U8: natural(Uint8Array, integer("U8", 0, 255)),
  BOOL: converting(Uint8Array, Uint8Array, (value) => (value === 0 ? 0 : 1), integer("BOOL", 0, 1)),
}

export type Dtype = keyof typeof codecs
export const dtypes: ReadonlyArray<Dtype> = Struct.keys(codecs)

/** Returns the number type of an array's own elements, e.g. F32 for a Float32Array. */
export const dtypeOf = (data: TensorArray): Dtype => {
  if (data instanceof Float32Array) return "F32"
  if (data instanceof Float64Array) return "F64"
  return data instanceof Int32Array ? "I32" : "U8"
}

/** Returns the number of elements of a shape. */
export const elements = (shape: ReadonlyArray<number>): number =>
  shape.reduce((product, dimension) => product * dimension, 1)
