import { Effect } from "effect"
import { type FileSource, mostAtOnce } from "./FileSource.ts"

/** How far a growing file has been read, and the bytes before that place, by which a file that was written anew is recognised. */
export interface Position {
  readonly read: number
  readonly before: Uint8Array
}

export const start: Position = { read: 0, before: new Uint8Array(0) }

interface Taking {
  /** Uses some of the bytes, such as whole lines, and gives how many; the rest is given again, with more behind it. */
  readonly take: (bytes: Uint8Array) => number
  /** Forgets what was taken: the file was cut back or written anew, and is read from its beginning. */
  readonly restart: () => void
}

const compared = 1024

/** So much is read and used at a time: some tens of milliseconds, after which others have their turn. */
const partBytes = 2 * 1024 * 1024

const bytesBefore = (source: FileSource, file: string, read: number): Effect.Effect<Uint8Array> => {
  const most = Math.min(read, compared)
  return most === 0
    ? Effect.succeed(start.before)
    : Effect.map(source.part(file, read - most, most), (bytes) => bytes ?? start.before)
}

const isEqual = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index])

/** Reads what was appended to a file since a position, in parts, and gives the new position. */
export const readOn = Effect.fnUntraced(function* (
  source: FileSource,
  file: string,
  position: Position,
  { take, restart }: Taking,
): Effect.fn.Return<Position> {
  const size = (yield* source.size(file)) ?? 0
  let { read } = position
  if (size < read || (read > 0 && !isEqual(position.before, yield* bytesBefore(source, file, read)))) {
    restart()
    read = 0
  } else if (size === read) return position
  for (let most = partBytes; read < size;) {
    const bytes = yield* source.part(file, read, Math.min(most, size - read))
    const taken = bytes === undefined ? 0 : take(bytes)
    read += taken
    if (taken > 0) most = partBytes
    // A line or a record may be longer than a part.
    else if (bytes !== undefined && bytes.length === most && most < mostAtOnce) most *= 2
    else break
    yield* Effect.yieldNow
  }
  return { read, before: yield* bytesBefore(source, file, read) }
})

const lineFeed = 10

/** The length of the whole lines in these bytes: the last one may still be being written. */
export const wholeLines = (bytes: Uint8Array): number => bytes.lastIndexOf(lineFeed) + 1

export const countLines = (bytes: Uint8Array): number => {
  let lines = 0
  for (const byte of bytes) if (byte === lineFeed) lines++
  return lines
}
