import { fromFlatPath, fromPath } from "../identifier.ts"

/** A run as far as its path says what it is: no file of it was read. */
export interface RunEntry {
  /** As people write it, from where they are. */
  readonly path: string
  /** `YYYY-MM-DD_HH-MM-SS`; undefined for a run that lies elsewhere than where runs are put. */
  readonly time: string | undefined
  /** These are undefined where the path doesn't say them (the flat layout): then config.yaml may. */
  readonly commit: string | undefined
  readonly name: string | undefined
  readonly seed: number | undefined
  readonly population: Readonly<Record<string, string>>
}

/** The run of a path; `full` is the whole path where the one for people is cut short. Undefined where it is none. */
export const entryOf = (path: string, full = path): RunEntry | undefined => {
  const identifier = fromPath(full)
  if (identifier !== undefined) return { path, ...identifier }
  const flat = fromFlatPath(full)
  return flat === undefined ? undefined : { ...unplacedEntry(path), time: flat.time }
}

/** A run whose path says nothing. */
export const unplacedEntry = (path: string): RunEntry => ({
  path,
  time: undefined,
  commit: undefined,
  name: undefined,
  seed: undefined,
  population: {},
})

/** The newest first; of those that began together in the order of their paths. */
export const newestFirst = <A extends RunEntry>(entries: ReadonlyArray<A>): ReadonlyArray<A> =>
  [...entries].sort((a, b) => compareText(b.time ?? "", a.time ?? "") || compareText(a.path, b.path))

/** By code units, so that the order is the same everywhere. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
