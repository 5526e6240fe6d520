// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Runtime.run` that are the same in code and in files. */
export interface RuntimeOptions {
  /**
   * The name of the run, which is shown in lists and is a part of its folder's name.
   * @default "run"
   */
  readonly name?: string
  /**
   * A line that describes the run, for people; null for none.
   * @default null
   */
  readonly description?: string | null
  /**
   * The seed of all randomness of the envs and of the model's sampling.
   * @default 0
   */
  readonly seed?: number | null
  /**
   * How episodes are run, scored, validated and saved.
   */
  readonly runtime?: {
    /**
     * The number of tasks to train on, counted from the data set's beginning, also in a resumed run; null is all, 0
     * is none.
     * @default null
     */
    readonly maxEnvsToVisit?: number | null
    /**
     * The number of steps after which an episode is cut off; null leaves that to the envs.
     * @default null
     */
    readonly maxStepsPerEpisode?: number | null
    /**
     * Shows progress and a summary in the terminal.
     * @default true
     */
    readonly verbose?: boolean
    /**
     * The folder of the scores, absolute or relative to the run's folder; of a path with a suffix, the folder that
     * it lies in. null is the run's folder itself.
     * @default null
     */
    readonly scoresPath?: string | null
    /**
     * Adds observations, actions, feedback and times to the lines of the scores.
     * @default true
     */
    readonly verboseScoreLogging?: boolean
    /**
     * The default of `validation_num_workers`. Training episodes always follow one another, as each learns from the
     * last.
     * @default null
     */
    readonly numParallelEpisodes?: number | null
    /**
     * The number of ended episodes between two validations; null or 0 never validates.
     * @default null
     */
    readonly validationFreq?: number | null
    /**
     * The number of validation episodes at the same time; null takes `num_parallel_episodes`, or else the number of
     * cores.
     * @default null
     */
    readonly validationNumWorkers?: number | null
    /**
     * Validates before the first episode.
     * @default false
     */
    readonly runValidationAtStart?: boolean
    /**
     * The folder of the checkpoints, absolute or relative to the run's folder; null is `checkpoints`.
     * @default null
     */
    readonly checkpointDir?: string | null
    /**
     * The number of ended episodes between two checkpoints; null saves ten times in a run, 0 at its end only.
     * @default null
     */
    readonly checkpointEveryEpisodes?: number | null
    /**
     * Which checkpoints are kept: the newest, or the best by validation; the latter saves one at every validation.
     * @default "last_n"
     */
    readonly checkpointStrategy?: "last_n" | "top_k_val"
    /**
     * The number of checkpoints that are kept; 0 keeps all.
     * @default 0
     */
    readonly checkpointKeepLast?: number
    /**
     * Saves a checkpoint before the first episode.
     * @default false
     */
    readonly checkpointOnStart?: boolean
    /**
     * The folder of a checkpoint, or `latest` in a folder of checkpoints. Training continues from it in a new run's
     * folder; null starts anew.
     * @default null
     */
    readonly resumeFrom?: string | null
    /**
     * The number of episodes to skip at the data set's beginning.
     * @default 0
     */
    readonly startEpisodeIndex?: number
  }
  /**
   * Which files a run writes, and where.
   */
  readonly output?: {
    /**
     * The folder in which each run gets a folder `YYYYMMDD_HHMMSS`; null puts the run into the launcher's results,
     * in a folder by the run's identifier.
     * @default null
     */
    readonly resultsDir?: string | null
    /**
     * The level of messages in `run.log` and on the terminal. `ERROR` shows failures and the start of the run,
     * `WARN` adds warnings, `INFO` adds validations, checkpoints, notes and the end, `DEBUG` adds episodes and
     * updates.
     * @default "INFO"
     */
    readonly logLevel?: "DEBUG" | "INFO" | "WARN" | "ERROR"
    /**
     * The number of ended episodes between two copies of the memory as `memories/memory_{episode}.jsonl`; 0 saves
     * one at the end only.
     * @default 0
     */
    readonly saveMemoryEvery?: number
    /**
     * Saves every call of the model with its tokens, as rollouts to train on: `rollouts/train/rollouts.jsonl` and so
     * on.
     * @default false
     */
    readonly saveRollouts?: boolean
  } | null
}
