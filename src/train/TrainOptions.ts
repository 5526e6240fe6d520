// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Train.run` that are the same in code and in files. */
export interface TrainOptions {
  /**
   * Envs that are stepped together.
   *
   * @default 8
   */
  readonly numEnvs?: number

  /**
   * Threads that step the envs, for heavy ones; 0 steps them where everything else is done. The result is the
   * same.
   *
   * @default 0
   */
  readonly workers?: number

  /**
   * Where all randomness comes from.
   *
   * @default 1
   */
  readonly seed?: number

  /**
   * The run's name, which is a part of its folder's.
   *
   * @default "run"
   */
  readonly name?: string

  /**
   * A line about the run, for people.
   *
   * @default null
   */
  readonly description?: string | null

  /**
   * When checkpoints are saved, and which ones stay.
   */
  readonly checkpoint?: {
    /**
     * The folder that they are kept in.
     *
     * @default "checkpoints"
     */
    readonly dir?: string
    /**
     * Save whenever this many more env steps were taken; 0 saves at the end only, null ten times in a run.
     *
     * @default null
     */
    readonly everySteps?: number | null
    /**
     * Save whenever this many more episodes have ended, too.
     *
     * @default 0
     */
    readonly everyEpisodes?: number
    /**
     * Save before the first step.
     *
     * @default false
     */
    readonly onStart?: boolean
    /**
     * Which ones stay: the last `keep`, or the `keep` best by validation, for which every validation saves one.
     *
     * @default {"_tag":"LastN","keep":3}
     */
    readonly strategy?:
      | { readonly _tag: "LastN"; readonly keep: number }
      | { readonly _tag: "TopKValidation"; readonly keep: number }
  }

  /**
   * Which episodes are kept to look at.
   *
   * @default {"everySteps":0,"episodes":1,"speed":30}
   */
  readonly render?: {
    /**
     * Keep an episode to look at whenever this many more env steps were taken: a multiple of the validations'; 0
     * never does.
     *
     * @default 0
     */
    readonly everySteps?: number
    /**
     * How many episodes are kept; the picture is of the first.
     *
     * @default 1
     */
    readonly episodes?: number
    /**
     * Steps a second that the picture plays.
     *
     * @default 30
     */
    readonly speed?: number
  }

  /**
   * What is normalised by running statistics.
   *
   * @default {"observations":false,"rewards":false}
   */
  readonly normalize?: {
    /**
     * Observations to mean 0 and deviation 1, by running statistics.
     *
     * @default false
     */
    readonly observations?: boolean
    /**
     * Rewards divided by the deviation of the discounted return.
     *
     * @default false
     */
    readonly rewards?: boolean
  }

  /**
   * Whether TensorBoard gets anything.
   *
   * @default true
   */
  readonly logScalars?: boolean

  /**
   * The folder of `run.log` and of what TensorBoard reads; `.` is the run's own.
   *
   * @default "."
   */
  readonly logDir?: string

  /**
   * How much `run.log` and the terminal are told: failures and how it began (`ERROR`), warnings, too (`WARN`),
   * validations, checkpoints, notes and the end, too (`INFO`), episodes and updates, too (`DEBUG`).
   *
   * @default "INFO"
   */
  readonly logLevel?: "DEBUG" | "INFO" | "WARN" | "ERROR"

  /**
   * Env steps between two records of how the learning goes; an iteration that takes more is recorded by itself.
   *
   * @default 256
   */
  readonly recordEvery?: number

  /**
   * Ends the training when a validation's mean return reaches this.
   *
   * @default null
   */
  readonly stopAtReturn?: number | null
}

/** The settings of a training's validation that are the same in code and in files. */
export interface ValidationOptions {
  /**
   * Validate whenever this many more env steps were taken; 0 never validates.
   *
   * @default 0
   */
  readonly everySteps?: number

  /**
   * Episodes of each validation.
   *
   * @default 20
   */
  readonly episodes?: number

  /**
   * An episode is cut off after so many steps, whatever the env says.
   *
   * @default 10000
   */
  readonly maxSteps?: number

  /**
   * Threads that step the validation envs, for heavy ones; 0 steps them where everything else is done.
   *
   * @default 0
   */
  readonly workers?: number

  /**
   * Draws actions as in training instead of taking the best: for policies that must be unsure to get anywhere.
   *
   * @default false
   */
  readonly sampled?: boolean
}

/** The settings of the block `trainer`: see `TrainerConfig`. */
export interface TrainerOptions {
  /**
   * `onestep` learns after every step of the envs, whatever `nsteps` says.
   *
   * @default "nstep"
   */
  readonly trainMode?: "nstep" | "onestep"

  /**
   * How value targets are made: `NSTEP` is `LAMBDA` with λ = 1.
   *
   * @default "NSTEP"
   */
  readonly returns?: "NSTEP" | "GAE" | "LAMBDA"

  /**
   * Env steps, over all envs.
   *
   * @default 50000000
   */
  readonly totalSteps?: number

  /**
   * Env steps that each env takes between updates.
   *
   * @default 5
   */
  readonly nsteps?: number

  /**
   * The discount of what comes later.
   *
   * @default 0.99
   */
  readonly gamma?: number

  /**
   * Between one-step targets (0) and whole returns (1).
   *
   * @default 0.95
   */
  readonly lambda?: number

  /**
   * Env steps between two validations; 0 never validates.
   *
   * @default 1000000
   */
  readonly validateFreq?: number

  /**
   * Episodes of a validation.
   *
   * @default 50
   */
  readonly numValEpisodes?: number

  /**
   * An episode of it is cut off after so many steps.
   *
   * @default 10000
   */
  readonly maxValSteps?: number

  /**
   * Env steps between two checkpoints; 0 saves at the end only.
   *
   * @default 0
   */
  readonly saveFreq?: number

  /**
   * Whether TensorBoard gets anything.
   *
   * @default true
   */
  readonly logScalars?: boolean

  /**
   * The folder of logs, inside of the run.
   *
   * @default "."
   */
  readonly logDir?: string

  /**
   * The folder of checkpoints, inside of the run.
   *
   * @default "checkpoints"
   */
  readonly modelDir?: string

  /**
   * Env steps between two updates of the target network; 0 never updates it, left out it is the algorithm's own.
   *
   * @default 0
   */
  readonly updateTargetFreq?: number

  /**
   * Env steps between two rendered episodes, a multiple of `validateFreq`; 0 never renders.
   *
   * @default 0
   */
  readonly renderFreq?: number
}
