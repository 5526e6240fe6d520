/** Finds and reads the files that `effect import` saves as a run. */
import { basename, dirname, join, resolve } from "node:path"
import { Effect, FileSystem, Stream } from "effect"
import type { ConfigError } from "../../../base/config/Config.ts"
import { exists, mostBytes, readBytes, statOf } from "../../../base/files/files.ts"
import { isPlain } from "../../../base/config/plain.ts"
import { FormatError } from "../../../base/formats/FormatError.ts"
import { unzstd } from "../../../base/formats/zip/zstd-node.ts"
import { episodeOf } from "../../../agents/interchange/atif/trial.ts"
import type { ImportedEpisode } from "../../../agents/interchange/ImportedEpisode.ts"
import { episodesOfArchive, episodesOfJson, parseLog } from "../../../agents/interchange/inspect/readInspect.ts"
import { usageError } from "../output/output.ts"

/** A file to read. A file that was found in a folder is skipped if it has another format. */
interface FoundFile {
  readonly path: string
  readonly isNamed: boolean
}

/** The most files that are read. */
const mostFiles = 1_000_000

/** Lists the named files, and those with the endings of logs in the named folders, in the order of their names. */
export const filesIn = Effect.fnUntraced(function* (named: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const found: Array<FoundFile> = []
  for (const path of named) {
    const stat = yield* statOf(path)
    if (stat === undefined) return yield* usageError(`${path}: there is no such file or folder`)
    if (stat.type !== "Directory") {
      found.push({ path, isNamed: true })
      continue
    }
    const names = yield* Effect.mapError(fs.readDirectory(path, { recursive: true }), ({ message }) =>
      usageError(`${path}: ${message}`),
    )
    for (const name of names.toSorted()) if (isLog(name)) found.push({ path: join(path, name), isNamed: false })
  }
  if (found.length > mostFiles) return yield* usageError(`expected at most ${mostFiles} files, found ${found.length}`)
  return found
})

/** Tells whether a file may be a log. Harbor's continuations of a trajectory are no trajectories of their own. */
const isLog = (name: string): boolean => /\.(?:eval|json)$/.test(name) && !/\.cont-\d+\.json$/.test(name)

type ReadError = ConfigError | FormatError

/** Reads the episodes of all files, one file at a time. Fails if there are none. */
export const episodesIn = (files: ReadonlyArray<FoundFile>) => {
  const all = Stream.flatMap(Stream.fromIterable(files), (file) => Stream.unwrap(episodesOf(file)))
  const none = new FormatError({
    message: "expected a log of Inspect (.eval or .json) with samples, or ATIF trajectories; found none",
  })
  return Stream.orElseIfEmpty(all, () => Stream.fail<ReadError>(none))
}

const episodesOf = Effect.fnUntraced(function* ({
  path,
  isNamed,
}: FoundFile): Effect.fn.Return<
  Stream.Stream<ImportedEpisode, ReadError, FileSystem.FileSystem>,
  ReadError,
  FileSystem.FileSystem
> {
  const read = Effect.mapError(
    readBytes(path, path.endsWith(".eval") ? mostBytes.binary : mostBytes.text),
    (error) => new FormatError({ path, message: `${path}: ${error.message}` }),
  )
  const bytes = yield* read
  if (isArchive(bytes)) return episodesOfArchive(bytes, path, unzstd)
  const parsed = parseLog(bytes, path)
  const value = yield* isNamed ? parsed : Effect.orElseSucceed(parsed, () => undefined)
  if (isTrajectory(value)) return Stream.fromEffect(trialOf(value, path))
  if (isPlain(value) && isPlain(value.eval)) return episodesOfJson(value, path)
  if (!isNamed) return Stream.empty
  const message = `${path}: expected a log of Inspect (with the key eval), or an ATIF trajectory (with schema_version)`
  return yield* new FormatError({ path, message })
})

/** Tells whether bytes begin as a zip archive does. */
const isArchive = (bytes: Uint8Array): boolean =>
  bytes.length > 3 && bytes[0] === 0x50 && bytes[1] === 0x4b && (bytes[2] === 3 || bytes[2] === 5)

const isTrajectory = (value: unknown): boolean =>
  isPlain(value) && typeof value.schema_version === "string" && value.schema_version.startsWith("ATIF-")

/** Reads a trajectory, with the result of its trial if it is in the folder `agent` of one. */
const trialOf = Effect.fnUntraced(function* (value: unknown, path: string) {
  const folder = dirname(resolve(path))
  const trial = basename(folder) === "agent" ? dirname(folder) : folder
  const file = join(trial, "result.json")
  const hasResult = trial !== folder && (yield* exists(file))
  const result = hasResult
    ? yield* Effect.mapError(
        readBytes(file, mostBytes.config),
        ({ message }) => new FormatError({ path: file, message: `${file}: ${message}` }),
      ).pipe(Effect.flatMap((bytes) => parseLog(bytes, file)))
    : undefined
  const stem = basename(path).replace(/\.json$/, "")
  return yield* episodeOf({
    trajectory: { value, path },
    result: result === undefined ? undefined : { value: result, path: file },
    name: stem === "trajectory" ? basename(trial) : stem,
  })
})
