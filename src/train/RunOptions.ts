import { Context, type Effect } from "effect"
import type { Override, Plain } from "../config/Config.ts"
import type { RunIdentity } from "../run/identifier.ts"

/** What a launcher (the `effect` command, a sweep) can change about a training that is already a value. */
export interface RunOptions {
  /** Settings that replace those of the config, in order. */
  readonly overrides: ReadonlyArray<Override>
  /** The name of the config in messages: `train.ts`. */
  readonly source: string
  /** The run's name, for a config without one. */
  readonly name: string
  /** What a sweep varies, with its value in this run. This becomes a part of the run's identifier. */
  readonly population?: Readonly<Record<string, string>>
  /** Runs when all settings are checked, before anything is set up. */
  readonly onPlanned?: (identity: RunIdentity, effective: Plain) => Effect.Effect<void>
  /**
   * Checked between two iterations: whether somebody asks for the folder of this step (its evaluation, its policy, episodes
   * to watch). Writing it does not change the training.
   */
  readonly isStepWanted?: Effect.Effect<boolean>
}

/** The launcher's options, by `Effect.provideService(RunOptions, { … })`. By default nothing is overridden. */
export const RunOptions = Context.Reference<RunOptions>("effect-rl/train/RunOptions", {
  defaultValue: () => ({ overrides: [], source: "Train.run", name: "run" }),
})
