/** The options that a launcher (the `effect` command, a sweep) gives to a run as a service. `src/command/cli` provides them. */
import { Context, type Effect } from "effect"
import type { ConfigError, Override, Plain } from "../base/config/Config.ts"
import type { SentFile } from "../spread/cluster/sent/SentFile.ts"
import type { RunIdentity } from "./identifier.ts"
import { asSent, type SentTraining, withoutKeys } from "./spread/SentTraining.ts"

/** The changes that a launcher can make to a training or evaluation that a program has already made as a value. */
export interface RunOptions {
  /** The settings that replace those of the config, applied in order. */
  readonly overrides: ReadonlyArray<Override>
  /** The name of the config in error messages, e.g. `train.ts`. */
  readonly source: string
  /** The run's name, if the config has none. */
  readonly name: string
  /** The settings that a sweep varies, with their values in this run. They become a part of the run's identifier. */
  readonly population?: Readonly<Record<string, string>>
  /**
   * An Effect that runs after all settings are checked and before anything is compiled or written. It gets the run's
   * identity and its config with all defaults, and may refuse the run.
   */
  readonly onPlanned?: (identity: RunIdentity, effective: Plain) => Effect.Effect<void, ConfigError>
  /**
   * Tells whether a user has requested the folder `steps/{STEP}/` of the current step (the policy, its evaluation,
   * episodes to watch). The training runs this between two iterations. Writing the folder does not change the training.
   */
  readonly isStepWanted?: Effect.Effect<boolean>
  /**
   * The files of the program that makes the training. The first is the module whose default export is the training. Other
   * machines load it to do a part of the work.
   */
  readonly program?: readonly [SentFile, ...ReadonlyArray<SentFile>]
  /** The name of the backend, as for `--backend`. Other machines use the same backend. */
  readonly backend?: string
}

/**
 * Describes a training for other machines: by its program, if the launcher names it, otherwise by its config. Undefined for a
 * training that only this process can make.
 */
export const sentTraining = (options: RunOptions, config?: Plain): SentTraining | undefined => {
  const { program, name } = options
  const backend = options.backend ?? null
  if (program !== undefined)
    return { _tag: "Program", backend, files: program, name, overrides: withoutKeys(options.overrides) }
  return config === undefined ? undefined : { _tag: "Config", backend, config: asSent(config) }
}

/** The options of a run that a program starts itself, without a launcher. */
export const withoutLauncher: RunOptions = { overrides: [], source: "Train.run", name: "run" }

/** The launcher's options. Provide them by `Effect.provideService(RunOptions, { … })`; by default nothing is overridden. */
export const RunOptions = Context.Reference<RunOptions>("effect-rl/train/RunOptions", {
  defaultValue: () => withoutLauncher,
})
