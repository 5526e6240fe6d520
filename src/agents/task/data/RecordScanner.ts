/**
 * Splits the bytes of a JSON Lines or CSV file into records, chunk by chunk, in one pass. `Records.ts` passes the chunks of a
 * file to it. A record ends at a line feed; in CSV, at the first line feed outside quotes. Lines with only spaces are
 * skipped.
 */
import { joined } from "../../../base/text/bytes.ts"

const lineFeed = 10
const carriageReturn = 13
const quote = 34

/** The largest record in bytes. Without a limit, an unclosed quote would make the rest of the file one record. */
export const mostRecordBytes = 16 * 1024 * 1024

export class RecordScanner {
  readonly #isCsv: boolean
  readonly #emit: (bytes: Uint8Array, offset: number, line: number) => string | undefined
  /** The start of a record that has not ended yet. */
  #pending: Array<Uint8Array> = []
  #pendingBytes = 0
  #isInsideQuotes = false
  /** The offset of the current record in the file, in bytes, and the number of its first line. */
  #offset = 0
  #firstLine = 1
  /** The number of line feeds in the current record so far. */
  #lineFeeds = 0

  /**
   * Makes a scanner. `emit` receives each record without its line end, with its offset and its line. If it returns a problem,
   * the scan ends.
   */
  constructor(isCsv: boolean, emit: (bytes: Uint8Array, offset: number, line: number) => string | undefined) {
    this.#isCsv = isCsv
    this.#emit = emit
  }

  /** Scans a chunk. Returns a problem as `:line: text`, before which the caller puts the path; undefined if there is none. */
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
        return `:${this.#firstLine}: expected a record of at most ${mostRecordBytes} bytes, found a longer one`
      }
    }
    return undefined
  }

  /** Ends the scan. Call it once after the last chunk. It returns a problem or undefined, as `push` does. */
  end(): string | undefined {
    return this.#finish(new Uint8Array(0), 0)
  }

  /** Returns the position of the line feed that ends the current record; −1 if it is not in this chunk. */
  #endIn(chunk: Uint8Array, from: number): number {
    if (!this.#isCsv) {
      const end = chunk.indexOf(lineFeed, from)
      if (end >= 0) this.#lineFeeds++
      return end
    }
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]
      if (byte === quote) this.#isInsideQuotes = !this.#isInsideQuotes
      else if (byte === lineFeed) {
        this.#lineFeeds++
        if (!this.#isInsideQuotes) return at
      }
    }
    return -1
  }

  /** Emits the current record, which ends with `last`, unless it is blank. `lineEnd` is the length of its line feed. */
  #finish(last: Uint8Array, lineEnd: number): string | undefined {
    const whole = this.#pending.length === 0 ? last : joined([...this.#pending, last])
    const start = this.#offset
    const line = this.#firstLine
    this.#offset += whole.length + lineEnd
    this.#firstLine += this.#lineFeeds
    this.#lineFeeds = 0
    this.#pending = []
    this.#pendingBytes = 0
    const bytes = whole[whole.length - 1] === carriageReturn ? whole.subarray(0, -1) : whole
    return bytes.every((byte) => byte === 32 || byte === 9) ? undefined : this.#emit(bytes, start, line)
  }
}
