/**
 * Saves and loads the checkpoints of one run of a trainer: `checkpoints/step_N`, with the run's progress, named parts such as
 * its adapter and its optimiser, and a manifest of their digests. The empty file `STABLE` is written last, as in all folders
 * of steps.
 *
 * @example
 * ```ts
 * yield* saveCheckpoint(folder, { progress: run.progress, parts: { "adapter.safetensors": bytes }, keep: 3 })
 * const resumed = yield* loadCheckpoint(folder, -1)
 * ```
 */
import { Effect, Result } from "effect"
import { prettyJson } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import * as Checkpoint from "../../run/Checkpoint.ts"
import type { Contents, FileTree } from "../../run/store/FileTree.ts"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { RunFolder, RunFolderError } from "../runs/guardedFolder.ts"
import * as Layout from "../Layout.ts"
import { newestUsable, progressIn } from "../runs/resume.ts"
import type { Progress } from "../runs/TrainedRun.ts"
import { removeNewer, stepsIn } from "../runs/stepFolders.ts"

type Parts = Readonly<Record<string, Contents>>

/** A checkpoint to save. */
export interface NewRunCheckpoint {
  readonly progress: Progress
  /** The content of each file by name. */
  readonly parts: Parts
  /** The number of checkpoints to keep; null keeps all. */
  readonly keep: number | null
}

/** A checkpoint whose files all match its manifest. */
export interface RunCheckpoint {
  readonly progress: Progress
  readonly parts: Readonly<Record<string, Uint8Array>>
}

const { progress: progressFile } = Layout.inCheckpoint

const keptAs = (step: number, keep: NewRunCheckpoint["keep"]) => ({
  name: Layout.stepName(step),
  strategy: { _tag: "LastN" as const, keep: keep ?? 0 },
})

/** Saves a checkpoint of a run at the step of its progress, and removes old ones. */
export const saveCheckpoint = (
  { tree, guarded }: RunFolder,
  { progress, parts, keep }: NewRunCheckpoint,
): Effect.Effect<void, RunFolderError> =>
  guarded(
    Checkpoint.save(tree, {
      ...keptAs(progress.step, keep),
      step: progress.step,
      score: null,
      files: { [progressFile]: utf8.encode(prettyJson(progress)), ...parts },
      marker: Layout.stable,
    }),
  )

/**
 * Makes `latest` point to the checkpoint of a step, and removes old ones. Call it for the newest checkpoint when a run
 * resumes, because the process that saved it may have been killed before this.
 */
export const settleCheckpoint = (
  { tree, guarded }: RunFolder,
  { step, keep }: { readonly step: number } & Pick<NewRunCheckpoint, "keep">,
): Effect.Effect<void, RunFolderError> => guarded(Checkpoint.settle(tree, keptAs(step, keep)))

/**
 * Goes back to a step by `resume_step`: removes all later checkpoints, and records the step, so that the next resume uses the
 * run's newest checkpoint again. Call it just before the run saves its first checkpoint after that step, so that nothing is
 * lost if the run is stopped earlier.
 */
export const goBackTo = Effect.fnUntraced(function* (folder: RunFolder, step: number) {
  const { tree, guarded } = folder
  if (step > 0) yield* settleCheckpoint(folder, { step, keep: null })
  yield* guarded(removeNewer(tree, Layout.checkpoints, step))
  yield* guarded(tree.write(Layout.resumed, `${step}\n`))
})

/** Reads the checkpoint of a step in a run's folder. It changes no files, so the run may be in training. */
export const readCheckpoint = Effect.fnUntraced(function* (
  tree: FileTree,
  step: number,
): Effect.fn.Return<RunCheckpoint, Checkpoint.CheckpointError | RunStoreError> {
  const name = Layout.stepName(step)
  const { files } = yield* Checkpoint.load(tree, name)
  const { [progressFile]: saved, [Layout.stable]: _, ...parts } = files
  const path = `${Layout.checkpoint(step)}/${progressFile}`
  const progress = yield* Effect.mapError(
    Effect.fromResult(progressIn(saved && utf8.decode(saved), step)),
    (problem) => new Checkpoint.CheckpointError({ path, message: `${tree.pathOf(path)}: ${problem}` }),
  )
  return { progress, parts }
})

/**
 * Loads the checkpoint that `resume_step` of a run's config names. A step needs an intact checkpoint. −1 loads the newest
 * intact one, with a warning for each newer one that is damaged; if all are damaged, fails with the error of the newest.
 * Returns undefined for 0, or if there is no checkpoint.
 *
 * The caller must set the run's progress to the loaded one, which can be older.
 */
export const loadCheckpoint = Effect.fnUntraced(function* (
  { tree, guarded }: RunFolder,
  resumeStep: number,
): Effect.fn.Return<RunCheckpoint | undefined, Checkpoint.CheckpointError | RunFolderError> {
  yield* guarded(tree.repair(Layout.checkpoints))
  if (resumeStep === 0) return undefined
  if (resumeStep > 0) return yield* readCheckpoint(tree, resumeStep)
  const look = (candidate: number) =>
    readCheckpoint(tree, candidate).pipe(
      Effect.map(Result.succeed),
      Effect.catchTag("CheckpointError", (error) => Effect.succeed(Result.fail(error))),
    )
  const found = yield* newestUsable(yield* stepsIn(tree, Layout.checkpoints), look)
  for (const { message } of found?.skipped ?? [])
    yield* Effect.logWarning(`a damaged checkpoint is skipped: ${message}`)
  return found?.value
})
