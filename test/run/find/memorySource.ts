import { Effect } from "effect"
import type { RunSource } from "../../../src/run/find/RunSource.ts"

export interface MemorySource extends RunSource {
  readonly warnings: ReadonlyArray<string>
  /** Which files were read, in their order. */
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
    text: read,
    tail: read,
    tree: (folder) =>
      Effect.sync(() => below(folder).map((path) => ({ path, bytes: files[`${folder}/${path}`].length }))),
    isAlive: (name) => Effect.sync(() => alive.includes(name)),
    warn: (message) => Effect.sync(() => void warnings.push(message)),
  }
}
