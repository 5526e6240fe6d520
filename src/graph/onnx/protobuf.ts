import { utf8 } from "../../config/utf8.ts"
/** Writes protobuf's wire format, as far as ONNX models need it: varints and length-delimited fields. */
export class Message {
  private readonly parts: Array<Uint8Array> = []
  private size = 0

  private push(bytes: Uint8Array): this {
    this.parts.push(bytes)
    this.size += bytes.length
    return this
  }

  private varint(value: number): this {
    const bytes: Array<number> = []
    // Negative numbers are written in 64-bit two's complement.
    let rest = value < 0 ? BigInt.asUintN(64, BigInt(value)) : BigInt(value)
    while (rest >= 128n) {
      bytes.push(Number(rest & 127n) | 128)
      rest >>= 7n
    }
    bytes.push(Number(rest))
    return this.push(Uint8Array.from(bytes))
  }

  int(field: number, value: number): this {
    return this.varint(field * 8).varint(value)
  }

  bytes(field: number, value: Uint8Array): this {
    return this.varint(field * 8 + 2)
      .varint(value.length)
      .push(value)
  }

  text(field: number, value: string): this {
    return this.bytes(field, utf8.encode(value))
  }

  message(field: number, value: Message): this {
    return this.bytes(field, value.finish())
  }

  finish(): Uint8Array {
    const out = new Uint8Array(this.size)
    let at = 0
    for (const part of this.parts) {
      out.set(part, at)
      at += part.length
    }
    return out
  }
}
