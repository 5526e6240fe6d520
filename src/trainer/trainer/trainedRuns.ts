/** Begins, saves and ends the runs that a trainer trains: their folders, their adapters and their checkpoints. */
import { type Context, Effect, type FileSystem, type Path } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { stream } from "../../base/rng/Rng.ts"
import * as Decoder from "../../decoder/networks/Decoder.ts"
import type { MetricSums } from "../../rl/losses/Losses.ts"
import { removeAfter, removeUnreachable } from "../batches/rolloutFiles.ts"
import * as Layout from "../Layout.ts"
import { retried } from "../machine.ts"
import type { MultiLoRAOptimizer } from "../optimisers/MultiLoRAOptimizer.ts"
import type { RunRecords } from "../records/RunRecords.ts"
import { openRunFolder, type RunFolder } from "../runs/guardedFolder.ts"
import type { DiscoveredRun, Progress, RunSlot } from "../runs/RunSlot.ts"
import { removeOlder } from "../runs/stepFolders.ts"
import { goBackTo, loadCheckpoint, saveCheckpoint, settleCheckpoint } from "../weights/checkpoints.ts"
import { checkpointParts, type RunState, runStateIn } from "./checkpointParts.ts"
import type { TrainedModel } from "./TrainedModel.ts"

/** The trainer's own data about a run that is trained. */
interface TrainedRun {
  readonly folder: RunFolder
  /** The progress at the last complete step, which is what a checkpoint holds. */
  boundary: Progress
  /** The step of the newest checkpoint; −1 if there is none. */
  saved: number
  /** The step that the run has gone back to, until it saves a checkpoint; null if it began at its newest one. */
  backAt: number | null
  /** The moments of the optimiser in the checkpoint that the run began with. */
  moments: RunState["moments"] | undefined
  /** The checkpoint's description of the recording. */
  readonly recorded: Uint8Array | undefined
  loss: number
  sums: MetricSums<number>
}

/** The trained runs of a trainer, and what it needs to begin and save them. */
export interface TrainedRuns {
  readonly isMaster: boolean
  readonly model: TrainedModel
  /** The seed from which new adapters are drawn, each by the id of its run. */
  readonly seed: number
  readonly records: Pick<RunRecords, "begin" | "moment" | "end"> | undefined
  readonly files: Context.Context<FileSystem.FileSystem | Path.Path>
  readonly byGeneration: Map<number, TrainedRun>
}

/**
 * Opens the folder of a run. Only the master completes what a killed process left unfinished in it, and does so before
 * any rank loads a checkpoint: otherwise ranks could find different ones.
 */
const openFolder = Effect.fnUntraced(function* ({ files, isMaster }: TrainedRuns, run: DiscoveredRun) {
  const folder = yield* Effect.provideContext(openRunFolder(run), files)
  return isMaster ? folder : { ...folder, tree: { ...folder.tree, repair: () => Effect.void } }
})
/** Completes what a killed process left unfinished in the folder of a run. */
export const repairRun = Effect.fnUntraced(function* (trained: TrainedRuns, run: DiscoveredRun) {
  const { tree, guarded } = yield* openFolder(trained, run)
  yield* guarded(tree.repair(Layout.checkpoints))
})

/** Begins a run at its newest checkpoint, or at the one that its config names; without one, with a new adapter. */
export const beginRun = Effect.fnUntraced(function* (trained: TrainedRuns, run: RunSlot) {
  const { model, seed, isMaster } = trained
  const { index, id, config, progress, generation } = run
  const folder = yield* openFolder(trained, run)
  const checkpoint = yield* loadCheckpoint(folder, config.resumeStep)
  const state = checkpoint === undefined ? undefined : yield* runStateIn(checkpoint.parts)
  if (isMaster && checkpoint !== undefined && config.resumeStep === -1)
    yield* settleCheckpoint(folder, { step: checkpoint.progress.step, keep: config.checkpoint.keep })
  Object.assign(progress, checkpoint?.progress ?? { step: 0, totalTokens: 0, totalSamples: 0 })
  yield* attempt(() => {
    if (state === undefined) model.begin(index, config.lora, stream(seed, "adapter", id))
    else model.load(index, config.lora, state.weights)
  }, Decoder.AdapterError)
  const backAt = config.resumeStep === -1 ? null : progress.step
  // The weights of a run that went back, perhaps with other settings, are not those that made the later samples.
  if (isMaster) yield* (backAt === null ? removeUnreachable : removeAfter)(folder, progress.step)
  const saved = checkpoint === undefined ? -1 : progress.step
  const fresh = { recorded: checkpoint?.parts[Layout.inCheckpoint.recorded], loss: 0, sums: { tokens: 0 } }
  trained.byGeneration.set(generation, {
    folder,
    boundary: { ...progress },
    saved,
    backAt,
    moments: state?.moments,
    ...fresh,
  })
})

/** Ends a run: its adapter has no weights any more. */
export const endRun = ({ byGeneration, model }: TrainedRuns, { index, generation }: RunSlot): Effect.Effect<void> =>
  Effect.sync(() => {
    byGeneration.delete(generation)
    model.end(index)
  })

/** Removes samples that no new checkpoint needs. The checkpoint is complete, so a failure is only reported. */
const removeTrained = ({ id, config: { rollouts } }: RunSlot, { folder, saved }: TrainedRun) =>
  rollouts.keep === null
    ? Effect.void
    : folder
        .guarded(removeOlder(folder.tree, Layout.rollouts, saved - rollouts.keep))
        .pipe(Effect.catch(({ message }) => Effect.logWarning(`${id}: old samples are kept: ${message}`)))

/** Saves a checkpoint of a run at its last complete step, unless there is one. Only the master saves. */
export const saveRun = Effect.fnUntraced(function* (
  { isMaster, model, records }: TrainedRuns,
  optimizer: MultiLoRAOptimizer,
  run: RunSlot,
  own: TrainedRun,
) {
  if (!isMaster || own.saved === own.boundary.step) return
  const state = { weights: model.stateDictOf(run.index), moments: yield* optimizer.stateDictOf(run) }
  const moment = yield* records?.moment(run) ?? Effect.undefined
  const recorded: Record<string, Uint8Array> = moment === undefined ? {} : { [Layout.inCheckpoint.recorded]: moment }
  if (own.backAt !== null) yield* goBackTo(own.folder, own.backAt)
  own.backAt = null
  yield* retried(
    `${run.id}: its checkpoint`,
    saveCheckpoint(own.folder, {
      progress: own.boundary,
      parts: { ...checkpointParts(state), ...recorded },
      keep: run.config.checkpoint.keep,
    }),
  )
  own.saved = own.boundary.step
  yield* removeTrained(run, own)
})
