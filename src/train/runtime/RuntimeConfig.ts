import { Schema } from "effect"
import type { RetentionStrategy } from "../../checkpoint/Checkpoint.ts"
import { atOnce, naturalInt, orDefault, positiveInt, runName, withDefault } from "../../config/fields.ts"
import { LogLevel } from "../../record/logLevel.ts"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => withDefault(Schema.NullOr(schema), null)

/** How episodes are run, scored, validated and saved. */
export const RuntimeSettings = Schema.Struct({
  /** The first so many tasks of the data set, counted from its beginning also when a run goes on; null: all, 0: none. */
  maxEnvsToVisit: optional(naturalInt),
  /** An episode is cut off after so many steps; null leaves that to the envs. */
  maxStepsPerEpisode: optional(positiveInt),
  /** Progress and a summary in the terminal. */
  verbose: withDefault(Schema.Boolean, true),
  /** Where scores go, below the run's folder or from the root on; of a path with a suffix, its folder. null: the run's folder itself. */
  scoresPath: optional(Schema.NonEmptyString),
  /** Observations, actions, feedback and times in the scores' lines, too. */
  verboseScoreLogging: withDefault(Schema.Boolean, true),
  /** What `validation_num_workers` is unless given. Training episodes follow one another, as each learns from the last. */
  numParallelEpisodes: optional(atOnce),
  /** Validate whenever so many more episodes have ended; null or 0 never does. */
  validationFreq: optional(naturalInt),
  /** Validation episodes at a time. null: `num_parallel_episodes`, else the number of cores. */
  validationNumWorkers: optional(atOnce),
  /** Validate before the first episode. */
  runValidationAtStart: withDefault(Schema.Boolean, false),
  /** The folder of the checkpoints, below the run's or from the root on; null: `checkpoints`. */
  checkpointDir: optional(Schema.NonEmptyString),
  /** Save whenever so many more episodes have ended; null: ten times in a run, 0: at its end only. */
  checkpointEveryEpisodes: optional(naturalInt),
  /** Which ones stay: the newest, or the best by validation, for which every validation saves one. */
  checkpointStrategy: withDefault(Schema.Literals(["last_n", "top_k_val"]), "last_n"),
  /** How many; 0 keeps all. */
  checkpointKeepLast: withDefault(naturalInt, 0),
  /** Save before the first episode. */
  checkpointOnStart: withDefault(Schema.Boolean, false),
  /** A checkpoint's folder, or `latest` in a folder of such: goes on from it, in a new run's folder. */
  resumeFrom: optional(Schema.NonEmptyString),
  /** Episodes of the data set that are passed over. */
  startEpisodeIndex: withDefault(naturalInt, 0),
})
export type RuntimeSettings = typeof RuntimeSettings.Type

/** What a run leaves, and where. */
export const OutputSettings = Schema.Struct({
  /** Runs get folders `YYYYMMDD_HHMMSS` in it; null: the launcher's results, by the identifier of all runs. */
  resultsDir: optional(Schema.NonEmptyString),
  /** How much `run.log` and the terminal are told: failures and how it began (`ERROR`), warnings, too (`WARN`), validations, checkpoints, notes and the end, too (`INFO`), episodes and updates, too (`DEBUG`). */
  logLevel: withDefault(LogLevel, "INFO"),
  /** Keep the memory as `memories/memory_{episode}.jsonl` whenever so many more episodes have ended; 0: at the end only. */
  saveMemoryEvery: withDefault(naturalInt, 0),
  /** Keep every call of the model, with its tokens, as rollouts to train on: `rollouts/train/rollouts.jsonl` and so on. */
  saveRollouts: withDefault(Schema.Boolean, false),
})
export type OutputSettings = typeof OutputSettings.Type

/** All about a run but what is played, and by whom. */
export const RunSettings = Schema.Struct({
  /** In the run's folder and its lists. */
  name: withDefault(runName, "run"),
  /** A line about the run, for people. */
  description: optional(Schema.String),
  /** Where all chance of the envs comes from, and the seeds of the model's sampling. */
  seed: orDefault(Schema.Int, 0),
  /** How episodes are run, scored, validated and saved. */
  runtime: withDefault(RuntimeSettings, {}),
  /** What a run leaves, and where. */
  output: orDefault(OutputSettings, {}),
})
export type RunSettings = typeof RunSettings.Type

/** Which checkpoints stay, in the words of all checkpoints. */
export const strategyOf = ({ checkpointStrategy, checkpointKeepLast: keep }: RuntimeSettings): RetentionStrategy =>
  checkpointStrategy === "top_k_val" && keep > 0 ? { _tag: "TopKValidation", keep } : { _tag: "LastN", keep }
