/**
 * Lists all runs of a results folder. `refresh` checks the folders again; the server calls it every second, because
 * polling works on every file system, while notifications of changes do not. It only reads files.
 */
import { Effect } from "effect"
import { entryOf, unplacedEntry } from "../run/find/RunEntry.ts"
import * as Layout from "../run/Layout.ts"
import type { Confined } from "../run/read/confined-node.ts"
import type { Entries } from "../run/read/FileSource.ts"
import * as RunReader from "../run/RunReader.ts"
import { type RunSummary, summaryOf } from "./RunSummary.ts"

export type RunIndex = ReturnType<typeof makeIndex>

/** A run as it was at the last check. */
interface IndexedRun {
  readonly summary: RunSummary
  /** The folders into which the run's config moves some of its files. */
  readonly places: Layout.Places
  /** A text that differs as soon as the run has changed. */
  readonly signature: string
}

/** A run's folder is at most this many levels below the results folder. */
const deepest = 4

/** This many runs are read at a time. */
const concurrency = 32

/** Tells whether a folder is a run, and not a folder that holds runs. */
export const isRunFolder = ({ files, folders }: Entries): boolean =>
  [Layout.config, Layout.returns, Layout.batchRollouts, Layout.batchOutcomes].some((name) => files.includes(name)) ||
  folders.includes(Layout.scores)

/** These files and folders change while a run is unfinished. */
const growing: ReadonlyArray<string> = [
  Layout.trainScores,
  Layout.validationScoresFolder,
  Layout.log,
  Layout.steps,
  Layout.system,
  Layout.trainRollouts,
  Layout.validationRolloutsFolder,
  Layout.batchRollouts,
  Layout.batchOutcomes,
  Layout.samples,
]

/** Makes an index, which is empty until `refresh` is run. It keeps the summaries of all runs in memory. */
export const makeIndex = (files: Confined) => {
  let indexed = new Map<string, IndexedRun>()
  const readEntry = RunReader.over(files)
  const read = (path: string, listed?: RunReader.Listed): RunReader.RunReader =>
    readEntry(entryOf(path, `${files.root}/${path}`) ?? unplacedEntry(path), listed)

  /** Returns the run in a folder, summarised again if it has changed. If the folder is no run, returns its folders. */
  const look = Effect.fnUntraced(function* (path: string) {
    const before = indexed.get(path)
    if (before !== undefined && before.signature === (yield* signatureOf(before))) return before
    const entries = yield* files.entries(path)
    if (!isRunFolder(entries)) {
      return { folders: entries.folders.map((name) => (path === "" ? name : `${path}/${name}`)) }
    }
    const run = read(path, { names: [...entries.files, ...entries.folders] })
    const hasOnlyRollouts =
      ![Layout.config, Layout.returns, Layout.log].some((name) => entries.files.includes(name)) &&
      !entries.folders.includes(Layout.scores)
    const summary = yield* summaryOf(run, { hasOnlyRollouts })
    const places = summary.state === "finished" ? {} : yield* run.places
    return { summary, places, signature: yield* signatureOf({ summary, places }) }
  })

  /** Makes the signature of a run from the times and sizes of its files; of a finished run, only from its folder. */
  const signatureOf = Effect.fnUntraced(function* ({
    summary: { path, state },
    places,
  }: Omit<IndexedRun, "signature">): Effect.fn.Return<string> {
    const names = state === "finished" ? [] : growing.map((name) => Layout.locate(places, name))
    const stamps = yield* Effect.forEach(
      [path, ...names.map((name) => `${path}/${name}`)],
      (file) => files.stamp(file),
      { concurrency: "unbounded" },
    )
    // When the process that writes the run dies, no file changes, so the process is checked too.
    const isAlive = state === "running" ? yield* files.isAlive((yield* files.text(`${path}/${Layout.lock}`)) ?? "") : ""
    return `${stamps.join(" ")} ${isAlive}`
  })

  /** Checks all runs again. Returns new runs, runs with changed files, and the paths of runs that are gone. */
  const refresh = Effect.gen(function* () {
    const now = new Map<string, IndexedRun>()
    let level: ReadonlyArray<string> = [files.only]
    for (let depth = 0; depth <= deepest && level.length > 0; depth++) {
      const looked = yield* Effect.forEach(level, look, { concurrency })
      for (const one of looked) if ("summary" in one) now.set(one.summary.path, one)
      level = looked.flatMap((one) => ("folders" in one ? one.folders : []))
    }
    const changed = [...now.values()]
      .filter((one) => indexed.get(one.summary.path) !== one)
      .map(({ summary }) => summary)
    const gone = [...indexed.keys()].filter((path) => !now.has(path))
    indexed = now
    return { changed, gone }
  })

  return {
    runs: (): ReadonlyArray<RunSummary> => [...indexed.values()].map(({ summary }) => summary),
    has: (path: string) => indexed.has(path),
    /** Opens one of the runs, for facts that its summary doesn't have. */
    read: (path: string) => read(path),
    refresh,
  }
}
