/** Finds the runs that the user names, for all subcommands. It reads results folders and changes nothing. */
import { dirname, join, resolve } from "node:path"
import { Effect, Option } from "effect"
import { exists, statOf } from "../../base/files/files.ts"
import { findRuns } from "../../run/find/find-node.ts"
import { pick, type UsableRuns } from "../../run/find/pick.ts"
import { entryOf, type RunEntry, unplacedEntry } from "../../run/find/RunEntry.ts"
import * as Layout from "../../run/Layout.ts"
import { diskSource, silentSource } from "../../run/read/disk-node.ts"
import type { FileSource } from "../../run/read/FileSource.ts"
import { over, type RunReader } from "../../run/RunReader.ts"
import { visible } from "../../base/text/text.ts"
import type { RunKind } from "../../run/RunSpec.ts"
import { isBucket } from "./flags.ts"
import { warningLabel } from "./output/colors.ts"
import { usageError, writeError } from "./output/output.ts"

/** Reports a damaged file on stderr, in one line even if a name in its path has line ends. */
export const warn: FileSource["warn"] = (message) => writeError(`${warningLabel()} ${visible(message)}\n`)

/** Reads the files of runs, and reports damaged ones on stderr, for commands that show the contents of files. */
export const warningSource = diskSource(warn)

/** Makes the `RunReader` of a run, which reads facts from its files and does not report damaged ones. */
export const readRun = over(silentSource)

/** Makes the `RunReader` of the run in a folder; it does not report damaged files. */
export const readRunIn = (folder: string) => readRun(unplacedEntry(folder))

/** A filter for `findRun`. It reads runs on disk, or elsewhere with the function `read`. */
export interface UsableRun extends UsableRuns {
  readonly isUsable: (entry: RunEntry, read?: (entry: RunEntry) => RunReader) => Effect.Effect<boolean>
}

/**
 * Makes a filter for `findRun` that accepts runs of the given kinds. Error messages use `noun` as the word for such a run.
 */
export const ofKind = (noun: string, ...kinds: ReadonlyArray<RunKind>): UsableRun => ({
  noun,
  isUsable: (entry, read = readRun) =>
    Effect.map(read(entry).kind, (kind) => kind !== undefined && kinds.includes(kind)),
})

/**
 * Makes a stricter filter: a training by reinforcement learning must have a checkpoint, which a run that failed at its start has not.
 */
export const havingCheckpoint = ({ noun, isUsable }: UsableRun): UsableRun => ({
  noun,
  isUsable: Effect.fnUntraced(function* (entry, read = readRun) {
    if (!(yield* isUsable(entry, read))) return false
    const { kind, hasCheckpoint } = read(entry)
    return (yield* kind) !== "training" || (yield* hasCheckpoint)
  }),
})

export const trainings = ofKind("a training", "training", "agents", "multirun", "prompts")
export const evaluations = ofKind("an evaluation", "evaluation")

interface FindOptions {
  /** The results folders that are searched for `latest` and for parts of paths. */
  readonly folders: ReadonlyArray<string>
  /** Selects the runs that the command can use. Default: all runs. */
  readonly usable?: UsableRun
  /** Accepts no part of a folder's name. Default: false. */
  readonly wholeNames?: boolean
  /** Reads the runs. By default it doesn't warn about damaged files: only commands that show their contents should. */
  readonly source?: FileSource
}

/**
 * Finds the run that the user named by its folder, a file in it, `latest`, or a part of its path that no other run has.
 * A run that is named by its folder is returned even if it isn't usable: the command reports that.
 */
export const findRun = Effect.fnUntraced(function* (
  wanted: string,
  { folders, usable, wholeNames = false, source = silentSource }: FindOptions,
) {
  const named = yield* isBucket(wanted) ? runAtAddress(wanted, source) : runAtPath(wanted)
  if (named !== undefined) return named
  const entries = (yield* Effect.forEach(folders, (folder) => findRuns(folder, source))).flat()
  const read = over(source)
  const options = {
    folder: folders.join(" or "),
    wholeNames,
    labelsOf: (entry: RunEntry) => read(entry).labels,
    ...(usable === undefined
      ? {}
      : { usable: { noun: usable.noun, isUsable: (entry: RunEntry) => usable.isUsable(entry, read) } }),
  }
  const isPath = yield* exists(wanted)
  return yield* Effect.mapError(pick(wanted, entries, options), ({ message }) => {
    const noRun = isPath ? " it is not a run (it has no config.yaml), and" : ""
    return usageError(`${wanted}:${noRun} ${message}`)
  })
})

