/** Reads the facts about a run that are in its path, and sorts runs by time. The page of `effect ui` loads this file, too. */
import { childNameOf, fromFlatPath, fromPath, isChildName } from "../identifier.ts"

/** The facts about a run in its path, known without reading its files. */
export interface RunEntry {
  /** The path of the run's folder, as it is shown to users and accepted from them. */
  readonly path: string
  /** The start of the run as `YYYY-MM-DD_HH-MM-SS`; undefined for a run in another layout. */
  readonly time: string | undefined
  /** The commit of the code; undefined if the path does not contain it, as in the flat layout. */
  readonly commit: string | undefined
  readonly name: string | undefined
  /** The seed; undefined if the path does not contain it, as for the runs of a multi-run trainer. */
  readonly seed: number | undefined
  readonly population: Readonly<Record<string, string>>
}

/** The algorithm in the path of a multi-run trainer, and of its runs. */
const trainerAlgorithm = "multirun"

/**
 * Tells whether a run may be a multi-run trainer. A path in the flat layout does not show what its run is, so then it may be.
 */
export const mayBeTrainer = ({ population, name }: RunEntry): boolean =>
  name === undefined || population["algorithm"] === trainerAlgorithm

/** Returns the path of the trainer whose run has this path; undefined for paths of other runs. */
export const trainerOf = (path: string): string | undefined => {
  const parts = path.replace(/\/+$/, "").split("/")
  return isChildName(parts.at(-1) ?? "") && parts.length > 1 ? parts.slice(0, -1).join("/") : undefined
}

/**
 * Makes an entry from a run's path; undefined for other paths. If `path` was shortened, `full` is the whole path. A run of a
 * multi-run trainer (`…/0001/run_letters`) has the trainer's facts, but its own seed, and its own name as the environment.
 */
export const entryOf = (path: string, full = path): RunEntry | undefined => {
  const trainer = trainerOf(full)
  if (trainer !== undefined) {
    const entry = entryOf(trainer)
    if (entry === undefined) return undefined
    const environment = childNameOf(full.slice(trainer.length + 1).replace(/\/+$/, ""))
    const population = { ...entry.population, environment, algorithm: trainerAlgorithm }
    return { ...entry, path, seed: undefined, population }
  }
  const identifier = fromPath(full)
  if (identifier !== undefined) return { path, ...identifier }
  const flat = fromFlatPath(full)
  return flat === undefined ? undefined : { ...unplacedEntry(path), time: flat.time }
}

/** Makes the entry of a run whose path has no known layout, and so contains no facts. */
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

/** Compares two texts by code units, so that the order does not depend on the machine's language. */
export const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
