/**
 * Declares the state of a run while it is trained. Each run has a new object of this type in its slot, so nothing is
 * inherited from an earlier run. Each part of the trainer has its own fields in it.
 */
import { type Fiber, Schema, type Scope, type Semaphore } from "effect"
import { naturalInt } from "../../base/config/fields.ts"
import type { MetricSums } from "../../rl/losses/Losses.ts"
import type { Recording } from "../../run/record/Recorder.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import { makePublished, type Published } from "../published.ts"
import type { RunFolder } from "./guardedFolder.ts"

/** The progress of a run. A checkpoint saves it as `progress.json`, so that a resumed run continues these totals. */
export const Progress = Schema.Struct({ step: naturalInt, totalTokens: naturalInt, totalSamples: naturalInt })
/** The progress of a run. The trainer changes it in place. */
export interface Progress {
  step: number
  totalTokens: number
  totalSamples: number
}

/** The trainer's state of a run: the progress to save, and the sums of the current step. */
export interface RunTraining {
  /** The progress at the last complete step. Checkpoints save this progress. */
  boundary: Progress
  /** The step of the newest checkpoint; −1 if there is none. */
  saved: number
  /** The step that the run has gone back to by `resume_step`; null after its next checkpoint, and for all other runs. */
  backAt: number | null
  /** The optimiser's moments from the checkpoint with which the run began. */
  moments: NamedTensors | undefined
  /** The state of the recording in the checkpoint with which the run began. */
  readonly recorded: Uint8Array | undefined
  loss: number
  sums: MetricSums<number>
}

/** The recording of a run. */
export interface RunRecord {
  readonly files: RunFiles
  readonly recording: Recording
  readonly scope: Scope.Closeable
  /** Allows one operation at a time: no checkpoint may be made between recording a validation and counting it. */
  readonly alone: Semaphore.Semaphore
  readonly startedAtMillis: number
  readonly secondsBefore: number
  readonly firstStep: number
  validated: number
}

/** The state of a trained run. Each part of the trainer sets its own fields. */
export interface TrainedRun {
  readonly folder: RunFolder
  /** Whether the loader reads the run's samples (`closed` if not), and whether there may be new ones (`unread`). */
  samples: "closed" | "read" | "unread"
  /** Set by the trainer. Undefined before the run begins, and after a failed update. */
  training: RunTraining | undefined
  /** Set by the records, while the run is recorded. */
  record: RunRecord | undefined
  /** Whether the run has weights that were not broadcast yet. */
  isUnpublished: boolean
  /** The fiber that writes the last broadcast. */
  broadcast: Fiber.Fiber<unknown> | undefined
  /** The fiber of the orchestrator, or of the wait for its end. */
  playing: Fiber.Fiber<void> | undefined
  /** The newest step whose weights the engine has loaded. */
  readonly loaded: Published
  /** The newest step that is recorded, saved and published. */
  readonly completed: Published
}

export const makeTrainedRun = (folder: RunFolder): TrainedRun => ({
  folder,
  samples: "closed",
  training: undefined,
  record: undefined,
  isUnpublished: false,
  broadcast: undefined,
  playing: undefined,
  loaded: makePublished(),
  completed: makePublished(),
})
