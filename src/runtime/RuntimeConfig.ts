/** The Schemas of the settings of a training of agents; `settings.ts` checks what they can't express. */
import { Schema } from "effect"
import type { RetentionStrategy } from "../run/Checkpoint.ts"
import { atOnce, naturalInt, orDefault, positiveInt, runName, withDefault } from "../config/fields.ts"
import { LogLevel } from "../run/record/logLevel.ts"
import { kindField } from "../run/RunSpec.ts"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => withDefault(Schema.NullOr(schema), null)

/** How episodes are run, scored, validated and saved. */
export const RuntimeSettings = Schema.Struct({
  /**
   * The number of tasks to train on, counted from the data set's beginning, also in a resumed run; null is all, 0 is
   * none.
   */
  maxEnvsToVisit: optional(naturalInt),
  /** The number of steps after which an episode is cut off; null leaves that to the envs. */
  maxStepsPerEpisode: optional(positiveInt),
  /** Shows progress and a summary in the terminal. */
  verbose: withDefault(Schema.Boolean, true),
  /**
   * The folder of the scores, absolute or relative to the run's folder; of a path with a suffix, the folder that it
   * lies in. null is the run's folder itself.
   */
  scoresPath: optional(Schema.NonEmptyString),
  /** Adds observations, actions, feedback and times to the lines of the scores. */
  verboseScoreLogging: withDefault(Schema.Boolean, true),
  /**
   * The default of `validation_num_workers`. Training episodes always follow one another, as each learns from the last.
   */
  numParallelEpisodes: optional(atOnce),
  /** The number of ended episodes between two validations; null or 0 never validates. */
  validationFreq: optional(naturalInt),
  /**
   * The number of validation episodes at the same time; null takes `num_parallel_episodes`, or else the number of
   * cores.
   */
  validationNumWorkers: optional(atOnce),
  /** Validates before the first episode. */
  runValidationAtStart: withDefault(Schema.Boolean, false),
  /** The folder of the checkpoints, absolute or relative to the run's folder; null is `checkpoints`. */
  checkpointDir: optional(Schema.NonEmptyString),
  /** The number of ended episodes between two checkpoints; null saves ten times in a run, 0 at its end only. */
  checkpointEveryEpisodes: optional(naturalInt),
  /** Which checkpoints are kept: the newest, or the best by validation; the latter saves one at every validation. */
  checkpointStrategy: withDefault(Schema.Literals(["last_n", "top_k_val"]), "last_n"),
  /** The number of checkpoints that are kept; 0 keeps all. */
  checkpointKeepLast: withDefault(naturalInt, 0),
  /** Saves a checkpoint before the first episode. */
  checkpointOnStart: withDefault(Schema.Boolean, false),
  /**
   * The folder of a checkpoint, or `latest` in a folder of checkpoints. Training continues from it in a new run's
   * folder; null starts anew.
   */
  resumeFrom: optional(Schema.NonEmptyString),
  /** The number of episodes to skip at the data set's beginning. */
  startEpisodeIndex: withDefault(naturalInt, 0),
})
export type RuntimeSettings = typeof RuntimeSettings.Type

/** The files that a run writes, and where. */
export const OutputSettings = Schema.Struct({
  /**
   * The folder in which each run gets a folder `YYYYMMDD_HHMMSS`; null puts the run into the launcher's results, in a
   * folder by the run's identifier.
   */
  resultsDir: optional(Schema.NonEmptyString),
  /**
   * The level of messages in `run.log` and on the terminal. `ERROR` shows failures and the start of the run, `WARN` adds warnings, `INFO`
   * adds validations, checkpoints, notes and the end, `DEBUG` adds episodes and updates.
   */
  logLevel: withDefault(LogLevel, "INFO"),
  /**
   * The number of ended episodes between two copies of the memory as `memories/memory_{episode}.jsonl`; 0 saves one at
   * the end only.
   */
  saveMemoryEvery: withDefault(naturalInt, 0),
  /**
   * Saves every call of the model with its tokens, as rollouts to train on: `rollouts/train/rollouts.jsonl` and so on.
   */
  saveRollouts: withDefault(Schema.Boolean, false),
})
export type OutputSettings = typeof OutputSettings.Type

/** The settings of a training of agents. The agent and the data sets are decoded by their own Schemas. */
export const RunSettings = Schema.Struct({
  /** The kind of run: a training of agents that ask a language model. */
  kind: kindField("agents"),
  /** The name of the run, which is shown in lists and is a part of its folder's name. */
  name: withDefault(runName, "run"),
  /** A line that describes the run, for people; null for none. */
  description: optional(Schema.String),
  /** The seed of all randomness of the envs and of the model's sampling. */
  seed: orDefault(Schema.Int, 0),
  /** How episodes are run, scored, validated and saved. */
  runtime: withDefault(RuntimeSettings, {}),
  /** Which files a run writes, and where. */
  output: orDefault(OutputSettings, {}),
})
export type RunSettings = typeof RunSettings.Type

/** Converts the checkpoint settings to the strategy of `Checkpoint.save`. */
export const strategyOf = ({ checkpointStrategy, checkpointKeepLast: keep }: RuntimeSettings): RetentionStrategy =>
  checkpointStrategy === "top_k_val" && keep > 0 ? { _tag: "TopKValidation", keep } : { _tag: "LastN", keep }
