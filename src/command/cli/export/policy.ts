/** Exports the policy of a run, for `effect export RUN` to policy formats such as `--to onnx`, and to `--to worker`. */
import { join } from "node:path"
import { Effect, Layer, type Option } from "effect"
import type { Plain } from "../../../base/config/Config.ts"
import { backend, envPool, platform } from "../../../node.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import * as Checkpoint from "../../../run/Checkpoint.ts"
import * as Layout from "../../../run/Layout.ts"
import { foldersOnDisk, savedAt } from "../../../run/savedAt.ts"
import { Recorder } from "../../../run/record/Recorder.ts"
import { onDisk } from "../../../run/store/FileTree.ts"
import { fromPath } from "../../../run/identifier.ts"
import { RunStore } from "../../../run/store/RunStore.ts"
import { policyHeader } from "../../../rl/export/policyHeader.ts"
import { missingInRlTools } from "../../../rl/export/rltoolsLayers.ts"
import { decodePolicy } from "../../../rl/policy/decodePolicy.ts"
import { validate, type CheckpointExtras } from "../../../rl/train/validate.ts"
import { scripts } from "../../../rl/export/worker/scripts-node.ts"
import { workerFiles } from "../../../rl/export/worker/workerFiles.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import { checkpointOf } from "../evaluate/evaluateRun.ts"
import { requireConfig, warningSource } from "../findRun.ts"
import { usageError } from "../output/output.ts"
import { loadTrainingOf } from "../userCode/loadTraining.ts"
import { yamlOverrides } from "../userCode/yamlFile.ts"

export const policyFormats = ["onnx", "h5", "h", "safetensors"] as const
export type PolicyFormat = (typeof policyFormats)[number]

/** The checkpoint whose policy is exported. */
export interface PolicyChoice {
  /** The folder of the run, an absolute path. */
  readonly run: string
  readonly step: Option.Option<number>
  /** The module that made the run, if its env or algorithm are the user's own. */
  readonly file: Option.Option<string>
}

/** Restores the run's training from a checkpoint to a store in memory, with other settings for its validation. */
export const restored = Effect.fnUntraced(function* (
  { run, step, file }: PolicyChoice,
  settings: Readonly<Record<string, Plain[string]>>,
  options: CheckpointExtras,
) {
  const config = yield* requireConfig(run)
  const training = yield* loadTrainingOf(run, file)
  const checkpoint = yield* checkpointOf(run, step)
  const overrides = [
    ...(yield* yamlOverrides(config)),
    ...Object.entries(settings).map(([path, value]) => ({ path, value, source: "effect export" })),
  ]
  const store = RunStore.memory({ files: yield* filesToLoad(run), resume: run })
  const { policy, film } = yield* validate(training, { checkpoint, ...options }).pipe(
    Effect.provideService(RunOptions, { overrides, source: config, name: "export" }),
    Effect.provide(Layer.mergeAll(backend("auto"), envPool, platform, Recorder.layerSilent, store.layer)),
  )
  return { policy, film, files: store.files }
})

/** The formats that are made of one file of a checkpoint, with the files' names. They contain the policy, or all weights. */
const inCheckpoint: Partial<Readonly<Record<PolicyFormat, string>>> = {
  onnx: Layout.inCheckpoint.policy,
  h: Layout.inCheckpoint.policy,
  safetensors: Layout.inCheckpoint.weights,
}

/**
 * Returns the bytes of a file with the policy. Some formats are files of the checkpoint, which need neither the env nor the
 * code of the run. The other formats are files in the folder of a step, so this writes that folder to a store in memory and
 * takes the file from there.
 */
export const policyFile = Effect.fnUntraced(function* (
  wanted: PolicyChoice,
  format: PolicyFormat,
  /** The beginning of all names in a header. */
  prefix?: string,
) {
  const name = inCheckpoint[format]
  const saved = yield* checkpointFile(wanted, format, name)
  if (saved !== undefined && format === "h") return yield* headerOf(wanted.run, saved, prefix)
  if (saved !== undefined) return saved.bytes
  if (name !== undefined) return yield* usageError(`--to ${format}: ${wanted.run} has no policy that can be exported`)
  const { files } = yield* restored(wanted, { ...noValidation, "render.episodes": 1 }, { writesStepFolder: true })
  const file = [...files].find(([path]) => path.endsWith(`/checkpoint.${format}`))
  if (file !== undefined) return file[1]
  const policy = yield* checkpointFile(wanted, format, Layout.inCheckpoint.policy)
  const missing = policy === undefined ? undefined : yield* missingLayer(policy)
  return yield* usageError(
    `--to ${format}: ${wanted.run}: RLtools has no ${missing ?? "layers for the network of this policy"}; use --to h, onnx or safetensors`,
  )
})

