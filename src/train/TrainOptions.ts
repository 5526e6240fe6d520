// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Train.run` that are the same in code and in files. */
export interface TrainOptions {
  /**
   * The number of envs that are stepped together.
   * @default 8
   */
  readonly numEnvs?: number
  /**
   * The number of threads that step the envs, for heavy envs; 0 steps them in the run's own thread. The result is
   * the same.
   * @default 0
   */
  readonly workers?: number
  /**
   * The seed of all randomness.
   * @default 1
   */
  readonly seed?: number
  /**
   * The name of the run, which is a part of its folder's name.
   * @default "run"
   */
  readonly name?: string
  /**
   * A line that describes the run, for people; null for none.
   * @default null
   */
  readonly description?: string | null
  /**
   * When checkpoints are saved, and which ones are kept.
   */
  readonly checkpoint?: {
    /**
     * The folder of the checkpoints, inside the run's folder.
     * @default "checkpoints"
     */
    readonly dir?: string
    /**
     * The number of env steps between two checkpoints; 0 saves at the end only, null saves ten times in a run.
     * @default null
     */
    readonly everySteps?: number | null
    /**
     * The number of ended episodes between two checkpoints, in addition to `everySteps`; 0 does not count episodes.
     * @default 0
     */
    readonly everyEpisodes?: number
    /**
     * Saves a checkpoint before the first step.
     * @default false
     */
    readonly onStart?: boolean
    /**
     * Which checkpoints are kept: the last `keep`, or the `keep` best by validation; the latter saves one at every
     * validation.
     * @default {"_tag":"LastN","keep":3}
     */
    readonly strategy?:
      | { readonly _tag: "LastN"; readonly keep: number }
      | { readonly _tag: "TopKValidation"; readonly keep: number }
  }
  /**
   * Which episodes are kept to look at.
   * @default {"everySteps":0,"episodes":1,"speed":30}
   */
  readonly render?: {
    /**
     * The number of env steps between two rendered episodes, a multiple of the validations'; 0 never renders.
     * @default 0
     */
    readonly everySteps?: number
    /**
     * The number of episodes that are kept each time; the picture shows the first.
     * @default 1
     */
    readonly episodes?: number
    /**
     * The speed of the picture, in env steps per second.
     * @default 30
     */
    readonly speed?: number
  }
  /**
   * Normalises observations or rewards by running statistics.
   * @default {"observations":false,"rewards":false}
   */
  readonly normalize?: {
    /**
     * Normalises observations to mean 0 and standard deviation 1, by running statistics.
     * @default false
     */
    readonly observations?: boolean
    /**
     * Divides rewards by the standard deviation of the discounted return, by running statistics.
     * @default false
     */
    readonly rewards?: boolean
  }
  /**
   * Whether scalars are written for TensorBoard.
   * @default true
   */
  readonly logScalars?: boolean
  /**
   * The folder of `run.log` and of TensorBoard's files, inside the run's folder; `.` is the run's folder itself.
   * @default "."
   */
  readonly logDir?: string
  /**
   * The level of messages in `run.log` and on the terminal. `ERROR` shows failures and the start of the run,
   * `WARN` adds warnings, `INFO` adds validations, checkpoints, notes and the end, `DEBUG` adds episodes and
   * updates.
   * @default "INFO"
   */
  readonly logLevel?: "DEBUG" | "INFO" | "WARN" | "ERROR"
  /**
   * The number of env steps between two records of the training's progress; a longer iteration has a record of its
   * own.
   * @default 256
   */
  readonly recordEvery?: number
  /**
   * The mean return of a validation at which the training ends early; null never ends it early.
   * @default null
   */
  readonly stopAtReturn?: number | null
}

/** The settings of a training's validation that are the same in code and in files. */
export interface ValidationOptions {
  /**
   * The number of env steps between two validations; 0 never validates.
   * @default 0
   */
  readonly everySteps?: number
  /**
   * The number of episodes of each validation.
   * @default 20
   */
  readonly episodes?: number
  /**
   * The number of steps after which a validation episode is cut off, whatever the env says.
   * @default 10000
   */
  readonly maxSteps?: number
  /**
   * The number of threads that step the validation envs, for heavy envs; 0 steps them in the run's own thread.
   * @default 0
   */
  readonly workers?: number
  /**
   * Draws actions as in training instead of taking the best one, for policies that need randomness to get
   * anywhere.
   * @default false
   */
  readonly sampled?: boolean
}

/** The settings of the block `trainer`: see `TrainerConfig`. */
export interface TrainerOptions {
  /**
   * The time of an update: `nstep` updates after `nsteps` steps of each env, `onestep` after every step.
   * @default "nstep"
   */
  readonly trainMode?: "nstep" | "onestep"
  /**
   * The kind of value targets: `NSTEP` is `LAMBDA` with λ = 1.
   * @default "NSTEP"
   */
  readonly returns?: "NSTEP" | "GAE" | "LAMBDA"
  /**
   * The number of env steps of the training, over all envs.
   * @default 50000000
   */
  readonly totalSteps?: number
  /**
   * The number of env steps that each env takes between two updates.
   * @default 5
   */
  readonly nsteps?: number
  /**
   * The discount factor of future rewards.
   * @default 0.99
   */
  readonly gamma?: number
  /**
   * The λ of the returns: 0 gives one-step targets, 1 gives full returns.
   * @default 0.95
   */
  readonly lambda?: number
  /**
   * The number of env steps between two validations; 0 never validates.
   * @default 1000000
   */
  readonly validateFreq?: number
  /**
   * The number of episodes of each validation.
   * @default 50
   */
  readonly numValEpisodes?: number
  /**
   * The number of steps after which a validation episode is cut off.
   * @default 10000
   */
  readonly maxValSteps?: number
  /**
   * The number of env steps between two checkpoints; 0 saves at the end only.
   * @default 0
   */
  readonly saveFreq?: number
  /**
   * Whether scalars are written for TensorBoard.
   * @default true
   */
  readonly logScalars?: boolean
  /**
   * The folder of the logs, inside the run's folder.
   * @default "."
   */
  readonly logDir?: string
  /**
   * The folder of the checkpoints, inside the run's folder.
   * @default "checkpoints"
   */
  readonly modelDir?: string
  /**
   * The number of env steps between two updates of the target network; 0 never updates it. Leave it out to use the
   * algorithm's own value.
   * @default 0
   */
  readonly updateTargetFreq?: number
  /**
   * The number of env steps between two rendered episodes, a multiple of `validateFreq`; 0 never renders.
   * @default 0
   */
  readonly renderFreq?: number
}
