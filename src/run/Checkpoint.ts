/**
 * Saves and loads checkpoints: folders below `checkpoints/`, each written completely or not at all, with a manifest of its
 * files' digests. `latest` always points to a complete checkpoint.
 *
 * @example
 * ```ts
 * yield* Checkpoint.save(runFiles, {
 *   name: "step_000000020480",
 *   step: 20480,
 *   score: 475,
 *   strategy: { _tag: "LastN", keep: 3 },
 *   files: { "weights.safetensors": Safetensors.encode(weights) },
 * })
 * const { name, files, skipped } = yield* Checkpoint.load(runFiles, "latest")
 * ```
 *
 * A file that is too large for a copy in memory can be saved and read in parts:
 *
 * @example
 * ```ts
 * yield* Checkpoint.save(runFiles, { ...checkpoint, files: { "replay.safetensors": Safetensors.encodeParts(replay) } })
 * const { files } = yield* Checkpoint.open(runFiles, "latest")
 * yield* Stream.runForEach(files["replay.safetensors"].stream, (part) => Effect.log(part.length))
 * ```
 */
import { Effect, Option } from "effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { jsonText } from "../base/text/jsonText.ts"
import { oneLine, prettyJson } from "../base/text/text.ts"
import { bounded } from "../base/config/fields.ts"
import type { Contents, FileTree } from "./store/FileTree.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"
import { sha256, Sha256 } from "../base/text/sha256.ts"
import * as Layout from "./Layout.ts"
import { utf8 } from "../base/text/utf8.ts"

/**
 * Reports that a checkpoint cannot be used. The message names the file that is damaged or missing, or the setting that does
 * not fit. Resume from an earlier checkpoint, or with the settings of the run.
 */
export class CheckpointError extends Schema.TaggedError<CheckpointError>()("CheckpointError", {
  path: Schema.String,
  message: Schema.String,
}) {}

/** The Schema of the rule by which checkpoints are kept. The checkpoint that `latest` points to is never deleted. */
export const RetentionStrategy = Schema.Union([
  /** Keeps the newest `keep` checkpoints; 0 keeps all. */
  Schema.TaggedStruct("LastN", { keep: bounded("keptOrNone") }),
  /**
   * Keeps the `keep` best by validation score. Of equal scores, the later one is kept. A checkpoint without a score counts as
   * the worst.
   */
  Schema.TaggedStruct("TopKValidation", { keep: bounded("kept") }),
])
export type RetentionStrategy = typeof RetentionStrategy.Type

/** The file `manifest.json` of a checkpoint: the sizes and digests of its other files, by which damage is detected. */
export const Manifest = Schema.Struct({
  step: Schema.Int,
  /** The validation score at this step; null if there was no validation. */
  score: Schema.NullOr(Schema.Finite),
  files: Schema.Record(Schema.String, Schema.Struct({ sha256: Schema.String, bytes: Schema.Int })),
})
type Manifest = typeof Manifest.Type
type Description = Manifest["files"][string]
const decodeManifest = Schema.decodeUnknownEffect(jsonText(Manifest))

/** A checkpoint to save: its name and files, and what decides how long it is kept. */
export interface NewCheckpoint {
  /** The name of the checkpoint's folder, e.g. `step_000000020480`. */
  readonly name: string
  /** The step of the run (for agents, the episode). Checkpoints are ordered by this number, not by their names. */
  readonly step: number
  /** The validation score at this step; null if there was no validation. */
  readonly score: number | null
  readonly strategy: RetentionStrategy
  /** The content of each file: bytes, or an iterable of parts, which is iterated only once. */
  readonly files: Readonly<Record<string, Contents>>
  /** The name of an empty file that is written last, such as `STABLE`, for other programs that wait for it. */
  readonly marker?: string
}

/** A checkpoint whose files all match the manifest. */
interface Intact<File> {
  readonly name: string
  readonly files: Readonly<Record<string, File>>
  /** The newer checkpoints that were skipped because they are damaged. */
  readonly skipped: ReadonlyArray<{ readonly name: string; readonly reason: string }>
}

export interface Loaded extends Intact<Uint8Array> {}

/** An intact file that can be read in parts. */
export interface OpenedFile {
  readonly bytes: number
  readonly stream: Stream.Stream<Uint8Array, RunStoreError>
}

export interface Opened extends Intact<OpenedFile> {}

/** The manifest's entry of an empty file. */
const emptyFile: Description = { sha256: new Sha256().hex(), bytes: 0 }

const folder = Layout.checkpoints
const manifestFile = Layout.inCheckpoint.manifest

