/**
 * Downloads data sets from the Hugging Face hub into a cache on disk, where each split of a commit is one file of JSON Lines.
 * A commit never changes, so records in the cache are read without a request.
 *
 * `HubCache` opens the cache: the folder `effect-rl` in the user's folder for caches, or in `HF_HOME`. Files appear there
 * only when they are complete, so several processes can share it. With `HF_HUB_OFFLINE=1`, only the cache is read.
 */
import { Effect, FileSystem, Path, Stream } from "effect"
import { ConfigError, type DecodeOptions } from "../../../base/config/Config.ts"
import { exists, makeFolder, mostBytes, readText, systemMessage } from "../../../base/files/files.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { variable } from "../../../base/config/variables.ts"
import { DatasetError } from "../TaskSet.ts"
import { fileOf, type Hub, type HubInfo, infoOf, openHub } from "./client.ts"
import { HubCache } from "./HubCache.ts"
import { linesOf } from "./rows.ts"
import { partsOf, type Problem, rangeOf, type SplitPart, splitsOf } from "./splits.ts"

/** Records of a data set on the hub. */
interface HubRecords {
  readonly id: string
  readonly subset: string | null
  readonly revision: string | null
  readonly split: string
}

const isCommit = (revision: string): boolean => /^[0-9a-f]{40}$/.test(revision)

/** The default branch, and the branch with the hub's own conversion to Parquet. */
const usualRevision = "main"
const convertedRevision = "refs/convert/parquet"

/** Makes a unique name for the file of a split, even for disks that ignore case. */
const fileName = Effect.fnUntraced(function* (...parts: ReadonlyArray<string | null>) {
  const digest = yield* sha256(utf8.encode(JSON.stringify(parts)))
  const words = parts.filter((part) => part !== null).join("-")
  return `${words.replace(/[^\w.-]+/g, "_").slice(0, 80)}-${digest.slice(0, 8)}`
})

/** Returns the folder of a data set in the cache. */
const folderOf = Effect.fnUntraced(function* (id: string) {
  const paths = yield* Path.Path
  const cache = yield* HubCache
  const folder = yield* cache.open(yield* variable("HF_HOME"))
  return paths.join(folder, yield* fileName(id))
})

const unwritable = (path: string) => (error: { readonly message: string }) =>
  new DatasetError({ path, message: `${path}: can't be written: ${systemMessage(error)}` })

/** Writes a file so that it appears only when it is complete. Another process may write the same file at the same time. */
const writeWhole = <E, R>(path: string, content: Stream.Stream<Uint8Array, E, R>) =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const paths = yield* Path.Path
    const folder = paths.dirname(path)
    yield* Effect.mapError(makeFolder(folder), unwritable(path))
    const temporary = paths.join(folder, `.${crypto.randomUUID()}.tmp`)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const file = yield* Effect.mapError(fs.open(temporary, { flag: "wx" }), unwritable(path))
        yield* Stream.runForEach(content, (chunk) => Effect.mapError(file.writeAll(chunk), unwritable(path)))
        yield* Effect.mapError(file.sync, unwritable(path))
      }),
    ).pipe(
      Effect.andThen(Effect.mapError(fs.rename(temporary, path), unwritable(path))),
      Effect.ensuring(Effect.ignore(fs.remove(temporary, { force: true }))),
    )
  })

const offline = Effect.map(variable("HF_HUB_OFFLINE"), (value) => /^(1|on|true|yes)$/i.test(value))

const notCached = (id: string, what: string): DatasetError =>
  new DatasetError({ path: id, message: `${id}: ${what} is not in the cache, and HF_HUB_OFFLINE forbids a download` })

/** Fails if a name is not valid for a data set, before it becomes a part of an address. */
const checkId = (id: string, from: DecodeOptions): Effect.Effect<void, ConfigError> =>
  /^[\w.-]+(?:\/[\w.-]+)?$/.test(id) && !/(?:^|\/)\.+(?:\/|$)/.test(id)
    ? Effect.void
    : Effect.fail(
        ConfigError.at(from, "hfDataset", `expected a name such as openai/gsm8k, found ${JSON.stringify(id)}`),
      )

const hasReadableFile = (info: HubInfo): boolean => {
  const splits = splitsOf(info, null)
  return !("problem" in splits) || splits.key !== "hfDataset"
}

/** Asks the hub for a revision. If the newest revision has no readable file, tries the hub's conversion to Parquet. */
const newest = Effect.fnUntraced(function* (hub: Hub, id: string, revision: string | null, isPatient: boolean) {
  const info = yield* infoOf(hub, id, revision ?? usualRevision, isPatient)
  if (revision !== null || hasReadableFile(info)) return info.sha
  const converted = yield* Effect.exit(infoOf(hub, id, convertedRevision, isPatient))
  return converted._tag === "Success" ? converted.value.sha : info.sha
})

/**
 * Returns the commit to which a revision of a data set (a branch or tag) refers now. If the hub cannot be reached, returns
 * the commit from the last time that it was reached.
 */
