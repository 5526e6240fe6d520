/** Describes the runs of a multi-run trainer: a run that waits, a run that is trained in a slot, and the hooks on both. */
import type { Effect } from "effect"
import type { OrchestratorConfig } from "../config/OrchestratorConfig.ts"
import type { EvictedRun } from "./eviction.ts"
import type { Progress, TrainedRun } from "./TrainedRun.ts"

/** A run with a valid config. It may still wait for an index. */
export interface DiscoveredRun {
  /** The name of the run's folder. */
  readonly id: string
  /**
   * A number that identifies the run in this trainer: a folder that was deleted and made again is another run with the same
   * id. Keep it with data that is used later, such as packed samples.
   */
  readonly generation: number
  /** The path of the run's folder. */
  readonly directory: string
  readonly config: OrchestratorConfig
}

/**
 * A run that is trained, at an index below `maxRuns`. Each run has a new object, so nothing is inherited from an earlier run
 * at the index.
 */
export interface RunSlot extends DiscoveredRun {
  readonly index: number
  readonly progress: Progress
  /** Whether all samples of the run's step are counted but its update is not done yet. The trainer sets it during a turn. */
  readyToUpdate: boolean
  /** The state of the run that the parts of the trainer share. */
  readonly own: TrainedRun
}

/** Tells whether a run has reached its last step. */
export const isAtEnd = ({ config, progress }: Pick<RunSlot, "config" | "progress">): boolean =>
  config.maxSteps !== null && progress.step >= config.maxSteps

/** A run whose config cannot be used. */
export interface InvalidRun {
  readonly id: string
  readonly directory: string
  /** The reason in one line. The run's folder has the same text in a file. */
  readonly message: string
}

/** A change of the runs, which `Runs.changes` reports. Only the master reports the last three. */
export type RunChange =
  | { readonly _tag: "Created"; readonly run: RunSlot }
  /** The run has left its index. `reason` is why it was evicted; null if it has ended or its folder has vanished. */
  | { readonly _tag: "Deleted"; readonly run: RunSlot; readonly reason: string | null }
  | { readonly _tag: "Discovered"; readonly run: DiscoveredRun }
  | { readonly _tag: "Forgotten"; readonly run: DiscoveredRun }
  | { readonly _tag: "Invalid"; readonly run: InvalidRun }

/** A function of a part of the trainer that is called at a moment in a run's life. If it fails, only that run is evicted. */
export type Hook<Run = RunSlot> = (run: Run) => Effect.Effect<void, { readonly message: string }>

/**
 * The hooks that one part of the trainer registers together. The hooks of different parts run in the order of registration. A
 * hook must not call `checkForChanges` or `syncRuns`, because these wait for the hook.
 */
export interface Hooks {
  /** Prepares the part for a new run, on all ranks. If it fails, it must leave nothing behind. */
  readonly creation?: Hook
  /** Runs on all ranks after all creation hooks, for a part that needs what another part has created. */
  readonly postCreation?: Hook
  /**
   * Releases what `creation` prepared, on all ranks. It runs once for each run whose creation hook succeeded, even if the
   * run's creation then failed in another part or on another rank. `reason` is why the run was evicted; null if it has
   * reached its last step or its folder has vanished.
   */
  readonly deletion?: (run: RunSlot, reason: string | null) => ReturnType<Hook>
  /**
   * Checks that no other process writes the run, on the master. A failure makes the run invalid, and nothing is written into
   * its folder.
   */
  readonly unlocked?: Hook<DiscoveredRun>
  /** Checks a config before the run can be trained, on the master. A failure counts as a problem of the config. */
  readonly validation?: Hook<DiscoveredRun>
  /** Runs on the master when a run with a valid config is found. If it fails, the run is evicted. */
  readonly discovered?: Hook<DiscoveredRun>
  /**
   * Runs on the master for each run whose `discovered` hook succeeded, when the run vanishes, is evicted, or stops waiting
   * because its config became invalid.
   */
  readonly forgotten?: Hook<DiscoveredRun>
  /** Runs on the master when a config is invalid, once for each problem. */
  readonly invalid?: Hook<InvalidRun>
  /** Runs on the master when a run is evicted, or was evicted by another program; once for each reason. */
  readonly evicted?: Hook<EvictedRun>
  /** Runs on the master when the folder of a run has vanished or was replaced by another folder. */
  readonly vanished?: Hook<Pick<DiscoveredRun, "id" | "directory">>
}
