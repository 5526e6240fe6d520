/**
 * Follows a growing file: reads only the bytes that were appended since the last read. `RunReader.ts` and the page's server
 * watch unfinished runs with it.
 */
import { Effect } from "effect"
import { type FileSource, mostAtOnce } from "./FileSource.ts"

/** The position up to which a file was read, and up to 1024 bytes before it, which show whether the file was replaced. */
export interface ReadPosition {
  readonly read: number
  readonly before: Uint8Array
}

export const start: ReadPosition = { read: 0, before: new Uint8Array(0) }

interface Taking {
  /**
   * Processes bytes from the beginning of `bytes`, such as all whole lines, and returns how many. The next call gets the
   * remaining bytes again, followed by more of the file.
   */
  readonly take: (bytes: Uint8Array) => number
  /** Discards everything that was processed, because the file was cut or replaced and is read again from its beginning. */
  readonly restart: () => void
}

/** The number of bytes before a position that are compared with what was read before. */
const compared = 1024

/**
 * The number of bytes that are read at a time. Processing them takes some tens of milliseconds; then other fibers can run.
 */
const partBytes = 2 * 1024 * 1024

const bytesBefore = (source: FileSource, file: string, read: number): Effect.Effect<Uint8Array> => {
  const most = Math.min(read, compared)
  return most === 0
    ? Effect.succeed(start.before)
    : Effect.map(source.part(file, read - most, most), (bytes) => bytes ?? start.before)
}

const isEqual = (a: Uint8Array, b: Uint8Array): boolean =>
  a.length === b.length && a.every((byte, index) => byte === b[index])

/** Passes the bytes that were appended to a file since `position` to `take`, in parts, and returns the new position. */
export const readOn = Effect.fnUntraced(function* (
  source: FileSource,
  file: string,
  position: ReadPosition,
  { take, restart }: Taking,
): Effect.fn.Return<ReadPosition> {
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
    // A single line or record may be longer than a part, so read a larger part.
    else if (bytes !== undefined && bytes.length === most && most < mostAtOnce) most *= 2
    else break
    yield* Effect.yieldNow
  }
  return { read, before: yield* bytesBefore(source, file, read) }
})

const lineFeed = 10

/** Returns the length in bytes of all whole lines. An incomplete last line may still be being written. */
export const wholeLines = (bytes: Uint8Array): number => bytes.lastIndexOf(lineFeed) + 1

export const countLines = (bytes: Uint8Array): number => {
  let lines = 0
  for (const byte of bytes) if (byte === lineFeed) lines++
  return lines
}
