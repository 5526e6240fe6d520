import type { Effect } from "effect"

/**
 * Reads the files of runs, for `RunReader`. No operation fails: a file that is missing is `undefined`, a folder that is
 * missing is empty, and a file that exists but cannot be read is reported by `warn`. There is one of these for folders on
 * disk and one for a folder that nothing may lead out of (`disk-node.ts`, `confined-node.ts`).
 */
export interface FileSource {
  /** Names in a folder. */
  readonly list: (folder: string) => Effect.Effect<ReadonlyArray<string>>
  /** Names of folders in a folder, and of links, which may lead to folders. */
  readonly folders: (folder: string) => Effect.Effect<ReadonlyArray<string>>
  /** Names of files and of folders in a folder, sorted; hidden ones and links are left out. */
  readonly entries: (folder: string) => Effect.Effect<Entries>
  readonly text: (file: string) => Effect.Effect<string | undefined>
  /** At most `most` bytes of a file from a position; a negative position counts from the end. */
  readonly part: (file: string, from: number, most?: number) => Effect.Effect<Uint8Array | undefined>
  readonly size: (file: string) => Effect.Effect<number | undefined>
  /** All files below a folder, by their paths in it, sorted. */
  readonly tree: (folder: string) => Effect.Effect<ReadonlyArray<FileSize>>
  /** Tells whether the process that wrote this name into a run's lock is still at work. */
  readonly isAlive: (name: string) => Effect.Effect<boolean>
  /** Reports a damaged file; each is reported once. */
  readonly warn: (message: string) => Effect.Effect<void>
}

export interface Entries {
  readonly files: ReadonlyArray<string>
  readonly folders: ReadonlyArray<string>
}

export interface FileSize {
  readonly path: string
  readonly bytes: number
}

/** One read gives at most so many bytes. */
export const mostAtOnce = 32 * 1024 * 1024
