/**
 * The service through which the loop of a run reaches the run's files, its recording (which passes events to logs and
 * score files) and the time spent on it.
 */
import { Context, type Effect } from "effect"
import type { CheckpointError, NewCheckpoint } from "./Checkpoint.ts"
import type { Recording } from "./record/Recorder.ts"
import type { RunFiles } from "./store/RunFiles.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"

/** The parts of a checkpoint that the loop provides. `Run.ts` adds the file `runtime.json` with the run's state. */
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
     * The seconds since this process began with the work. A run's steps per second are the steps of this process by these
     * seconds: its start, in which programs are compiled, and earlier processes do not count.
     */
    readonly secondsOfWork: Effect.Effect<number>
    /** The seconds that all processes have spent on the run. */
    readonly seconds: Effect.Effect<number>
    /**
     * Takes a checkpoint of the run's state with these parts, after all events so far. It is written while the loop goes on,
     * except if a file comes in parts, which may be parts of the state. First waits for the checkpoint before, and fails if
     * that could not be written.
     */
    readonly save: (parts: Parts) => Effect.Effect<void, CheckpointError | RunStoreError>
    /**
     * Tells whether a checkpoint is being written. Its many small steps on disk go on only when the loop lets other fibers run,
     * so a loop that seldom does should do it more often then.
     */
    readonly isSaving: () => boolean
    /** Waits until the last checkpoint is written, and fails if it could not be. */
    readonly saved: Effect.Effect<void, CheckpointError | RunStoreError>
  }
>()("effect-rl/run/CurrentRun") {}
