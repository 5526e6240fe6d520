/**
 * Reads ranges of a file in pages of 16 KiB, and keeps the most recently used pages, so that a small file is read only once.
 */
import { Effect, type FileSystem, type PlatformError, Stream } from "effect"
import { joined } from "../../../base/text/bytes.ts"

const pageBytes = 16 * 1024
/** The number of pages that are kept: 8 MiB of a file. */
const mostPages = 512

type ReadRange = (start: number, end: number) => Effect.Effect<Uint8Array, PlatformError.PlatformError>

/** Makes a function that reads a range of bytes; at the end of the file it returns fewer bytes than requested. */
export const pages = (fs: FileSystem.FileSystem, path: string): ReadRange => {
  const kept = new Map<number, Uint8Array>()

  const keep = (page: number, bytes: Uint8Array): void => {
    // A Map keeps the order of insertion, so its first key is the page that was used least recently.
    kept.delete(page)
    kept.set(page, bytes)
    for (const oldest of kept.keys()) {
      if (kept.size <= mostPages) break
      kept.delete(oldest)
    }
  }

  const load = (first: number, last: number) =>
    fs.stream(path, { offset: first * pageBytes, bytesToRead: (last + 1 - first) * pageBytes }).pipe(
      Stream.runCollect,
      Effect.map((chunks) => {
        const whole = joined(chunks)
        for (let page = first; page <= last; page++) {
          keep(page, whole.slice((page - first) * pageBytes, (page + 1 - first) * pageBytes))
        }
        return whole
      }),
    )

  return (start, end) =>
    Effect.suspend(() => {
      const first = Math.floor(start / pageBytes)
      const last = Math.max(first, Math.ceil(end / pageBytes) - 1)
      const cut = (all: ReadonlyArray<Uint8Array>): Uint8Array => {
        const whole = all.length === 1 ? all[0] : joined(all)
        return whole.subarray(start - first * pageBytes, end - first * pageBytes)
      }
      const pagesRead: Array<Uint8Array> = []
      for (let page = first; page <= last; page++) {
        const bytes = kept.get(page)
        if (bytes === undefined) return Effect.map(load(first, last), (whole) => cut([whole]))
        keep(page, bytes)
        pagesRead.push(bytes)
      }
      return Effect.succeed(cut(pagesRead))
    })
}
