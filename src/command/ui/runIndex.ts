/**
 * Lists all runs of a results folder. `refresh` checks the folders again. The server calls it every second, because polling
 * works on every file system, and change notifications do not. It writes nothing.
 */
import { Effect } from "effect"
import { entryOf, unplacedEntry } from "../../run/find/RunEntry.ts"
import * as Layout from "../../run/Layout.ts"
import type { Confined } from "../../run/read/confined-node.ts"
import type { Entries } from "../../run/read/FileSource.ts"
import { isRunName } from "../../trainer/Layout.ts"
import * as RunReader from "../../run/RunReader.ts"
import { finite } from "./json.ts"
import { type RunSummary, summaryOf } from "./RunSummary.ts"
import { makeTrainerRuns } from "./trainerRuns.ts"

export type RunIndex = ReturnType<typeof makeIndex>

/** A run as it was at the last check. */
interface IndexedRun {
  readonly summary: RunSummary
  /** The folders into which the run's config moves some of its files. */
  readonly places: Layout.Places
  /** A text that changes whenever the run changes. */
  readonly signature: string
  /** The names of the folders in the run's folder. */
  readonly folders: ReadonlyArray<string>
}

/** Tells whether a run is a multi-run trainer. */
const isTrainer = ({ folders }: IndexedRun): boolean => folders.some(isRunName)

/** The largest number of levels between the results folder and the folder of a run. */
const deepest = 4

/** The number of runs that are read at the same time. */
const concurrency = 32

/** Tells whether a folder is a run, and not a folder that contains runs. */
export const isRunFolder = ({ files, folders }: Entries): boolean =>
  [Layout.config, Layout.returns, Layout.batchRollouts, Layout.batchOutcomes].some((name) => files.includes(name)) ||
  folders.includes(Layout.scores)

/** The files and folders that change while a run is unfinished. */
const growing: ReadonlyArray<string> = [
  Layout.trainScores,
  Layout.validationScoresFolder,
  Layout.log,
  Layout.tensorBoard,
  Layout.steps,
  Layout.system,
  Layout.trainRollouts,
  Layout.validationRolloutsFolder,
  Layout.batchRollouts,
  Layout.batchOutcomes,
  Layout.samples,
]

/** The state of an index. */
interface RunIndexState {
  readonly files: Confined
  /** Opens a run. The data that readers share (parsed configs and counted lines) is kept as long as the index. */
  readonly read: (path: string, listed?: RunReader.Listed) => RunReader.RunReader
  readonly readTrainerRuns: ReturnType<typeof makeTrainerRuns>
  /** The runs in the state of the last check, by their paths. */
  indexed: ReadonlyMap<string, IndexedRun>
}

/** Makes an index, which is empty until `refresh` is run. It keeps the summaries of all runs in memory. */
export const makeIndex = (files: Confined) => {
  const readRun = RunReader.over(files)
  const index: RunIndexState = {
    files,
    read: (path, listed) => readRun(entryOf(path, `${files.root}/${path}`) ?? unplacedEntry(path), listed),
    readTrainerRuns: makeTrainerRuns(files),
    indexed: new Map(),
  }

  /** Tells whether a trainer is replaced in the list by its runs, because at least one of them has begun. */
  const isReplaced = ({ summary: { path, runs = [] } }: IndexedRun): boolean =>
    runs.some(({ id }) => index.indexed.has(`${path}/${id}`))
  const summaries = (isListed: (one: IndexedRun) => boolean): ReadonlyArray<RunSummary> =>
    [...index.indexed.values()].filter(isListed).map(({ summary }) => summary)

  return {
    /** Returns all runs. A multi-run trainer is replaced by its runs. */
    runs: () => summaries((one) => !isReplaced(one)),
    /** Returns the multi-run trainers. */
    trainers: () => summaries(isTrainer),
    has: (path: string) => index.indexed.has(path),
    /** Returns the summary of a run or of a multi-run trainer. */
    summary: (path: string) => index.indexed.get(path)?.summary,
    /** Opens one of the runs, for facts that its summary doesn't have. */
    read: (path: string) => index.read(path),
    refresh: refresh(index),
  }
}

