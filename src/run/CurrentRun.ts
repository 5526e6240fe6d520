/** The service through which the loop of a run reaches the run's files, recording and clock. */
import { Context, type Effect } from "effect"
import type { CheckpointError, NewCheckpoint } from "./Checkpoint.ts"
import type { Recording } from "./record/Recorder.ts"
import type { RunFiles } from "./store/RunFiles.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"

/** A checkpoint that the loop saves, without the run's state: `Run.ts` adds the state as `runtime.json`. */
export interface Parts extends Omit<NewCheckpoint, "strategy"> {
  /** The path of the checkpoint for the event `CheckpointSaved`. */
  readonly path: string
  /** Additional keys of `runtime.json`, which other programs read. */
  readonly runtime?: Readonly<Record<string, unknown>>
}

/** The run that a loop works for: its files, its recording and its clock. `Run.execute` provides this service. */
export class CurrentRun extends Context.Service<
  CurrentRun,
  {
    readonly files: RunFiles
    readonly recording: Recording
    /** The seconds that this process has spent on the run. */
    readonly secondsHere: Effect.Effect<number>
    /** The seconds that all processes have spent on the run. */
    readonly seconds: Effect.Effect<number>
    /** Flushes the recording, then saves a checkpoint of the run's state with these parts. */
    readonly save: (parts: Parts) => Effect.Effect<void, CheckpointError | RunStoreError>
  }
>()("effect-rl/run/CurrentRun") {}
