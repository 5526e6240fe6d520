import { Context, type Effect } from "effect"
import type { Override, Plain } from "../config/Config.ts"
import type { RunIdentity } from "../run/identifier.ts"

/** The changes that a launcher (the `effect` command or a sweep) can make to a training that is already a value. */
export interface RunOptions {
  /** The settings that replace those of the config, applied in order. */
  readonly overrides: ReadonlyArray<Override>
  /** The name of the config in error messages, e.g. `train.ts`. */
  readonly source: string
  /** The run's name, if the config has none. */
  readonly name: string
  /** The settings that a sweep varies, with their values in this run. They become a part of the run's identifier. */
  readonly population?: Readonly<Record<string, string>>
  /** An Effect that runs after all settings are checked and before anything is compiled or written. */
  readonly onPlanned?: (identity: RunIdentity, effective: Plain) => Effect.Effect<void>
  /**
   * Tells whether a user has requested the folder of the current step (its evaluation, its policy, episodes to watch). It is
   * called between two iterations. Writing the folder does not change the training.
   */
  readonly isStepWanted?: Effect.Effect<boolean>
}

/** The launcher's options. Provide them by `Effect.provideService(RunOptions, { … })`; by default nothing is overridden. */
export const RunOptions = Context.Reference<RunOptions>("effect-rl/train/RunOptions", {
  defaultValue: () => ({ overrides: [], source: "Train.run", name: "run" }),
})
