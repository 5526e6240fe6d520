/** Defines the settings of a training of agents. `settings.ts` checks what a Schema can't express. */
import { Schema } from "effect"
import type { RetentionStrategy } from "../../run/Checkpoint.ts"
import { atOnce, bounded, orDefault, runName, withDefault } from "../../base/config/fields.ts"
import { LogLevel } from "../../run/record/logLevel.ts"
import { kindField } from "../../run/RunSpec.ts"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => withDefault(Schema.NullOr(schema), null)

/** The settings of how episodes are run, scored, validated and saved. */
export interface RuntimeOptions {
  /**
   * The number of tasks to train on. A resumed run, too, counts from the beginning of the data set. null trains on all tasks,
   * 0 on none. @default null
   */
  readonly maxEnvsToVisit?: number | null
  /** The number of steps after which an episode is cut off; null leaves the limit to the envs. @default null */
  readonly maxStepsPerEpisode?: number | null
  /** Whether progress and a summary are shown in the terminal. @default true */
  readonly verbose?: boolean
  /**
   * The folder of `scores/`, absolute or relative to the run's folder. If the path has a suffix, as in
   * `logs/scores.jsonl`, its parent folder is used; null is the run's folder itself. @default null
   */
  readonly scoresPath?: string | null
  /** Whether the lines of the scores include observations, actions, feedback and times. @default true */
  readonly verboseScoreLogging?: boolean
  /**
   * The default of `validation_num_workers`. Training episodes are never parallel, because the agent learns from each one for
   * the next. @default null
   */
  readonly numParallelEpisodes?: number | null
  /** The number of ended episodes between two validations; null or 0 never validates. @default null */
  readonly validationFreq?: number | null
  /**
   * The number of simultaneous validation episodes; null uses `num_parallel_episodes` or, without that, the number of CPU
   * cores. @default null
   */
  readonly validationNumWorkers?: number | null
  /** Whether the agent is validated before the first episode. @default false */
  readonly runValidationAtStart?: boolean
  /** The folder of the checkpoints, absolute or relative to the run's folder; null is `checkpoints`. @default null */
  readonly checkpointDir?: string | null
  /** The number of episodes between two checkpoints; null saves ten times in a run, 0 only at its end. @default null */
  readonly checkpointEveryEpisodes?: number | null
  /**
   * The checkpoints to keep: the newest ones (`last_n`), or those with the best validation scores (`top_k_val`,
   * which also saves one at every validation). @default "last_n"
   */
  readonly checkpointStrategy?: "last_n" | "top_k_val"
  /** The number of checkpoints that are kept; 0 keeps all. @default 0 */
  readonly checkpointKeepLast?: number
  /** Whether a checkpoint is saved before the first episode. @default false */
  readonly checkpointOnStart?: boolean
  /**
   * The checkpoint of another run from which this new run continues: the path of its folder, of the link `latest`, or
   * of the folder with all checkpoints; null starts from the beginning. @default null
   */
  readonly resumeFrom?: string | null
  /** The number of episodes to skip at the data set's beginning. @default 0 */
  readonly startEpisodeIndex?: number
}

export const RuntimeSettings = Schema.Struct({
  maxEnvsToVisit: optional(bounded("countOrNone")),
  maxStepsPerEpisode: optional(bounded("count")),
  verbose: withDefault(Schema.Boolean, true),
  scoresPath: optional(Schema.NonEmptyString),
  verboseScoreLogging: withDefault(Schema.Boolean, true),
  numParallelEpisodes: optional(atOnce),
  validationFreq: optional(bounded("countOrNone")),
  validationNumWorkers: optional(atOnce),
  runValidationAtStart: withDefault(Schema.Boolean, false),
  checkpointDir: optional(Schema.NonEmptyString),
  checkpointEveryEpisodes: optional(bounded("countOrNone")),
  checkpointStrategy: withDefault(Schema.Literals(["last_n", "top_k_val"]), "last_n"),
  checkpointKeepLast: withDefault(bounded("keptOrNone"), 0),
  checkpointOnStart: withDefault(Schema.Boolean, false),
  resumeFrom: optional(Schema.NonEmptyString),
  startEpisodeIndex: withDefault(bounded("countOrNone"), 0),
})
export type RuntimeSettings = typeof RuntimeSettings.Type