/** The manifests of checkpoints that this process has written or read, by the names of the checkpoints. */
export type Manifests = Map<string, Manifest>

/**
 * Saves a checkpoint, makes `latest` point to it, and deletes the checkpoints that the strategy does not keep. A
 * program that saves several passes the same `manifests` each time, so that they are not read again from the files.
 */
export const save = Effect.fnUntraced(function* (
  run: FileTree,
  checkpoint: NewCheckpoint,
  manifests: Manifests = new Map(),
): Effect.fn.Return<void, RunStoreError> {
  const { name, step, files, marker } = checkpoint
  const described = new Map<string, Description>()
  const contents: Record<string, Contents> = {}
  for (const [file, content] of Object.entries(files)) {
    if (content instanceof Uint8Array) {
      described.set(file, { sha256: yield* sha256(content), bytes: content.length })
      contents[file] = content
    } else contents[file] = describing(content, (description) => described.set(file, description))
  }
  const score = checkpoint.score !== null && Number.isFinite(checkpoint.score) ? checkpoint.score : null
  const manifest = () => {
    // The digest of a file that is written in parts is known only afterwards. List the files in the order of `files`.
    const inOrder = Object.keys(files).flatMap((file) => [...described].filter(([other]) => other === file))
    // The marker is in the manifest, so a checkpoint without it counts as damaged.
    const listed = marker === undefined ? inOrder : [...inOrder, [marker, emptyFile] as const]
    const value: Manifest = { step, score, files: Object.fromEntries(listed) }
    manifests.set(name, value)
    const manifest = { [manifestFile]: utf8.encode(prettyJson(value)) }
    return marker === undefined ? manifest : { ...manifest, [marker]: new Uint8Array(0) }
  }
  // If all digests are already computed, the manifest is flushed to disk together with the other files.
  yield* marker === undefined && described.size === Object.keys(files).length
    ? run.writeDirectory(`${folder}/${name}`, { ...contents, ...manifest() })
    : run.writeDirectory(`${folder}/${name}`, contents, manifest)
  yield* settle(run, checkpoint, manifests)
})

/**
 * Makes `latest` point to a checkpoint that is already written, and deletes those that the strategy does not keep. `save`
 * ends with this. A process that resumes from the checkpoint can repeat it, in case the process that saved it was killed
 * before.
 */
export const settle = Effect.fnUntraced(function* (
  run: FileTree,
  { name, strategy }: Pick<NewCheckpoint, "name" | "strategy">,
  manifests: Manifests = new Map(),
): Effect.fn.Return<void, RunStoreError> {
  const link = run.link(`${folder}/${Layout.latest}`, name)
  const pointer = run.write(`${folder}/${Layout.latestPointer}`, prettyJson({ path: name }))
  const [retired] = yield* Effect.all([retiredIn(run, strategy, manifests), link, pointer], {
    concurrency: "unbounded",
  })
  // Remove checkpoints only now: `latest` must always point to one that exists.
  for (const one of retired) {
    if (one === name) continue
    manifests.delete(one)
    yield* run.remove(`${folder}/${one}`)
  }
})

/** Yields the parts unchanged, and calls `done` with the size and digest of the whole file after the last part. */
function* describing(parts: Iterable<Uint8Array>, done: (description: Description) => void): Generator<Uint8Array> {
  const hash = new Sha256()
  for (const part of parts) {
    hash.update(part)
    yield part
  }
  const bytes = hash.size
  done({ sha256: hash.hex(), bytes })
}

/** Tells whether a name in `checkpoints/` belongs to a checkpoint, and not to a temporary folder or to `latest`. */
const isName = (name: string): boolean =>
  !name.startsWith(".") && name !== Layout.latest && name !== Layout.latestPointer

const namesIn = (run: FileTree): Effect.Effect<ReadonlyArray<string>, RunStoreError> =>
  Effect.map(run.list(folder), (names) => names.filter(isName))

/** Reads the manifest of a checkpoint; undefined if it is missing or damaged. */
const manifestOf = (run: FileTree, name: string): Effect.Effect<Manifest | undefined, RunStoreError> =>
  readManifest(run, name).pipe(Effect.catchTag("CheckpointError", () => Effect.undefined))

/** A checkpoint with its manifest; undefined if that is missing or damaged. */
interface Described {
  readonly name: string
  readonly manifest: Manifest | undefined
}

