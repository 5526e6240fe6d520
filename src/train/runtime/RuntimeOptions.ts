// Written by `npm run settings` from the Schema and the comments on it.

/** The settings of `Runtime.run` that are the same in code and in files. */
export interface RuntimeOptions {
  /**
   * In the run's folder and its lists.
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
   * Where all chance of the envs comes from, and the seeds of the model's sampling.
   *
   * @default 0
   */
  readonly seed?: number | null

  /**
   * How episodes are run, scored, validated and saved.
   */
  readonly runtime?: {
    /**
     * The first so many tasks of the data set, counted from its beginning also when a run goes on; null: all, 0:
     * none.
     *
     * @default null
     */
    readonly maxEnvsToVisit?: number | null
    /**
     * An episode is cut off after so many steps; null leaves that to the envs.
     *
     * @default null
     */
    readonly maxStepsPerEpisode?: number | null
    /**
     * Progress and a summary in the terminal.
     *
     * @default true
     */
    readonly verbose?: boolean
    /**
     * Where scores go, below the run's folder or from the root on; of a path with a suffix, its folder. null: the
     * run's folder itself.
     *
     * @default null
     */
    readonly scoresPath?: string | null
    /**
     * Observations, actions, feedback and times in the scores' lines, too.
     *
     * @default true
     */
    readonly verboseScoreLogging?: boolean
    /**
     * What `validation_num_workers` is unless given. Training episodes follow one another, as each learns from the
     * last.
     *
     * @default null
     */
    readonly numParallelEpisodes?: number | null
    /**
     * Validate whenever so many more episodes have ended; null or 0 never does.
     *
     * @default null
     */
    readonly validationFreq?: number | null
    /**
     * Validation episodes at a time. null: `num_parallel_episodes`, else the number of cores.
     *
     * @default null
     */
    readonly validationNumWorkers?: number | null
    /**
     * Validate before the first episode.
     *
     * @default false
     */
    readonly runValidationAtStart?: boolean
    /**
     * The folder of the checkpoints, below the run's or from the root on; null: `checkpoints`.
     *
     * @default null
     */
    readonly checkpointDir?: string | null
    /**
     * Save whenever so many more episodes have ended; null: ten times in a run, 0: at its end only.
     *
     * @default null
     */
    readonly checkpointEveryEpisodes?: number | null
    /**
     * Which ones stay: the newest, or the best by validation, for which every validation saves one.
     *
     * @default "last_n"
     */
    readonly checkpointStrategy?: "last_n" | "top_k_val"
    /**
     * How many; 0 keeps all.
     *
     * @default 0
     */
    readonly checkpointKeepLast?: number
    /**
     * Save before the first episode.
     *
     * @default false
     */
    readonly checkpointOnStart?: boolean
    /**
     * A checkpoint's folder, or `latest` in a folder of such: goes on from it, in a new run's folder.
     *
     * @default null
     */
    readonly resumeFrom?: string | null
    /**
     * Episodes of the data set that are passed over.
     *
     * @default 0
     */
    readonly startEpisodeIndex?: number
  }

  /**
   * What a run leaves, and where.
   */
  readonly output?: {
    /**
     * Runs get folders `YYYYMMDD_HHMMSS` in it; null: the launcher's results, by the identifier of all runs.
     *
     * @default null
     */
    readonly resultsDir?: string | null
    /**
     * How much `run.log` and the terminal are told: failures and how it began (`ERROR`), warnings, too (`WARN`),
     * validations, checkpoints, notes and the end, too (`INFO`), episodes and updates, too (`DEBUG`).
     *
     * @default "INFO"
     */
    readonly logLevel?: "DEBUG" | "INFO" | "WARN" | "ERROR"
    /**
     * Keep the memory as `memories/memory_{episode}.jsonl` whenever so many more episodes have ended; 0: at the end
     * only.
     *
     * @default 0
     */
    readonly saveMemoryEvery?: number
    /**
     * Keep every call of the model, with its tokens, as rollouts to train on: `rollouts/train/rollouts.jsonl` and so
     * on.
     *
     * @default false
     */
    readonly saveRollouts?: boolean
  } | null
}