/** The settings of what a new run begins with. */
export interface RuntimeStartOptions {
  /**
   * The run, or the checkpoint, whose memory the agent begins with: a folder, `latest` or a part of a run's path. The model,
   * the prompts, the kind of memory and the tasks may differ. The episodes begin with the first task. @default null
   */
  readonly memory?: string | null
  /**
   * The run that learned the texts with which the agent begins, in place of its own: a folder, `latest` or a part of a run's
   * path, or a `texts.json`. Only an agent of a config has named texts. The saved config has the texts themselves, as
   * `agent.texts`. @default null
   */
  readonly texts?: string | null
}

export const RuntimeStartSettings = Schema.Struct({
  memory: optional(Schema.NonEmptyString),
  texts: optional(Schema.NonEmptyString),
})
export type RuntimeStartSettings = typeof RuntimeStartSettings.Type

/** The settings of the files that a run writes, and of their folders. */
export interface OutputOptions {
  /**
   * The folder in which each run gets a folder `YYYYMMDD_HHMMSS`. With null, the run goes into the launcher's results
   * folder, in a folder named by the run's identifier. @default null
   */
  readonly resultsDir?: string | null
  /**
   * The level of messages in `run.log` and the terminal. `ERROR` shows failures and the start of the run, `WARN` adds
   * warnings, `INFO` validations, checkpoints, notes and the end, and `DEBUG` episodes and updates. @default "INFO"
   */
  readonly logLevel?: LogLevel
  /**
   * The number of episodes between two copies of the memory as `memories/memory_{episode}.jsonl`; 0 saves only one at the
   * end. @default 0
   */
  readonly saveMemoryEvery?: number
  /**
   * Whether the rollouts of all episodes (every call of the model, with its tokens) are saved below `rollouts/`. @default
   * false
   */
  readonly saveRollouts?: boolean
  /**
   * The keys of the files in `llm_calls/`, which `log_calls` writes: our `own`, which the page shows, or `original`, the keys
   * of another runtime: `system_prompt`, `user_prompt`, `output`, `extra` … @default "own"
   */
  readonly llmCalls?: "own" | "original"
}

export const OutputSettings = Schema.Struct({
  resultsDir: optional(Schema.NonEmptyString),
  logLevel: withDefault(LogLevel, "INFO"),
  saveMemoryEvery: withDefault(bounded("countOrNone"), 0),
  saveRollouts: withDefault(Schema.Boolean, false),
  llmCalls: withDefault(Schema.Literals(["own", "original"]), "own"),
})
export type OutputSettings = typeof OutputSettings.Type

/** The settings of a training of agents. The agent and the data sets are decoded by their own Schemas. */
export const RunSettings = Schema.Struct({
  /** The kind of run: a training of agents that ask a language model. */
  kind: kindField("agents"),
  name: withDefault(runName, "run"),
  description: optional(Schema.String),
  seed: orDefault(bounded("seed"), 0),
  /** The runs whose memory and texts a new run begins with; null: an empty memory, and the agent's own texts. */
  start: optional(RuntimeStartSettings),
  runtime: withDefault(RuntimeSettings, {}),
  output: orDefault(OutputSettings, {}),
})
export type RunSettings = typeof RunSettings.Type

/** Returns the rule that decides which checkpoints are kept. `LastN` with `keep: 0` keeps all, also for `top_k_val`. */
export const strategyOf = ({ checkpointStrategy, checkpointKeepLast: keep }: RuntimeSettings): RetentionStrategy =>
  checkpointStrategy === "top_k_val" && keep > 0 ? { _tag: "TopKValidation", keep } : { _tag: "LastN", keep }
