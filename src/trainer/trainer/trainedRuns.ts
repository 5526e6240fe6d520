/** Begins, saves and ends the runs that a trainer trains: their folders, their adapters and their checkpoints. */
import { type Context, Effect, type FileSystem, type Path } from "effect"
import { removeAfter, removeUnreachable } from "../batches/rolloutFiles.ts"
import * as Layout from "../Layout.ts"
import { retried } from "../machine.ts"
import type { RunRecords } from "../records/RunRecords.ts"
import { openRunFolder } from "../runs/guardedFolder.ts"
import type { DiscoveredRun, RunSlot } from "../runs/RunSlot.ts"
import { removeOlder } from "../runs/stepFolders.ts"
import type { RunTraining } from "../runs/TrainedRun.ts"
import { goBackTo, loadCheckpoint, saveCheckpoint, settleCheckpoint } from "../weights/checkpoints.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"

type Problem = { readonly message: string }

/** The files of a checkpoint by name. */
type CheckpointFiles = Readonly<Record<string, Uint8Array>>

/** The weights of runs, in this process or on a server. */
export interface RunWeights {
  /**
   * Gives a run the weights of a checkpoint's files; undefined for new weights. Returns the moments for its optimiser, if the
   * optimiser works in this process.
   */
  readonly begin: (run: RunSlot, files: CheckpointFiles | undefined) => Effect.Effect<NamedTensors | undefined, Problem>
  /** Returns the files of a checkpoint that hold the current weights and the state of the optimiser, or name their place. */
  readonly files: (run: RunSlot) => Effect.Effect<CheckpointFiles, Problem>
  /** Removes the weights of a run. */
  readonly end: (run: RunSlot) => Effect.Effect<void>
}

/** The runs of a trainer, and what is needed to begin and save them. */
export interface TrainedRuns {
  readonly isMaster: boolean
  readonly weights: RunWeights
  readonly records: Pick<RunRecords, "check" | "begin" | "moment" | "end"> | undefined
  readonly files: Context.Context<FileSystem.FileSystem | Path.Path>
}

/** Completes what a killed process has left unfinished in the folder of a run. */
export const repairRun = Effect.fnUntraced(function* (trained: TrainedRuns, run: DiscoveredRun) {
  const { tree, guarded } = yield* Effect.provideContext(openRunFolder(run), trained.files)
  yield* guarded(tree.repair(Layout.checkpoints))
})

/**
 * Begins a run from its newest checkpoint, or from the one that its config names. Without a checkpoint, the run gets new
 * weights.
 */
export const beginRun = Effect.fnUntraced(function* (trained: TrainedRuns, run: RunSlot) {
  const { weights, records } = trained
  const { config, progress, own } = run
  const { folder } = own
  // Another process may have locked the run since it was found. The lock itself needs what the checkpoint says.
  if (records !== undefined) yield* records.check(run)
  const checkpoint = yield* loadCheckpoint(folder, config.resumeStep)
  Object.assign(progress, checkpoint?.progress ?? { step: 0, totalTokens: 0, totalSamples: 0 })
  const moments = yield* weights.begin(run, checkpoint?.parts)
  const backAt = config.resumeStep === -1 ? null : progress.step
  const saved = checkpoint === undefined ? -1 : progress.step
  const fresh = { recorded: checkpoint?.parts[Layout.inCheckpoint.recorded], loss: 0, sums: { tokens: 0 } }
  own.training = { boundary: { ...progress }, saved, backAt, moments, ...fresh }
})

/** Removes checkpoints and samples of a run that are not needed any more; on the master, which has locked the run. */
export const tidyRun = Effect.fnUntraced(function* ({ config, own: { folder, training } }: RunSlot) {
  if (training === undefined) return
  const { saved, backAt } = training
  if (saved !== -1 && backAt === null) yield* settleCheckpoint(folder, { step: saved, keep: config.checkpoint.keep })
  // If the run has gone back, other weights made the later samples, so they are removed, too.
  yield* (backAt === null ? removeUnreachable : removeAfter)(folder, training.boundary.step)
})

/** Ends a run: removes its weights. */
export const endRun = ({ weights }: TrainedRuns, run: RunSlot): Effect.Effect<void> =>
  Effect.suspend(() => {
    run.own.training = undefined
    return weights.end(run)
  })

/** Removes samples that no future resume needs. The checkpoint is complete, so a failure is only logged. */
const removeTrained = ({ id, config: { rollouts }, own: { folder } }: RunSlot, { saved }: RunTraining) =>
  rollouts.keep === null
    ? Effect.void
    : folder
        .guarded(removeOlder(folder.tree, Layout.rollouts, saved - rollouts.keep))
        .pipe(Effect.catch(({ message }) => Effect.logWarning(`${id}: old samples are kept: ${message}`)))

/**
 * Saves a checkpoint of a run at its last complete step, unless it exists already. Does nothing on ranks other than the
 * master.
 */
export const saveRun = Effect.fnUntraced(function* ({ isMaster, weights, records }: TrainedRuns, run: RunSlot) {
  const { folder, training } = run.own
  if (!isMaster || training === undefined || training.saved === training.boundary.step) return
  const state = yield* weights.files(run)
  const moment = yield* records?.moment(run) ?? Effect.undefined
  const recorded: Record<string, Uint8Array> = moment === undefined ? {} : { [Layout.inCheckpoint.recorded]: moment }
  if (training.backAt !== null) yield* goBackTo(folder, training.backAt)
  training.backAt = null
  yield* retried(
    `${run.id}: its checkpoint`,
    saveCheckpoint(folder, {
      progress: training.boundary,
      parts: { ...state, ...recorded },
      keep: run.config.checkpoint.keep,
    }),
  )
  training.saved = training.boundary.step
  yield* removeTrained(run, training)
})
