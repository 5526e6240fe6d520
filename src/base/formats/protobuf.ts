import { joined } from "../text/bytes.ts"
import { utf8 } from "../text/utf8.ts"

/**
 * Encodes a protobuf message, with the features that ONNX models, event files and W&B's logs need. `int`, `text` and so
 * on append a field with its number, and `finish` returns the bytes of the message. A field begins with its number
 * times eight plus a code for its type: 0 for a varint (an integer, seven bits in each byte), 1 for eight bytes, 2 for
 * a length followed by that many bytes, and 5 for four bytes.
 *
 * @example
 * ```ts
 * new ProtobufMessage().text(1, "loss").int(2, 300).finish() // 0a 04 6c 6f 73 73 10 ac 02
 * ```
 */
export class ProtobufMessage {
  private readonly parts: Array<Uint8Array> = []

  private push(bytes: Uint8Array): this {
    this.parts.push(bytes)
    return this
  }

  private varint(value: number): this {
    const bytes: Array<number> = []
    let rest = value
    if (value < 0) {
      // Negative numbers are written in 64-bit two's complement, in ten bytes.
      let bits = BigInt.asUintN(64, BigInt(value))
      for (; bits >= 128n; bits >>= 7n) bytes.push(Number(bits & 127n) | 128)
      rest = Number(bits)
    }
    for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 128)
    bytes.push(rest)
    return this.push(Uint8Array.from(bytes))
  }

  int(field: number, value: number): this {
    return this.varint(field * 8).varint(value)
  }

  float(field: number, value: number): this {
    return this.varint(field * 8 + 5).push(new Uint8Array(Float32Array.of(value).buffer))
  }

  double(field: number, value: number): this {
    return this.varint(field * 8 + 1).push(new Uint8Array(Float64Array.of(value).buffer))
  }

  bytes(field: number, value: Uint8Array): this {
    return this.varint(field * 8 + 2)
      .varint(value.length)
      .push(value)
  }

  text(field: number, value: string): this {
    return this.bytes(field, utf8.encode(value))
  }

  /** Appends fields that are encoded already. */
  fields(encoded: Uint8Array): this {
    return this.push(encoded)
  }

  message(field: number, value: ProtobufMessage): this {
    return this.bytes(field, value.finish())
  }

  finish(): Uint8Array {
    return joined(this.parts)
  }
}

/**
 * A field of a message: its number, and its value: bytes (of a text, a message or a fixed-size number) or a whole
 * number.
 */
export interface ProtobufField {
  readonly field: number
  readonly value: Uint8Array | number
}

/** The numbers of bytes of values of a fixed size, by their wire types. */
const fixedLengths: Readonly<Record<number, number | undefined>> = { 1: 8, 5: 4 }

/**
 * Yields the fields of a message in their order. Throws a RangeError if the bytes are no message.
 *
 * @example
 * ```ts
 * [...fieldsOf(new ProtobufMessage().int(2, 300).finish())] // [{ field: 2, value: 300 }]
 * ```
 */
export function* fieldsOf(bytes: Uint8Array): Generator<ProtobufField, void> {
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      if (at >= bytes.length || scale > 2 ** 63) throw new RangeError("protobuf: the bytes are no message")
      const byte = bytes[at++]
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  while (at < bytes.length) {
    const key = varint()
    const type = key % 8
    if (type === 0) {
      yield { field: Math.floor(key / 8), value: varint() }
      continue
    }
    const length = type === 2 ? varint() : (fixedLengths[type] ?? NaN)
    if (!(at + length <= bytes.length)) throw new RangeError("protobuf: the bytes are no message")
    yield { field: Math.floor(key / 8), value: bytes.subarray(at, at + length) }
    at += length
  }
}
