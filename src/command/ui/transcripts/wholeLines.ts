/** Reads large files line by line, without the last line if it is still being written. */
import { Effect } from "effect"
import { joined } from "../../../base/text/bytes.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import type { FileSource } from "../../../run/read/FileSource.ts"

/** A whole line of a file without its line end, and the line's offsets in bytes. */
export interface WholeLine {
  readonly text: string
  readonly from: number
  /** The offset after the line's end. */
  readonly to: number
}

/** The number of bytes that are read at once. */
const block = 1 << 20

/** The largest size of a line in bytes. Larger lines are skipped, since they could fill the memory. */
export const longest = 64 << 20

const lineFeed = 10

/** Passes each whole line between two offsets of a file to `take`, until `take` returns `"stop"`. Skips empty lines. */
export const forEachLine = Effect.fnUntraced(function* (
  files: Pick<FileSource, "part">,
  path: string,
  { from = 0, to = Infinity }: { readonly from?: number; readonly to?: number },
  take: (line: WholeLine) => "stop" | undefined,
): Effect.fn.Return<void> {
  let parts: Array<Uint8Array> = []
  let length = 0
  let begin = from
  for (let at = from; at < to;) {
    const chunk = yield* files.part(path, at, Math.min(block, to - at))
    if (chunk === undefined || chunk.length === 0) return
    let start = 0
    for (let end = chunk.indexOf(lineFeed); end >= 0; end = chunk.indexOf(lineFeed, start)) {
      length += end - start
      const next = at + end + 1
      if (length > 0 && length <= longest) {
        const rest = chunk.subarray(start, end)
        const text = utf8.decode(parts.length === 0 ? rest : joined([...parts, rest]))
        if (take({ text, from: begin, to: next }) === "stop") return
      }
      parts = []
      length = 0
      begin = next
      start = end + 1
    }
    length += chunk.length - start
    if (length > longest) parts = []
    else parts.push(chunk.subarray(start))
    at += chunk.length
  }
})