/** Checks all runs again. Returns new runs, runs with changed files, and the paths of runs that are gone. */
const refresh = Effect.fnUntraced(function* (index: RunIndexState) {
  const { files, indexed } = index
  yield* files.refresh
  const now = new Map<string, IndexedRun>()
  let level: ReadonlyArray<string> = [files.only]
  for (let depth = 0; depth <= deepest && level.length > 0; depth++) {
    const looked = yield* Effect.forEach(level, (path) => look(index, path), { concurrency })
    for (const one of looked) if ("summary" in one) now.set(one.summary.path, one)
    level = looked.flatMap((one) => ("summary" in one ? [] : one.folders))
  }
  for (const one of [...now.values()].filter(isTrainer)) yield* addTrainer(index, one, now)
  const changed = [...now.values()].filter((one) => indexed.get(one.summary.path) !== one).map(({ summary }) => summary)
  const gone = [...indexed.keys()].filter((path) => !now.has(path))
  index.indexed = now
  return { changed, gone }
})

/**
 * Returns the run in a folder, and summarises it again if it has changed. If the folder is not a run, returns the folders in
 * it. `trainer` is the path of the multi-run trainer that trains the run, if it has one.
 */
const look = Effect.fnUntraced(function* (index: RunIndexState, path: string, trainer: string | null = null) {
  const { files } = index
  const before = index.indexed.get(path)
  if (before !== undefined && before.signature === (yield* signatureOf(files, before, isAlive(files, path))))
    return before
  const entries = yield* files.entries(path)
  if (!isRunFolder(entries)) {
    return { folders: entries.folders.map((name) => (path === "" ? name : `${path}/${name}`)) }
  }
  const run = index.read(path, { names: [...entries.files, ...entries.folders] })
  // This is read before the run: if the run's process ends in between, the next check sees another signature.
  const wasAlive = yield* isAlive(files, path)
  const hasOnlyRollouts =
    ![Layout.config, Layout.returns, Layout.log].some((name) => entries.files.includes(name)) &&
    !entries.folders.includes(Layout.scores)
  const summary: RunSummary = yield* summaryOf(run, { hasOnlyRollouts, trainer })
  const places = summary.state === "finished" ? {} : yield* run.places
  const signature = yield* signatureOf(files, { summary, places }, Effect.succeed(wasAlive))
  return { summary, places, signature, folders: entries.folders } satisfies IndexedRun
})

/** Adds the runs of a trainer to an index, and the states of its runs to its summary. */
const addTrainer = Effect.fnUntraced(function* (index: RunIndexState, one: IndexedRun, now: Map<string, IndexedRun>) {
  const { path, state } = one.summary
  const names = one.folders.filter(isRunName)
  const looked = yield* Effect.forEach(names, (name) => look(index, `${path}/${name}`, path), { concurrency })
  for (const run of looked) if ("summary" in run) now.set(run.summary.path, run)
  const isRunning = state === "running"
  // If a trainer is not running, its runs stay the same until its own folder changes.
  if (!isRunning && index.indexed.get(path) === one) return
  const run = index.read(path)
  const hasAdapters = (yield* run.configAt(["trainer", "lora"])) !== null
  const maxRuns = hasAdapters ? (finite(yield* run.configAt(["trainer", "max_runs"])) ?? Infinity) : 1
  const runs = yield* index.readTrainerRuns({ path, names, maxRuns, isRunning })
  if (JSON.stringify(runs) === JSON.stringify(one.summary.runs)) return
  now.set(path, { ...one, summary: { ...one.summary, runs } })
})

/** Tells whether the process that writes a run is alive. */
const isAlive = (files: Confined, path: string) =>
  Effect.flatMap(files.text(`${path}/${Layout.lock}`), (owner) => files.isAlive(owner ?? ""))

/** Makes the signature of a run from the times and sizes of its files; for a finished run, only from its folder. */
const signatureOf = Effect.fnUntraced(function* (
  files: Confined,
  { summary: { path, state }, places }: Pick<IndexedRun, "summary" | "places">,
  alive: Effect.Effect<boolean>,
): Effect.fn.Return<string> {
  const names = state === "finished" ? [] : growing.map((name) => Layout.locate(places, name))
  const stamps = yield* Effect.forEach([path, ...names.map((name) => `${path}/${name}`)], (file) => files.stamp(file), {
    concurrency: "unbounded",
  })
  // When the process that writes the run dies, no file changes, so the signature also contains whether it is alive.
  return `${stamps.join(" ")} ${state === "running" ? yield* alive : ""}`
})
