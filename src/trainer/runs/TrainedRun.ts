/**
 * Declares the state of a run while it is trained. It is one object in the run's slot, new for each run, in which each part
 * of the trainer keeps its own: nothing is left of a run that has left, and nothing is inherited by the next one.
 */
import { type Fiber, Schema, type Scope, type Semaphore } from "effect"
import { naturalInt } from "../../base/config/fields.ts"
import type { MetricSums } from "../../rl/losses/Losses.ts"
import type { Recording } from "../../run/record/Recorder.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import type { NamedTensors } from "../../tensor/graph/Parameters.ts"
import { makePublished, type Published } from "../published.ts"
import type { RunFolder } from "./guardedFolder.ts"

/** Says how far a run is. A checkpoint saves it as `progress.json`, so that a resumed run also continues these totals. */
export const Progress = Schema.Struct({ step: naturalInt, totalTokens: naturalInt, totalSamples: naturalInt })
/** The progress of a run; the trainer changes it in place. */
export interface Progress {
  step: number
  totalTokens: number
  totalSamples: number
}

/** The weights of a run as the trainer knows them: what is saved, and what the next step adds up. */
export interface RunTraining {
  /** The progress at the last complete step, which is what a checkpoint holds. */
  boundary: Progress
  /** The step of the newest checkpoint; −1 if there is none. */
  saved: number
  /** The step that the run has gone back to, until it saves a checkpoint; null if it began at its newest one. */
  backAt: number | null
  /** The moments of the optimiser in the checkpoint that the run began with. */
  moments: NamedTensors | undefined
  /** The checkpoint's description of the recording. */
  readonly recorded: Uint8Array | undefined
  loss: number
  sums: MetricSums<number>
}

/** The recording of a run. */
export interface RunRecord {
  readonly files: RunFiles
  readonly recording: Recording
  readonly scope: Scope.Closeable
  /** One at a time: a checkpoint must not fall between a validation and the count of it. */
  readonly alone: Semaphore.Semaphore
  readonly startedAtMillis: number
  readonly secondsBefore: number
  readonly firstStep: number
  validated: number
}

/** The state of a trained run, by the parts of the trainer. */
export interface TrainedRun {
  readonly folder: RunFolder
  /** Whether the loader reads the samples of the run, and whether there may be some that it has not read. */
  samples: "closed" | "read" | "unread"
  /** Set by the trainer; undefined before the run begins, and after its weights have become unusable. */
  training: RunTraining | undefined
  /** Set by the records, while the run is recorded. */
  record: RunRecord | undefined
  /** Whether weights are still to be broadcast. */
  isUnpublished: boolean
  /** Writes the last broadcast. */
  broadcast: Fiber.Fiber<unknown> | undefined
  /** The work of the orchestrator, or the wait for it. */
  playing: Fiber.Fiber<void> | undefined
  /** The steps whose weights the engine has. */
  readonly loaded: Published
  /** The steps that are recorded, saved and made known. */
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
