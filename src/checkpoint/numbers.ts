/**
 * The kinds of number that weight files have, as the typed arrays that JavaScript has: half floats become float32,
 * small integers become int32, and 64-bit integers become float64, which holds them exactly up to 2⁵³.
 */
export type TensorArray = Float32Array | Float64Array | Int32Array | Uint8Array

export interface NumberReader {
  /** Bytes a number. */
  readonly width: number
  /** Of bytes that are nobody else's. */
  readonly read: (bytes: Uint8Array<ArrayBuffer>) => TensorArray
}

const aligned = (bytes: Uint8Array<ArrayBuffer>): ArrayBuffer =>
  bytes.byteOffset === 0 && bytes.byteLength === bytes.buffer.byteLength ? bytes.buffer : bytes.slice().buffer

/** IEEE half precision. */
const half = (bits: number): number => {
  const sign = bits & 0x8000 ? -1 : 1
  const exponent = (bits >> 10) & 0x1f
  const fraction = bits & 0x3ff
  if (exponent === 0) return sign * fraction * 2 ** -24
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN
  return sign * (1024 + fraction) * 2 ** (exponent - 25)
}

const widened = (bytes: Uint8Array<ArrayBuffer>): Float32Array => {
  // A brain float is the upper half of a float32.
  const short = new Uint16Array(aligned(bytes))
  const bits = new Uint32Array(short.length)
  for (let index = 0; index < short.length; index++) bits[index] = short[index] << 16
  return new Float32Array(bits.buffer)
}

export const numberKinds = {
  F64: { width: 8, read: (bytes) => new Float64Array(aligned(bytes)) },
  I64: { width: 8, read: (bytes) => Float64Array.from(new BigInt64Array(aligned(bytes)), Number) },
  F32: { width: 4, read: (bytes) => new Float32Array(aligned(bytes)) },
  I32: { width: 4, read: (bytes) => new Int32Array(aligned(bytes)) },
  F16: { width: 2, read: (bytes) => Float32Array.from(new Uint16Array(aligned(bytes)), half) },
  BF16: { width: 2, read: widened },
  I16: { width: 2, read: (bytes) => Int32Array.from(new Int16Array(aligned(bytes))) },
  I8: { width: 1, read: (bytes) => Int32Array.from(new Int8Array(aligned(bytes))) },
  U8: { width: 1, read: (bytes) => new Uint8Array(aligned(bytes)) },
  BOOL: { width: 1, read: (bytes) => new Uint8Array(aligned(bytes)) },
} as const satisfies Readonly<Record<string, NumberReader>>

export type NumberKind = keyof typeof numberKinds
