import { Context, type Effect } from "effect"
import type { Override, Plain } from "../config/Config.ts"
import type { RunIdentity } from "../run/store/RunStore.ts"

/** What a launcher (the `effect` command, a sweep) says to a training that is already a value. */
export interface RunOptions {
  /** Laid over the config, in order. */
  readonly overrides: ReadonlyArray<Override>
  /** What the config in code is called in messages: `train.ts`. */
  readonly source: string
  /** The run's name where the config has none. */
  readonly name: string
  /** What is varied besides env and algorithm, and its value in this run: part of the run's identifier. */
  readonly population?: Readonly<Record<string, string>>
  /** Told what the run is, and its effective config, when all settings are checked, before anything is set up. */
  readonly onPlanned?: (identity: RunIdentity, effective: Plain) => Effect.Effect<void>
  /**
   * Asked between two chunks: whether somebody wants the folder of this step now (its evaluation, its policy, episodes to
   * look at). The training is the same whether anybody does.
   */
  readonly isStepWanted?: Effect.Effect<boolean>
}

/** `Effect.provideService(RunOptions, { … })`; by default nothing is overridden. */
export const RunOptions = Context.Reference<RunOptions>("effect-rl/train/RunOptions", {
  defaultValue: () => ({ overrides: [], source: "Train.run", name: "run" }),
})
