/**
 * Finds where the records of a file begin, from chunks of its bytes, in one pass. A record ends with its line, or, where
 * quotes count, with the first line end outside of quotes. Empty lines are no records.
 */
import { joined } from "../../config/bytes.ts"

const lineFeed = 10
const carriageReturn = 13
const quote = 34

/** More than anybody writes into a record by intent: an open quote must not take in a whole disk. */
export const mostRecordBytes = 16 * 1024 * 1024

export class RecordScanner {
  readonly #quotes: boolean
  readonly #emit: (bytes: Uint8Array, offset: number, line: number) => string | undefined
  /** The start of a record whose end isn't there yet. */
  #pending: Array<Uint8Array> = []
  #pendingBytes = 0
  #quoted = false
  #offset = 0
  #line = 1
  #lines = 0

  /** `emit` is given a record without its line end, its place and its line; what it returns ends the scan. */
  constructor(quotes: boolean, emit: (bytes: Uint8Array, offset: number, line: number) => string | undefined) {
    this.#quotes = quotes
    this.#emit = emit
  }

  /** What is wrong, if anything is. */
  push(chunk: Uint8Array): string | undefined {
    let from = 0
    for (let end = this.#endIn(chunk, 0); end >= 0; end = this.#endIn(chunk, from)) {
      const problem = this.#finish(chunk.subarray(from, end), 1)
      if (problem !== undefined) return problem
      from = end + 1
    }
    if (from < chunk.length) {
      this.#pending.push(chunk.slice(from))
      this.#pendingBytes += chunk.length - from
      if (this.#pendingBytes > mostRecordBytes) {
        return `:${this.#line}: expected a record of at most ${mostRecordBytes} bytes, found a longer one`
      }
    }
    return undefined
  }

  /** After the last chunk. */
  end(): string | undefined {
    return this.#finish(new Uint8Array(0), 0)
  }

  #endIn(chunk: Uint8Array, from: number): number {
    if (!this.#quotes) {
      const end = chunk.indexOf(lineFeed, from)
      if (end >= 0) this.#lines++
      return end
    }
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]
      if (byte === quote) this.#quoted = !this.#quoted
      else if (byte === lineFeed) {
        this.#lines++
        if (!this.#quoted) return at
      }
    }
    return -1
  }

  #finish(last: Uint8Array, lineEnd: number): string | undefined {
    const whole = this.#pending.length === 0 ? last : joined([...this.#pending, last])
    const start = this.#offset
    const line = this.#line
    this.#offset += whole.length + lineEnd
    this.#line += this.#lines
    this.#lines = 0
    this.#pending = []
    this.#pendingBytes = 0
    const bytes = whole[whole.length - 1] === carriageReturn ? whole.subarray(0, -1) : whole
    return bytes.every((byte) => byte === 32 || byte === 9) ? undefined : this.#emit(bytes, start, line)
  }
}
