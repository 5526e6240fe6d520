import { fromFlatPath, fromPath } from "../identifier.ts"

/** The facts about a run in its path, known without reading its files. */
export interface RunEntry {
  /** The path as people write it, relative to their folder. */
  readonly path: string
  /** `YYYY-MM-DD_HH-MM-SS`; undefined for a run in another layout. */
  readonly time: string | undefined
  /** Undefined if the path doesn't contain it (the flat layout); config.yaml may. */
  readonly commit: string | undefined
  readonly name: string | undefined
  readonly seed: number | undefined
  readonly population: Readonly<Record<string, string>>
}

/** Parses the path of a run, or returns undefined. `full` is the whole path if `path` is shortened for people. */
export const entryOf = (path: string, full = path): RunEntry | undefined => {
  const identifier = fromPath(full)
  if (identifier !== undefined) return { path, ...identifier }
  const flat = fromFlatPath(full)
  return flat === undefined ? undefined : { ...unplacedEntry(path), time: flat.time }
}

/** Makes an entry of a run whose path contains no facts. */
export const unplacedEntry = (path: string): RunEntry => ({
  path,
  time: undefined,
  commit: undefined,
  name: undefined,
  seed: undefined,
  population: {},
})

/** Sorts by time, newest first; runs of the same time by their paths. */
export const newestFirst = <A extends RunEntry>(entries: ReadonlyArray<A>): ReadonlyArray<A> =>
  [...entries].sort((a, b) => compareText(b.time ?? "", a.time ?? "") || compareText(a.path, b.path))

/** Compares by code units, so that the order is the same everywhere. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
