import type { Effect } from "effect"

/**
 * Where the files of runs are read. Nothing here fails: what isn't there is undefined or empty, and what is there but
 * cannot be read is said through `warn`.
 */
export interface RunSource {
  /** Names in a folder. */
  readonly list: (folder: string) => Effect.Effect<ReadonlyArray<string>>
  /** Those of folders, and of links, which may lead to some. */
  readonly folders: (folder: string) => Effect.Effect<ReadonlyArray<string>>
  readonly text: (file: string) => Effect.Effect<string | undefined>
  /** The last lines of a file: as many as so many bytes hold. */
  readonly tail: (file: string, bytes: number) => Effect.Effect<string | undefined>
  /** All files below a folder, by their paths in it, sorted. */
  readonly tree: (folder: string) => Effect.Effect<ReadonlyArray<FileSize>>
  /** Whether who wrote this name into a run's lock is still at work. */
  readonly isAlive: (name: string) => Effect.Effect<boolean>
  /** Told once about each file that is damaged. */
  readonly warn: (message: string) => Effect.Effect<void>
}

export interface FileSize {
  readonly path: string
  readonly bytes: number
}
