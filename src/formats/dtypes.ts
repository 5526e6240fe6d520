/**
 * Number types of tensor files, and the four typed arrays that hold their values exactly: half floats widen to Float32Array,
 * small integers to Int32Array. Numbers that need more than 32 bits are held in a Float64Array; integers beyond ±2^53 are
 * refused, not rounded. Files are little-endian.
 *
 * @example
 * ```ts
 * codecs.BF16.decode(Uint8Array.of(0x80, 0x3f)) // Float32Array [1]
 * ```
 */
export type TensorArray = Float32Array | Float64Array | Int32Array | Uint8Array

/** The names of number types in safetensors. */
export const dtypes = [
  "U64",
  "I64",
  "F64",
  "F32",
  "U32",
  "I32",
  "BF16",
  "F16",
  "U16",
  "I16",
  "I8",
  "U8",
  "BOOL",
] as const
export type Dtype = (typeof dtypes)[number]

interface Codec {
  /** The number of bytes per number. */
  readonly width: number
  /** Copies the numbers. Throws a RangeError if a number cannot be held exactly. */
  readonly decode: (bytes: Uint8Array) => TensorArray
  /**
   * Encodes numbers. Throws a RangeError if a number is not of this type. Floats are rounded to the nearest, ties to even.
   */
  readonly encode: (data: TensorArray) => Uint8Array
}

const bytesOf = (data: ArrayBufferView): Uint8Array => new Uint8Array(data.buffer, data.byteOffset, data.byteLength)

/** Copies bytes to a buffer of their own, so that an array of any type is aligned. */
const ownBuffer = (bytes: Uint8Array): ArrayBuffer => new Uint8Array(bytes).buffer

/** Makes a codec that reads and writes one number at a time, through a DataView. */
const numberwise = (
  width: number,
  make: (length: number) => TensorArray,
  read: (view: DataView, at: number) => number,
  write: (view: DataView, at: number, value: number) => void,
): Codec => ({
  width,
  decode: (bytes) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const data = make(bytes.length / width)
    for (let index = 0; index < data.length; index++) data[index] = read(view, index * width)
    return data
  },
  encode: (data) => {
    const view = new DataView(new ArrayBuffer(data.length * width))
    for (let index = 0; index < data.length; index++) write(view, index * width, data[index])
    return bytesOf(view)
  },
})

/** Makes the codec of a type that has its own typed array: its bytes are copied without conversion. */
const natural = (
  other: Codec,
  isOwn: (data: TensorArray) => boolean,
  wrap: (buffer: ArrayBuffer) => TensorArray,
): Codec => ({
  width: other.width,
  decode: (bytes) => wrap(ownBuffer(bytes)),
  encode: (data) => (isOwn(data) ? bytesOf(data) : other.encode(data)),
})

const integer =
  (name: Dtype, least: number, most: number, write: (view: DataView, at: number, value: number) => void) =>
  (view: DataView, at: number, value: number): void => {
    if (!Number.isInteger(value) || value < least || value > most) throw new RangeError(`${value} is not a ${name}`)
    write(view, at, value)
  }

const exact = (value: bigint): number => {
  const rounded = Number(value)
  if (Number.isSafeInteger(rounded)) return rounded
  throw new RangeError(`${value} is beyond ±2^53, where float64 is not exact`)
}

const bits = new DataView(new ArrayBuffer(8))

/** Divides by `step` and rounds to the nearest integer, ties to even. */
const nearest = (value: number, step: number): number => {
  const down = Math.floor(value / step)
  const rest = value / step - down
  return rest > 0.5 || (rest === 0.5 && down % 2 === 1) ? down + 1 : down
}

/** Encodes a number as a float of 16 bits: a sign, `exponentBits` bits of exponent, and the other bits for the fraction. */
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
    // The implicit leading bit of the fraction adds the 1 that is subtracted from the exponent; a carry does too.
    const size = (exponent + bias - 1) * 2 ** fractionBits + fraction
    return ((high >>> 31) << 15) | Math.min(size, infinity)
  }
}
const toHalf = toSmallFloat(5)
const toBrain = toSmallFloat(8)

const fromHalf = (half: number): number => {
  const sign = half & 0x8000 ? -1 : 1
  const exponent = (half >> 10) & 0x1f
  const fraction = half & 0x3ff
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25))
}