/**
 * Finds the run to delete. Unlike `findRun`, it accepts neither a file of the run nor a part of a folder's name. If the user is not
 * asked, it accepts only the path of the run's folder: whatever else names this run names another one as soon as this one is gone.
 */
export const findRunToDelete = Effect.fnUntraced(function* (
  wanted: string,
  { folders, isAsked }: Pick<FindOptions, "folders"> & { readonly isAsked: boolean },
) {
  const stat = yield* statOf(wanted)
  if (stat !== undefined && stat.type !== "Directory")
    return yield* usageError(`${wanted}: expected the folder of a run, found a file`)
  const named = yield* runAtPath(wanted)
  if (named !== undefined) return named
  if (stat !== undefined && wanted !== "latest")
    return yield* usageError(`${wanted}: it is not a run (it has no ${Layout.config})`)
  const run = yield* findRun(wanted, { folders, wholeNames: true })
  if (isAsked) return run
  return yield* usageError(
    `${wanted}: expected the path of a run's folder, because with --yes nobody checks which run is meant; it is now ${visible(resolve(run.path))}`,
  )
})

/** Returns the folder of the run that the user named. Prints the path to stderr unless the user typed it. */
export const runFolder = Effect.fnUntraced(function* (
  wanted: string,
  options: FindOptions & { readonly quiet?: boolean },
) {
  const { path } = yield* findRun(wanted, options)
  if (options.quiet !== true) yield* printRun(Option.some(wanted), path)
  return path
})

/** Prints the path of a run to stderr, unless the user typed this path. */
export const printRun = Effect.fnUntraced(function* (wanted: Option.Option<string>, path: string) {
  if (Option.isSome(wanted) && (yield* runAtPath(wanted.value)) === undefined)
    yield* writeError(`run: ${visible(path)}\n`)
})

/** Returns the folder of the run that `--resume` names by a path or a part of a path. The callers handle `latest`. */
export const runToResumeAt = Effect.fnUntraced(function* (wanted: string, options: FindOptions) {
  const { path } = yield* Effect.mapError(findRun(wanted, options), ({ message }) => usageError(`--resume ${message}`))
  yield* requireConfig(path, `--resume ${path}`)
  return path
})

/** Fails if a folder holds no `config.yaml`, and returns the path of that file. */
export const requireConfig = Effect.fnUntraced(function* (run: string, where = run) {
  const config = join(run, Layout.config)
  if (yield* exists(config)) return config
  return yield* usageError(`${where}: it is not a run (it has no config.yaml)`)
})

/** Returns the run at an address in a bucket, or the run that a file there belongs to; undefined if there is none. */
const runAtAddress = Effect.fnUntraced(function* (address: string, source: FileSource) {
  const place = address.replace(/\/+$/, "")
  for (const run of [place, place.slice(0, place.lastIndexOf("/"))]) {
    const names = yield* source.list(run)
    if (names.includes(Layout.config) || names.includes(Layout.returns)) return entryOf(run) ?? unplacedEntry(run)
  }
  return undefined
})

/** Returns the run in an existing folder, or the run that an existing file belongs to; undefined for other paths. */
const runAtPath = Effect.fnUntraced(function* (path: string) {
  const stat = yield* statOf(path)
  if (stat === undefined) return undefined
  const folder = stat.type === "Directory" ? join(path, ".") : dirname(path)
  const entry = entryOf(folder, resolve(folder).replaceAll("\\", "/"))
  if (entry !== undefined) return entry
  const isRun = (yield* exists(join(folder, Layout.config))) || (yield* exists(join(folder, Layout.returns)))
  return isRun ? unplacedEntry(folder) : undefined
})