/** Reads the manifests of all checkpoints that are not in `manifests`, several at the same time. */
const manifestsIn = (
  run: FileTree,
  manifests: Manifests = new Map(),
): Effect.Effect<ReadonlyArray<Described>, RunStoreError> => {
  const described = Effect.fnUntraced(function* (name: string) {
    const manifest = manifests.get(name) ?? (yield* manifestOf(run, name))
    if (manifest !== undefined) manifests.set(name, manifest)
    return { name, manifest }
  })
  return Effect.flatMap(namesIn(run), (names) => Effect.forEach(names, described, { concurrency: 8 }))
}

/** The names of the checkpoints that the strategy does not keep. */
const retiredIn = Effect.fnUntraced(function* (run: FileTree, strategy: RetentionStrategy, manifests: Manifests) {
  if (strategy._tag === "LastN" && strategy.keep === 0) return []
  const described = yield* manifestsIn(run, manifests)
  const ranked = described.flatMap(({ name, manifest }) => (manifest === undefined ? [] : [{ name, manifest }]))
  return retire(ranked, strategy).map(({ name }) => name)
})

/** Returns the checkpoints that a strategy does not keep, so that they can be deleted. */
export const retire = <A extends { readonly manifest: { readonly step: number; readonly score: number | null } }>(
  checkpoints: ReadonlyArray<A>,
  strategy: RetentionStrategy,
): ReadonlyArray<A> => {
  if (strategy._tag === "LastN" && strategy.keep === 0) return []
  const score = ({ manifest }: A): number =>
    strategy._tag === "LastN" || manifest.score === null || Number.isNaN(manifest.score) ? -Infinity : manifest.score
  return [...checkpoints]
    .sort((a, b) => (score(a) === score(b) ? b.manifest.step - a.manifest.step : score(b) - score(a)))
    .slice(strategy.keep)
}

const damagedAt = (run: FileTree, path: string, message: string): CheckpointError =>
  new CheckpointError({ path, message: `${run.pathOf(path)}: ${message}` })

const readManifest = Effect.fnUntraced(function* (run: FileTree, name: string) {
  const path = `${folder}/${name}/${manifestFile}`
  if (!(yield* run.exists(path))) return yield* damagedAt(run, path, "the file is missing")
  return yield* Effect.mapError(decodeManifest(yield* run.readText(path)), (error) =>
    damagedAt(run, path, `expected a manifest (${oneLine(error.message)})`),
  )
})

/** Reads a file of a checkpoint as a whole or in parts, and returns its content, size and digest. */
type ReadFile<File> = (
  run: FileTree,
  path: string,
) => Effect.Effect<{ readonly content: File } & Description, RunStoreError>

const readWhole: ReadFile<Uint8Array> = Effect.fnUntraced(function* (run, path) {
  const content = yield* run.read(path)
  return { content, bytes: content.length, sha256: yield* sha256(content) }
})

const readParts: ReadFile<OpenedFile> = Effect.fnUntraced(function* (run, path) {
  const hash = new Sha256()
  const stream = run.stream(path)
  yield* Stream.runForEach(stream, (part) => Effect.sync(() => hash.update(part)))
  const bytes = hash.size
  return { content: { bytes, stream }, bytes, sha256: hash.hex() }
})

/**
 * Reads the files of a checkpoint that `isWanted` selects, with `readFile`. Fails at the first file that does not match the
 * manifest.
 */
const readIntact = Effect.fnUntraced(function* <File>(
  run: FileTree,
  name: string,
  readFile: ReadFile<File>,
  isWanted: (file: string) => boolean,
) {
  const manifest = yield* readManifest(run, name)
  const existing = yield* run.list(`${folder}/${name}`)
  const damaged = (file: string, problem: string) => damagedAt(run, `${folder}/${name}/${file}`, problem)
  const extra = existing.find((file) => file !== manifestFile && !Object.hasOwn(manifest.files, file))
  if (extra !== undefined) return yield* damaged(extra, "the file is not in the checkpoint's manifest; remove it")
  const files: Record<string, File> = {}
  for (const [file, expected] of Object.entries(manifest.files)) {
    if (!isWanted(file)) continue
    // This check also prevents a manifest from naming a file outside of the checkpoint's folder.
    if (!existing.includes(file)) return yield* damaged(file, "the file is missing")
    const { content, bytes, sha256 } = yield* readFile(run, `${folder}/${name}/${file}`)
    if (bytes !== expected.bytes) return yield* damaged(file, `expected ${expected.bytes} bytes, found ${bytes}`)
    if (sha256 !== expected.sha256) return yield* damaged(file, "the content differs from the manifest's digest")
    files[file] = content
  }
  return files
})