/** Decodes the upper half of a 32-bit float. */
const fromBrain = (brain: number): number => {
  bits.setUint32(0, brain << 16)
  return bits.getFloat32(0)
}

const floats = (length: number): TensorArray => new Float32Array(length)
const doubles = (length: number): TensorArray => new Float64Array(length)
const ints = (length: number): TensorArray => new Int32Array(length)
const smalls = (length: number): TensorArray => new Uint8Array(length)

export const codecs: Readonly<Record<Dtype, Codec>> = {
  U64: numberwise(
    8,
    doubles,
    (view, at) => exact(view.getBigUint64(at, true)),
    integer("U64", 0, Number.MAX_SAFE_INTEGER, (view, at, value) => view.setBigUint64(at, BigInt(value), true)),
  ),
  I64: numberwise(
    8,
    doubles,
    (view, at) => exact(view.getBigInt64(at, true)),
    integer("I64", Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, (view, at, value) =>
      view.setBigInt64(at, BigInt(value), true),
    ),
  ),
  F64: natural(
    numberwise(
      8,
      doubles,
      (view, at) => view.getFloat64(at, true),
      (view, at, value) => view.setFloat64(at, value, true),
    ),
    (data) => data instanceof Float64Array,
    (buffer) => new Float64Array(buffer),
  ),
  F32: natural(
    numberwise(
      4,
      floats,
      (view, at) => view.getFloat32(at, true),
      (view, at, value) => view.setFloat32(at, value, true),
    ),
    (data) => data instanceof Float32Array,
    (buffer) => new Float32Array(buffer),
  ),
  U32: numberwise(
    4,
    doubles,
    (view, at) => view.getUint32(at, true),
    integer("U32", 0, 2 ** 32 - 1, (view, at, value) => view.setUint32(at, value, true)),
  ),
  I32: natural(
    numberwise(
      4,
      ints,
      (view, at) => view.getInt32(at, true),
      integer("I32", -(2 ** 31), 2 ** 31 - 1, (view, at, value) => view.setInt32(at, value, true)),
    ),
    (data) => data instanceof Int32Array,
    (buffer) => new Int32Array(buffer),
  ),
  BF16: numberwise(
    2,
    floats,
    (view, at) => fromBrain(view.getUint16(at, true)),
    (view, at, value) => view.setUint16(at, toBrain(value), true),
  ),
  F16: numberwise(
    2,
    floats,
    (view, at) => fromHalf(view.getUint16(at, true)),
    (view, at, value) => view.setUint16(at, toHalf(value), true),
  ),
  U16: numberwise(
    2,
    ints,
    (view, at) => view.getUint16(at, true),
    integer("U16", 0, 2 ** 16 - 1, (view, at, value) => view.setUint16(at, value, true)),
  ),
  I16: numberwise(
    2,
    ints,
    (view, at) => view.getInt16(at, true),
    integer("I16", -(2 ** 15), 2 ** 15 - 1, (view, at, value) => view.setInt16(at, value, true)),
  ),
  I8: numberwise(
    1,
    ints,
    (view, at) => view.getInt8(at),
    integer("I8", -128, 127, (view, at, value) => view.setInt8(at, value)),
  ),
  U8: natural(
    numberwise(
      1,
      smalls,
      (view, at) => view.getUint8(at),
      integer("U8", 0, 255, (view, at, value) => view.setUint8(at, value)),
    ),
    (data) => data instanceof Uint8Array,
    (buffer) => new Uint8Array(buffer),
  ),
  BOOL: numberwise(
    1,
    smalls,
    (view, at) => (view.getUint8(at) === 0 ? 0 : 1),
    integer("BOOL", 0, 1, (view, at, value) => view.setUint8(at, value)),
  ),
}

/** Returns the number type that holds an array without conversion. */
export const dtypeOf = (data: TensorArray): Dtype =>
  data instanceof Float32Array
    ? "F32"
    : data instanceof Float64Array
      ? "F64"
      : data instanceof Int32Array
        ? "I32"
        : "U8"

/** Returns the number of elements of a shape. */
export const elements = (shape: ReadonlyArray<number>): number =>
  shape.reduce((product, dimension) => product * dimension, 1)
