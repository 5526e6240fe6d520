/**
 * The service through which the loop of a run reaches the run's files, its recording (which passes events to logs and
 * score files) and the time spent on it.
 */
import { Context, type Effect } from "effect"
import type { CheckpointError, NewCheckpoint } from "./Checkpoint.ts"
import type { Recording } from "./record/Recorder.ts"
import type { RunFiles } from "./store/RunFiles.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"

/** The content of a checkpoint that the loop provides. `Run.ts` adds the file `runtime.json` with the run's state. */
export interface Parts extends Omit<NewCheckpoint, "strategy"> {
  /** The path of the checkpoint for the event `CheckpointSaved`. */
  readonly path: string
  /** Keys to add to `runtime.json`, for other programs that read this file. */
  readonly runtime?: Readonly<Record<string, unknown>>
}

/** The run that a loop works for. `Run.execute` and `Run.inspect` provide this service. */
export class CurrentRun extends Context.Service<
  CurrentRun,
  {
    readonly files: RunFiles
    readonly recording: Recording
    /**
     * The seconds since this process began with the work. A run's steps per second are the steps of this process divided by
     * these seconds: compiling programs at the start, and earlier processes, do not count.
     */
    readonly secondsOfWork: Effect.Effect<number>
    /** The seconds that all processes have spent on the run. */
    readonly seconds: Effect.Effect<number>
    /**
     * Saves a checkpoint of the run's state with these parts, after all events so far. It is written in the background while
     * the loop continues, so the loop must not change the bytes of the files. Only a checkpoint with a file in parts is
     * written at once, because its parts may be views of the state. It first waits until the previous checkpoint is written,
     * and fails if that failed.
     */
    readonly save: (parts: Parts) => Effect.Effect<void, CheckpointError | RunStoreError>
    /** Tells whether the last checkpoint is still being written. The loop then runs `letSave` from time to time. */
    readonly isSaving: () => boolean
    /** Continues to write the last checkpoint, which takes many small steps. Fails if it could not be written. */
    readonly letSave: Effect.Effect<void, CheckpointError | RunStoreError>
    /** Waits until the last checkpoint is written. Fails if it could not be written. */
    readonly saved: Effect.Effect<void, CheckpointError | RunStoreError>
  }
>()("effect-rl/run/CurrentRun") {}