/**
 * Loads a checkpoint by name, or for `latest` the newest intact one. The named checkpoint must be intact; for `latest`, the
 * result lists the newer damaged ones with reasons. If all are damaged, fails with the error of the newest.
 */
export const load = (run: FileTree, wanted: string): Effect.Effect<Loaded, CheckpointError | RunStoreError> =>
  find(run, wanted, readWhole)

/**
 * Loads only some files of a checkpoint, because a replay buffer may be large. Otherwise like `load`. `best` is the
 * checkpoint with the best validation score or, without scores, the newest one.
 */
export const loadFiles = Effect.fnUntraced(function* (
  run: FileTree,
  wanted: string,
  isWanted: (file: string) => boolean,
): Effect.fn.Return<Loaded, CheckpointError | RunStoreError> {
  if (wanted !== "best") return yield* find(run, wanted, readWhole, isWanted)
  let best: { readonly name: string; readonly score: number } | undefined
  for (const { name, manifest } of yield* newestFirst(run)) {
    const score = manifest?.score
    if (typeof score === "number" && (best === undefined || score > best.score)) best = { name, score }
  }
  return yield* find(run, best?.name ?? "latest", readWhole, isWanted)
})

/** Opens a checkpoint as `load` does, but checks and reads its files in parts, without a copy in memory. */
export const open = (run: FileTree, wanted: string): Effect.Effect<Opened, CheckpointError | RunStoreError> =>
  find(run, wanted, readParts)

/** Finds the checkpoint with the name `wanted`, or for `latest` the newest intact one, and reads it with `readFile`. */
const find = Effect.fnUntraced(function* <File>(
  run: FileTree,
  wanted: string,
  readFile: ReadFile<File>,
  isWanted: (file: string) => boolean = () => true,
) {
  yield* run.repair(folder)
  if (wanted !== "latest") {
    const checkpointNames = yield* namesIn(run)
    if (checkpointNames.includes(wanted))
      return { name: wanted, files: yield* readIntact(run, wanted, readFile, isWanted), skipped: [] }
    const existing = checkpointNames.length === 0 ? "there are none" : `there are ${checkpointNames.join(", ")}`
    return yield* damagedAt(run, `${folder}/${wanted}`, `expected a checkpoint, found none by this name; ${existing}`)
  }
  const errors: Array<CheckpointError> = []
  const skipped: Array<Intact<File>["skipped"][number]> = []
  for (const name of yield* names(run)) {
    const files = yield* Effect.catchTag(readIntact(run, name, readFile, isWanted), "CheckpointError", (error) =>
      Effect.succeed(error),
    )
    if (!(files instanceof CheckpointError)) return { name, files, skipped }
    errors.push(files)
    skipped.push({ name, reason: files.message })
  }
  const message = `${run.root}: expected a checkpoint, found none`
  return yield* errors[0] ?? new CheckpointError({ path: folder, message })
})

/** Lists the names of a run's checkpoints: the one that `latest` points to, then the others, newest step first. */
export const names = (run: FileTree): Effect.Effect<ReadonlyArray<string>, RunStoreError> =>
  Effect.map(newestFirst(run), (checkpoints) => checkpoints.map(({ name }) => name))

/** Reads the manifests of a run's checkpoints, in the order of `names`. */
const newestFirst = Effect.fnUntraced(function* (
  run: FileTree,
): Effect.fn.Return<ReadonlyArray<Described>, RunStoreError> {
  const latest = yield* latestName(run)
  const stepOf = ({ name, manifest }: Described): number => {
    if (name === latest) return Infinity
    // If the manifest is damaged, take the step from the folder's name.
    return manifest?.step ?? Number(/\d+$/.exec(name)?.[0] ?? -1)
  }
  return (yield* manifestsIn(run)).toSorted((a, b) => stepOf(b) - stepOf(a))
})

/** The content of `latest.json`, which names the newest checkpoint. */
export const Pointer = Schema.Struct({ path: Schema.String })
const decodePointer = Schema.decodeUnknownOption(jsonText(Pointer))

/** Reads the name of the latest checkpoint from the link `latest`, or from `latest.json` on systems without links. */
export const latestName = Effect.fnUntraced(function* (
  run: FileTree,
): Effect.fn.Return<string | undefined, RunStoreError> {
  const target = yield* run.target(`${folder}/${Layout.latest}`)
  if (target !== undefined) return target
  const pointer = `${folder}/${Layout.latestPointer}`
  if (!(yield* run.exists(pointer))) return undefined
  return Option.getOrUndefined(decodePointer(yield* run.readText(pointer)))?.path
})