/** Names what the policy of a checkpoint has that RLtools lacks. */
const missingLayer = ({ bytes, path }: SavedFile) =>
  decodePolicy(bytes, path).pipe(
    Effect.map(({ about, programs }) => missingInRlTools(programs.main, about)),
    Effect.catchTag("PolicyError", ({ message }) => usageError(`--to h5: ${message}`)),
  )

/** Returns the policy of a checkpoint as a header of C. */
const headerOf = (run: string, { bytes, path }: SavedFile, prefix: string | undefined) =>
  policyHeader(bytes, { path, commit: fromPath(run)?.commit, prefix }).pipe(
    Effect.map((text) => utf8.encode(text)),
    Effect.catchTag("PolicyError", ({ message }) => usageError(`--to h: ${message}`)),
  )

/** Returns the files of a folder from which an edge worker with the policy is deployed. */
export const workerFolder = Effect.fnUntraced(function* (wanted: PolicyChoice, name: string) {
  yield* checkpointFile(wanted, "worker")
  const { policy } = yield* restored(wanted, noValidation, { exportsPolicy: true })
  if (policy === undefined) return yield* usageError(`--to worker: ${wanted.run} has no policy that can be exported`)
  return workerFiles(policy, { name, scripts: yield* scripts })
})

/** The settings that switch off validations and callbacks, because their envs and code may be part of the user's program. */
const noValidation = { "validation.everySteps": 0, "validation.envs": [], "render.everySteps": 0, callbacks: [] }

interface SavedFile {
  readonly bytes: Uint8Array
  readonly path: string
}

/**
 * Returns the checkpoint's file with this name; undefined if there is none. Fails if the checkpoint has separate
 * policies instead, because a file of the format `format` holds only one.
 */
const checkpointFile = Effect.fnUntraced(function* ({ run, step }: PolicyChoice, format: string, name?: string) {
  const { tree, pathOf } = yield* savedAt(run, yield* foldersOnDisk)
  const separate: Array<string> = []
  const { name: checkpoint, files } = yield* Checkpoint.loadFiles(tree, yield* checkpointOf(run, step), (file) => {
    if (Layout.separatePolicyOf(file) !== undefined) separate.push(file)
    return file === name
  })
  const bytes = name === undefined ? undefined : files[name]
  if (bytes !== undefined && name !== undefined)
    return { bytes, path: `${pathOf(checkpoint)}/${name}` } satisfies SavedFile
  if (separate.length === 0) return undefined
  return yield* usageError(
    `--to ${format} writes one policy, but this run has separate ones; copy ${separate.join(" or ")} from ${pathOf(checkpoint)}`,
  )
})

/** The names of the files from which a training is restored, besides the files with the learner's arrays. */
const restoredFiles: ReadonlySet<string> = new Set([
  Layout.config,
  Layout.latestPointer,
  Layout.inCheckpoint.manifest,
  Layout.inCheckpoint.runtime,
])

/**
 * Reads the files from which a training is restored: its config and its checkpoints. Returns the bytes of each file by its
 * path. Links are left out, because they can lead out of the folder, or into an endless loop.
 */
const filesToLoad = Effect.fnUntraced(function* (run: string) {
  const tree = yield* onDisk(run)
  const files = new Map<string, Uint8Array>()
  for (const { path } of yield* warningSource.tree(run)) {
    const name = Layout.fileName(path)
    if (path.startsWith(`${Layout.steps}/`)) continue
    if (!restoredFiles.has(name) && !Layout.isPolicy(name) && Layout.arraysOf(name) === undefined) continue
    files.set(join(run, path), yield* tree.read(path))
  }
  return files
})
