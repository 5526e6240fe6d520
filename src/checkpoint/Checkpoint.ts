import { Effect, Schema } from "effect"
import { naturalInt } from "../config/fields.ts"
import type { RunFiles } from "../experiment/RunStore.ts"
import type { RunStoreError } from "../experiment/RunStoreError.ts"
import { sha256 } from "../experiment/sha256.ts"

/**
 * Checkpoints: folders below `checkpoints/`, each whole or not there, each with a manifest of its files' digests; and
 * `latest`, which always names one that is whole.
 */

/** A checkpoint that cannot be used: which file, and what is wrong with it. */
export class CheckpointError extends Schema.TaggedError<CheckpointError>()("CheckpointError", {
  path: Schema.String,
  message: Schema.String,
}) {}

/** Which checkpoints stay. Whatever it says, the one that `latest` names is never deleted. */
export const RetentionStrategy = Schema.Union([
  /** The newest `keep`; 0 keeps all. */
  Schema.TaggedStruct("LastN", { keep: naturalInt }),
  /** The `keep` best by validation score; among equals the later; one without a score is the worst. */
  Schema.TaggedStruct("TopKValidation", { keep: naturalInt }),
])
export type RetentionStrategy = typeof RetentionStrategy.Type

const Manifest = Schema.Struct({
  step: Schema.Int,
  score: Schema.NullOr(Schema.Finite),
  files: Schema.Record(Schema.String, Schema.Struct({ sha256: Schema.String, bytes: Schema.Int })),
})
type Manifest = typeof Manifest.Type
const decodeManifest = Schema.decodeUnknownEffect(Schema.fromJsonString(Manifest))

export interface NewCheckpoint {
  /** The folder's name: `step_000000020480`. */
  readonly name: string
  /** Orders checkpoints; names don't. */
  readonly step: number
  /** The validation score at this step, if there was one. */
  readonly score: number | null
  readonly strategy: RetentionStrategy
  readonly files: Readonly<Record<string, Uint8Array>>
}

export interface Loaded {
  readonly name: string
  readonly files: Readonly<Record<string, Uint8Array>>
  /** Newer ones that were damaged. */
  readonly skipped: ReadonlyArray<{ readonly name: string; readonly reason: string }>
}

