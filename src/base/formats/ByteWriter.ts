/**
 * Collects bytes in one buffer in memory, which grows as needed and is reused after `clear`. It writes no file: the
 * writers of event files, score files and WebAssembly modules take the bytes from `written`. It is optimised, since a
 * training can log a hundred thousand records per second.
 *
 * @example
 * ```ts
 * const to = new ByteWriter()
 * to.text(`{"score":`)
 * to.json(21.5)
 * to.text("}\n")
 * new TextDecoder().decode(to.written) // {"score":21.5}
 * ```
 */
const utf8 = new TextEncoder()

/** The largest number of bytes that a loop copies faster than `Uint8Array.set` does. */
const smallPiece = 24

export class ByteWriter {
  bytes: Uint8Array
  private view: DataView
  length = 0

  constructor(capacity = 1024) {
    this.bytes = new Uint8Array(capacity)
    this.view = new DataView(this.bytes.buffer)
  }

  /** A view of the bytes written so far, not a copy: writing after `clear` overwrites them. */
  get written(): Uint8Array {
    return this.bytes.subarray(0, this.length)
  }

  clear(): void {
    this.length = 0
  }

  /** Enlarges the buffer if `more` further bytes do not fit. The methods that append call it, so callers need not. */
  reserve(more: number): void {
    if (this.length + more <= this.bytes.length) return
    const bytes = new Uint8Array(Math.max(2 * this.bytes.length, this.length + more))
    bytes.set(this.written)
    this.bytes = bytes
    this.view = new DataView(bytes.buffer)
  }

  byte(value: number): void {
    this.reserve(1)
    this.bytes[this.length++] = value
  }

  piece(piece: Uint8Array): void {
    const size = piece.length
    this.reserve(size)
    const { bytes, length } = this
    if (size > smallPiece) bytes.set(piece, length)
    else for (let at = 0; at < size; at++) bytes[length + at] = piece[at]
    this.length = length + size
  }

  text(text: string): void {
    // A UTF-16 unit takes at most three bytes in UTF-8.
    this.reserve(3 * text.length)
    this.length += utf8.encodeInto(text, this.bytes.subarray(this.length)).written
  }

  /** Writes a number as JSON. NaN and the infinities become `null`. */
  json(value: number): void {
    if (value >= 0 && value <= 0x7fffffff && (value | 0) === value) return this.digits(value | 0)
    const text = Number.isFinite(value) ? String(value) : "null"
    this.reserve(text.length)
    for (let at = 0; at < text.length; at++) this.bytes[this.length++] = text.charCodeAt(at)
  }

  private digits(value: number): void {
    let size = 1
    for (let limit = 10; size < 10 && value >= limit; limit *= 10) size++
    this.reserve(size)
    let rest = value
    for (let at = this.length + size - 1; at >= this.length; at--) {
      const quotient = (rest / 10) | 0
      this.bytes[at] = 48 + rest - 10 * quotient
      rest = quotient
    }
    this.length += size
  }

  /** Writes a whole number from 0 to 2^53 as a protobuf varint: seven bits per byte, the lowest first. */
  varint(value: number): void {
    this.reserve(8) // 2^53 needs eight bytes of seven bits.
    let rest = value
    while (rest >= 128) {
      this.bytes[this.length++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    this.bytes[this.length++] = rest
  }

  /** Writes an unsigned 32-bit integer, little-endian. */
  uint32(value: number): void {
    this.reserve(4)
    this.view.setUint32(this.length, value, true)
    this.length += 4
  }

  float32(value: number): void {
    this.reserve(4)
    this.view.setFloat32(this.length, value, true)
    this.length += 4
  }

  float64(value: number): void {
    this.reserve(8)
    this.view.setFloat64(this.length, value, true)
    this.length += 8
  }

  /** Overwrites the four bytes from position `at` on, which must be written already, with an unsigned integer. */
  setUint32(at: number, value: number): void {
    this.view.setUint32(at, value, true)
  }
}
