import type { Confined } from "../confined-node.ts"
import { utf8 } from "../../config/utf8.ts"

/** A whole line of a file, and where it lies; without its end. */
export interface Line {
  readonly text: string
  readonly from: number
  /** Behind its end. */
  readonly to: number
}

const block = 1 << 20

/** Longer lines are passed over: nobody reads them, and one of them could fill the memory. */
export const longest = 64 << 20

const lineFeed = 10

/** The lines of a part of a file that have their ends, a block in memory at a time. */
export async function* wholeLines(
  files: Pick<Confined, "bytes">,
  path: string,
  from = 0,
  to = Infinity,
): AsyncGenerator<Line> {
  let parts: Array<Uint8Array> = []
  let length = 0
  let begin = from
  for (let at = from; at < to;) {
    const chunk = await files.bytes(path, at, Math.min(block, to - at))
    if (chunk === undefined || chunk.length === 0) return
    let start = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      length += end - start
      const behind = at + end + 1
      if (length > 0 && length <= longest) {
        yield { text: utf8.decode(Buffer.concat([...parts, chunk.subarray(start, end)])), from: begin, to: behind }
      }
      parts = []
      length = 0
      begin = behind
      start = end + 1
    }
    length += chunk.length - start
    if (length > longest) parts = []
    else parts.push(chunk.subarray(start))
    at += chunk.length
  }
}
