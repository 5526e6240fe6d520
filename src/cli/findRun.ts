import { dirname, join, resolve } from "node:path"
import { Effect, type FileSystem } from "effect"
import { Flag } from "effect/cli"
import { exists, statOf } from "../config/files.ts"
import { pick, type Usable } from "../run/find/pick.ts"
import { entryOf, type RunEntry, unplacedEntry } from "../run/find/RunEntry.ts"
import type { FileSource } from "../run/read/FileSource.ts"
import * as RunReader from "../run/RunReader.ts"
import { findRuns } from "../run/find/find-node.ts"
import { silentSource } from "../run/read/disk-node.ts"
import * as Layout from "../run/Layout.ts"
import type { RunKind } from "../run/RunSpec.ts"
import { defaultResultsDir } from "./flags.ts"
import { UsageError } from "./output/errors.ts"
import { writeError } from "./output/output.ts"

/** The help text of an argument that names a run. */
export const runArgument = "A run's folder, latest for the newest run, or a part of its path that no other run has"

/** The flag of commands that read a run and write nothing into a results folder. */
export const lookupDir = Flag.String("results-dir").pipe(
  Flag.withMetavar("dir"),
  Flag.withDefault(defaultResultsDir),
  Flag.withDescription("The folder in which latest and parts of paths are looked up (default: results)"),
)

interface FindOptions {
  /** The results folders that are searched for `latest` and for parts of paths. */
  readonly folders: ReadonlyArray<string>
  /** Selects the runs that the command can use. Default: all runs. */
  readonly usable?: Usable
  /** Reads the runs. By default it doesn't warn about damaged files: only commands that show their contents should. */
  readonly source?: FileSource
}

/**
 * Finds the run that the user named by its folder (or a file in it), by `latest`, or by a part of its path that no other
 * run has. A run that is named by its folder is returned even if it isn't usable: the command reports that.
 */
export const findRun = Effect.fnUntraced(function* (
  wanted: string,
  { folders, usable, source = silentSource }: FindOptions,
): Effect.fn.Return<RunEntry, UsageError, FileSystem.FileSystem> {
  const named = yield* runAtPath(wanted)
  if (named !== undefined) return named
  const entries = (yield* Effect.forEach(folders, (folder) => findRuns(folder, source))).flat()
  const options = { folder: folders.join(" or "), ...(usable === undefined ? {} : { usable }) }
  const isPath = yield* exists(wanted)
  return yield* Effect.mapError(pick(wanted, entries, options), ({ message }) => {
    const noRun = isPath ? " it is not a run (it has no config.yaml), and" : ""
    return new UsageError({ message: `${wanted}:${noRun} ${message}` })
  })
})

/** Returns the folder of the run that the user named. Prints its path to stderr unless the user typed the path itself. */
export const runFolder = Effect.fnUntraced(function* (
  wanted: string,
  options: FindOptions & { readonly quiet?: boolean },
): Effect.fn.Return<string, UsageError, FileSystem.FileSystem> {
  const { path } = yield* findRun(wanted, options)
  if (options.quiet !== true) yield* printRun(wanted, path)
  return path
})

/** Prints the path of the run that was found to stderr, unless the user typed the path itself. */
export const printRun = Effect.fnUntraced(function* (
  wanted: string,
  path: string,
): Effect.fn.Return<void, never, FileSystem.FileSystem> {
  if ((yield* runAtPath(wanted)) === undefined) yield* writeError(`run: ${path}\n`)
})

/** Returns the folder of the run that `--resume` names by a path or a part of one; `latest` is resolved elsewhere. */
export const runToResumeAt = Effect.fnUntraced(function* (
  wanted: string,
  options: FindOptions,
): Effect.fn.Return<string, UsageError, FileSystem.FileSystem> {
  const { path } = yield* Effect.mapError(
    findRun(wanted, options),
    ({ message }) => new UsageError({ message: `--resume ${message}` }),
  )
  yield* requireConfig(path, `--resume ${path}`)
  return path
})

/** Fails if a folder holds no `config.yaml`, and returns the path of that file. */
export const requireConfig = Effect.fnUntraced(function* (
  run: string,
  where = run,
): Effect.fn.Return<string, UsageError, FileSystem.FileSystem> {
  const config = join(run, Layout.config)
  if (yield* exists(config)) return config
  return yield* new UsageError({ message: `${where}: it is not a run (it has no config.yaml)` })
})

/** Restricts a search to runs of the given kinds; error messages call such a run by the noun. */
export const ofKind = (noun: string, ...kinds: ReadonlyArray<RunKind>): Usable => {
  const read = RunReader.over(silentSource)
  const isUsable = (entry: RunEntry): Effect.Effect<boolean> =>
    Effect.map(read(entry).kind, (kind) => kind !== undefined && kinds.includes(kind))
  return { noun, isUsable }
}

/** Returns the run in an existing folder, or the run that an existing file belongs to. */
const runAtPath = Effect.fnUntraced(function* (
  path: string,
): Effect.fn.Return<RunEntry | undefined, never, FileSystem.FileSystem> {
  const stat = yield* statOf(path)
  if (stat === undefined) return undefined
  const folder = stat.type === "Directory" ? join(path, ".") : dirname(path)
  const entry = entryOf(folder, resolve(folder).replaceAll("\\", "/"))
  if (entry !== undefined) return entry
  const isRun = (yield* exists(join(folder, Layout.config))) || (yield* exists(join(folder, Layout.returns)))
  return isRun ? unplacedEntry(folder) : undefined
})