const folder = "checkpoints"
const manifestFile = "manifest.json"
const text = (value: unknown): Uint8Array => new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`)

/** Writes a checkpoint, lets `latest` name it, then deletes those that the strategy lets go of. */
export const save = Effect.fnUntraced(function* (
  run: RunFiles,
  checkpoint: NewCheckpoint,
): Effect.fn.Return<void, RunStoreError> {
  const { name, step, strategy } = checkpoint
  const digests: Record<string, { readonly sha256: string; readonly bytes: number }> = {}
  for (const [file, bytes] of Object.entries(checkpoint.files))
    digests[file] = { sha256: yield* sha256(bytes), bytes: bytes.length }
  const score = checkpoint.score !== null && Number.isFinite(checkpoint.score) ? checkpoint.score : null
  const manifest: Manifest = { step, score, files: digests }
  yield* run.writeDirectory(`${folder}/${name}`, { ...checkpoint.files, [manifestFile]: text(manifest) })
  yield* run.link(`${folder}/latest`, name)
  yield* run.write(`${folder}/latest.json`, text({ path: name }))
  yield* prune(run, strategy, name)
})

const namesIn = (run: RunFiles): Effect.Effect<ReadonlyArray<string>, RunStoreError> =>
  Effect.map(run.list(folder), (names) => names.filter((name) => !name.startsWith(".") && !name.startsWith("latest")))

const prune = Effect.fnUntraced(function* (
  run: RunFiles,
  strategy: RetentionStrategy,
  latest: string,
): Effect.fn.Return<void, RunStoreError> {
  if (strategy._tag === "LastN" && strategy.keep === 0) return
  const ranked: Array<{ readonly name: string; readonly manifest: Manifest }> = []
  for (const name of yield* namesIn(run)) {
    const manifest = yield* readManifest(run, name).pipe(
      Effect.catchTag("CheckpointError", () => Effect.succeed(undefined)),
    )
    if (manifest !== undefined) ranked.push({ name, manifest })
  }
  for (const { name } of retire(ranked, strategy)) if (name !== latest) yield* run.remove(`${folder}/${name}`)
})

/** The checkpoints that a strategy lets go of. */
export const retire = <A extends { readonly manifest: { readonly step: number; readonly score: number | null } }>(
  checkpoints: ReadonlyArray<A>,
  strategy: RetentionStrategy,
): ReadonlyArray<A> => {
  const score = ({ manifest }: A): number => (strategy._tag === "LastN" ? 0 : (manifest.score ?? -Infinity))
  return [...checkpoints]
    .sort((a, b) => (score(a) === score(b) ? b.manifest.step - a.manifest.step : score(b) - score(a)))
    .slice(strategy.keep)
}

const readManifest = Effect.fnUntraced(function* (
  run: RunFiles,
  name: string,
): Effect.fn.Return<Manifest, CheckpointError | RunStoreError> {
  const path = `${folder}/${name}/${manifestFile}`
  const damaged = (message: string) => new CheckpointError({ path, message: `${run.directory}/${path}: ${message}` })
  if (!(yield* run.exists(path))) return yield* damaged("it is missing")
  return yield* Effect.mapError(decodeManifest(new TextDecoder().decode(yield* run.read(path))), (error) =>
    damaged(`it is no manifest (${error.message.replace(/\s+/g, " ")})`),
  )
})

/** A checkpoint's files, every one checked against the manifest. */
const readIntact = Effect.fnUntraced(function* (
  run: RunFiles,
  name: string,
): Effect.fn.Return<Readonly<Record<string, Uint8Array>>, CheckpointError | RunStoreError> {
  const manifest = yield* readManifest(run, name)
  const files: Record<string, Uint8Array> = {}
  for (const [file, expected] of Object.entries(manifest.files)) {
    const path = `${folder}/${name}/${file}`
    const damaged = (message: string) => new CheckpointError({ path, message: `${run.directory}/${path}: ${message}` })
    if (!(yield* run.exists(path))) return yield* damaged("it is missing")
    const bytes = yield* run.read(path)
    if (bytes.length !== expected.bytes)
      return yield* damaged(`expected ${expected.bytes} bytes, found ${bytes.length}`)
    if ((yield* sha256(bytes)) !== expected.sha256)
      return yield* damaged("its contents do not match the manifest's digest")
    files[file] = bytes
  }
  return files
})

/**
 * The named checkpoint, which must be intact; or, for `latest`, the newest intact one, with the reasons why newer ones
 * were passed over. Where all are damaged, the failure is that of the newest.
 */
export const load = Effect.fnUntraced(function* (
  run: RunFiles,
  wanted: string,
): Effect.fn.Return<Loaded, CheckpointError | RunStoreError> {
  if (wanted !== "latest") return { name: wanted, files: yield* readIntact(run, wanted), skipped: [] }
  const skipped: Array<{ readonly name: string; readonly reason: string }> = []
  let first: CheckpointError | undefined
  for (const name of yield* newestFirst(run)) {
    const files = yield* readIntact(run, name).pipe(
      Effect.catchTag("CheckpointError", (error) =>
        Effect.sync(() => {
          first ??= error
          skipped.push({ name, reason: error.message })
          return undefined
        }),
      ),
    )
    if (files !== undefined) return { name, files, skipped }
  }
  const none = new CheckpointError({ path: folder, message: `${run.directory} has no checkpoint to go on from` })
  return yield* first ?? none
})

/** The one that `latest` names, then the others by their steps, as far as their manifests tell. */
const newestFirst = Effect.fnUntraced(function* (
  run: RunFiles,
): Effect.fn.Return<ReadonlyArray<string>, RunStoreError> {
  const latest = yield* run.target(`${folder}/latest`)
  const names = yield* namesIn(run)
  const steps = new Map<string, number>()
  for (const name of names) {
    const manifest = yield* readManifest(run, name).pipe(
      Effect.catchTag("CheckpointError", () => Effect.succeed(undefined)),
    )
    // A damaged manifest still has a number in its name.
    steps.set(name, name === latest ? Infinity : (manifest?.step ?? Number(/\d+$/.exec(name)?.[0] ?? -1)))
  }
  return [...names].sort((a, b) => (steps.get(b) ?? 0) - (steps.get(a) ?? 0))
})