export const commitOf = Effect.fnUntraced(function* (
  id: string,
  revision: string | null,
  from: DecodeOptions,
): Effect.fn.Return<string, ConfigError | DatasetError, FileSystem.FileSystem | Path.Path> {
  yield* checkId(id, from)
  if (revision !== null && isCommit(revision)) return revision
  const paths = yield* Path.Path
  const path = paths.join(yield* folderOf(id), "refs", yield* fileName(revision))
  const saved = yield* Effect.orElseSucceed(readText(path, mostBytes.prompt), () => "")
  const known = isCommit(saved.trim()) ? saved.trim() : undefined
  if (yield* offline) return known ?? (yield* notCached(id, `the revision "${revision ?? usualRevision}"`))
  const hub = yield* openHub(id)
  const sha = yield* newest(hub, id, revision, known === undefined).pipe(
    Effect.catch(({ error, isUnreachable }) =>
      isUnreachable && known !== undefined ? Effect.succeed(known) : Effect.fail(error),
    ),
  )
  if (sha !== known) yield* writeWhole(path, Stream.succeed(utf8.encode(`${sha}\n`)))
  return sha
})

/** Streams the bytes of the lines of a file from `start` up to, but without, `end`. */
const linesBetween = (path: string, start: number, end: number) =>
  Stream.unwrap(
    Effect.map(FileSystem.FileSystem, (fs) => {
      let line = 0
      return fs.stream(path, { chunkSize: 256 * 1024 }).pipe(
        Stream.map((chunk) => {
          let from = line >= start ? 0 : chunk.length
          let at = chunk.indexOf(10)
          for (; at >= 0 && line < end; at = chunk.indexOf(10, at + 1)) {
            line++
            if (line === start) from = at + 1
            if (line === end) return chunk.slice(from, at + 1)
          }
          return line >= end ? chunk.slice(0, 0) : chunk.slice(from)
        }),
        Stream.takeUntil(() => line >= end),
      )
    }),
  )

const countLines = (path: string) =>
  Effect.flatMap(FileSystem.FileSystem, (fs) =>
    Stream.runFold(
      fs.stream(path, { chunkSize: 256 * 1024 }),
      () => 0,
      (count, chunk) => {
        let lines = count
        for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) lines++
        return lines
      },
    ),
  )

const refuse = (from: DecodeOptions, { key, problem }: Problem) => ConfigError.at(from, key, problem)

/**
 * Returns the file with these records, and a name for messages. Records that are not in the cache are downloaded. The
 * revision must be a commit, as `commitOf` returns it.
 */
export const recordsFile = Effect.fnUntraced(function* (
  { id, subset, revision, split: expression }: HubRecords,
  from: DecodeOptions,
): Effect.fn.Return<
  { readonly name: string; readonly path: string },
  ConfigError | DatasetError,
  FileSystem.FileSystem | Path.Path
> {
  const paths = yield* Path.Path
  const sha = yield* commitOf(id, revision, from)
  const folder = paths.join(yield* folderOf(id), sha)
  const parts = partsOf(expression)
  if ("problem" in parts) return yield* refuse(from, parts)
  const name = [id, subset, expression].filter((part) => part !== null).join("/")

  /** Returns the file of a whole split, and downloads it if it is missing. */
  const whole = Effect.fnUntraced(function* (split: string) {
    const path = paths.join(folder, `${yield* fileName(subset, split)}.jsonl`)
    if (yield* exists(path)) return path
    if (yield* offline) return yield* notCached(id, `the split "${split}" of ${sha}`)
    const hub = yield* openHub(id)
    const info = yield* Effect.mapError(infoOf(hub, id, sha), ({ error }) => error)
    const splits = splitsOf(info, subset)
    if ("problem" in splits) return yield* refuse(from, splits)
    const files = splits.get(split) ?? []
    if (files.length === 0) {
      const names = [...splits.keys()].map((one) => `"${one}"`).join(", ")
      const problem = `expected one of the splits ${names} of ${id}, found "${split}"`
      return yield* refuse(from, { key: "split", problem })
    }
    const content = Stream.flatMap(Stream.fromIterable(files), (file) =>
      Stream.unwrap(Effect.map(fileOf(hub, id, sha, file), (bytes) => linesOf(`${id}/${file.path}`, file.path, bytes))),
    )
    yield* writeWhole(path, content)
    return path
  })

  const isWhole = ({ from: start, to }: SplitPart): boolean => start === null && to === null
  if (parts.length === 1 && isWhole(parts[0])) return { name, path: yield* whole(parts[0].split) }

  const path = paths.join(folder, `${yield* fileName(subset, expression, "part")}.jsonl`)
  if (yield* exists(path)) return { name, path }
  const contents = yield* Effect.forEach(parts, (part) =>
    Effect.gen(function* () {
      const file = yield* whole(part.split)
      const readError = (error: { readonly message: string }) =>
        new DatasetError({ path: file, message: `${file}: can't be read: ${systemMessage(error)}` })
      const [start, end] = rangeOf(part, yield* Effect.mapError(countLines(file), readError))
      return Stream.mapError(linesBetween(file, start, end), readError)
    }),
  )
  yield* writeWhole(
    path,
    Stream.flatMap(Stream.fromIterable(contents), (content) => content),
  )
  return { name, path }
})
