import { existsSync, statSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { Effect } from "effect"
import { Flag } from "effect/cli"
import type { RunKind } from "../run/RunSpec.ts"
import { pick, type Usable } from "../run/find/pick.ts"
import { entryOf, type RunEntry, unplacedEntry } from "../run/find/RunEntry.ts"
import * as RunReader from "../run/RunReader.ts"
import type { FileSource } from "../run/read/FileSource.ts"
import { findRuns } from "../run/find/find-node.ts"
import { silentSource } from "../run/read/disk-node.ts"
import { defaultResultsDir } from "./flags.ts"
import { writeError } from "./output/output.ts"
import { UsageError } from "./UsageError.ts"
import * as Layout from "../run/Layout.ts"

/** How an argument that names a run is described in help. */
export const runArgument = "A run's folder, latest for the newest run, or a part of its path that no other run has"

/** For commands that take a run and write nothing into a results folder. */
export const lookupDir = Flag.String("results-dir").pipe(
  Flag.withMetavar("dir"),
  Flag.withDefault(defaultResultsDir),
  Flag.withDescription("The folder in which latest and parts of paths are looked up (default: results)"),
)

export interface FindOptions {
  /** The results folders that are searched for `latest` and for parts of paths. */
  readonly folders: ReadonlyArray<string>
  readonly usable?: Usable
  /** Files that are damaged are not worth a warning unless the command shows what is in them. */
  readonly source?: FileSource
}

/**
 * Finds the run that somebody typed: the folder of one (or a file in it), `latest`, or a part of a path that no other run
 * has. A folder is taken as it is: whether the command can use it is for the command to say.
 */
export const findRun = Effect.fnUntraced(function* (
  wanted: string,
  { folders, usable, source = silentSource }: FindOptions,
): Effect.fn.Return<RunEntry, UsageError> {
  const given = entryAt(wanted)
  if (given !== undefined) return given
  const entries = (yield* Effect.forEach(folders, (folder) => findRuns(folder, source))).flat()
  const options = { folder: folders.join(" or "), ...(usable === undefined ? {} : { usable }) }
  return yield* Effect.mapError(pick(wanted, entries, options), ({ message }) => {
    const noRun = existsSync(wanted) ? " it is not a run (it has no config.yaml), and" : ""
    return new UsageError({ message: `${wanted}:${noRun} ${message}` })
  })
})

/** The folder of a run that is found, with a line on stderr that says which one it is when its path was not typed. */
export const runFolder = Effect.fnUntraced(function* (
  wanted: string,
  options: FindOptions & { readonly quiet?: boolean },
): Effect.fn.Return<string, UsageError> {
  const { path } = yield* findRun(wanted, options)
  if (options.quiet !== true) yield* tellRun(wanted, path)
  return path
})

/** Writes the path of the run that was found, unless somebody typed the path itself. */
export const tellRun = (wanted: string, path: string): Effect.Effect<void> =>
  entryAt(wanted) === undefined ? writeError(`run: ${path}\n`) : Effect.void

/** The folder of a run to resume: `latest` means something else there, the newest unfinished run of the file. */
export const runToResumeAt = Effect.fnUntraced(function* (
  wanted: string,
  options: FindOptions,
): Effect.fn.Return<string, UsageError> {
  const found = Effect.mapError(
    findRun(wanted, options),
    ({ message }) => new UsageError({ message: `--resume ${message}` }),
  )
  const { path } = yield* found
  if (existsSync(join(path, Layout.config))) return path
  return yield* new UsageError({ message: `--resume ${path}: it is not a run (it has no config.yaml)` })
})

/** Only runs of these kinds. */
export const ofKind = (noun: string, ...kinds: ReadonlyArray<RunKind>): Usable => {
  const read = RunReader.over(silentSource)
  const isUsable = (entry: RunEntry): Effect.Effect<boolean> =>
    Effect.map(read(entry).kind, (kind) => kind !== undefined && kinds.includes(kind))
  return { noun, isUsable }
}

/** The run of a folder that exists, or of a file in it. */
const entryAt = (wanted: string): RunEntry | undefined => {
  if (!existsSync(wanted)) return undefined
  const folder = statSync(wanted).isDirectory() ? join(wanted, ".") : dirname(wanted)
  const isRun = [Layout.config, Layout.returns].some((file) => existsSync(join(folder, file)))
  return entryOf(folder, resolve(folder).replaceAll("\\", "/")) ?? (isRun ? unplacedEntry(folder) : undefined)
}
