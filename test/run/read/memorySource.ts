import { Effect } from "effect"
import type { FileSource } from "../../../src/run/read/FileSource.ts"

export interface MemorySource extends FileSource {
  readonly warnings: ReadonlyArray<string>
  /** The files that were read, in their order. */
  readonly reads: ReadonlyArray<string>
}

/** Files by their paths. */
export const memorySource = (
  files: Readonly<Record<string, string>>,
  alive: ReadonlyArray<string> = [],
): MemorySource => {
  const warnings: Array<string> = []
  const reads: Array<string> = []
  const below = (folder: string): ReadonlyArray<string> =>
    Object.keys(files).flatMap((path) => (path.startsWith(`${folder}/`) ? [path.slice(folder.length + 1)] : []))
  const names = (folder: string): ReadonlyArray<string> => [...new Set(below(folder).map((path) => path.split("/")[0]))]
  const read = (file: string): Effect.Effect<string | undefined> =>
    Effect.sync(() => {
      reads.push(file)
      return files[file]
    })
  return {
    warnings,
    reads,
    list: (folder) => Effect.sync(() => names(folder)),
    folders: (folder) => Effect.sync(() => names(folder).filter((name) => !(`${folder}/${name}` in files))),
    entries: (folder) =>
      Effect.sync(() => ({
        files: names(folder).filter((name) => `${folder}/${name}` in files),
        folders: names(folder).filter((name) => !(`${folder}/${name}` in files)),
      })),
    text: read,
    part: (file, from, most = Infinity) =>
      Effect.map(read(file), (text) => {
        if (text === undefined) return undefined
        const bytes = new TextEncoder().encode(text)
        const start = from < 0 ? Math.max(0, bytes.length + from) : from
        return bytes.subarray(start, start + most)
      }),
    size: (file) => Effect.sync(() => (file in files ? new TextEncoder().encode(files[file]).length : undefined)),
    tree: (folder) =>
      Effect.sync(() => below(folder).map((path) => ({ path, bytes: files[`${folder}/${path}`].length }))),
    isAlive: (name) => Effect.sync(() => alive.includes(name)),
    warn: (message) => Effect.sync(() => void warnings.push(message)),
  }
}
