import { Schema } from "effect"
import type { Algorithm } from "../algorithm/Algorithm.ts"
import { RetentionStrategy } from "../checkpoint/Checkpoint.ts"
import { intBetween, naturalInt, positiveInt, runName, threads, withDefault } from "../config/fields.ts"
import type { Env } from "../env/Env.ts"
import { LogLevel } from "../record/logLevel.ts"
import type { TrainerOptions, TrainOptions, ValidationOptions } from "./TrainOptions.ts"

/** An env by its id, or by its name with options. */
const EnvSetting = Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]).annotate({
  expected: "an env's id, or its name with options",
})

export const ValidationSettings = Schema.Struct({
  /** Validate whenever this many more env steps were taken; 0 never validates. */
  everySteps: withDefault(naturalInt, 0),
  /** Episodes of each validation. */
  episodes: withDefault(intBetween(1, 100_000), 20),
  /** An episode is cut off after so many steps, whatever the env says. */
  maxSteps: withDefault(positiveInt, 10_000),
  /** Threads that step the validation envs, for heavy ones; 0 steps them where everything else is done. */
  workers: withDefault(threads, 0),
  /** Draws actions as in training instead of taking the best: for policies that must be unsure to get anywhere. */
  sampled: withDefault(Schema.Boolean, false),
  /** Other envs than that of the training: each plays its share of the episodes, at the same time as the others. */
  envs: withDefault(Schema.Array(EnvSetting), []),
})

/** A folder in the run's own: outside of it, nothing could be found, moved or gone on with as a whole. */
const folderInRun = Schema.NonEmptyString.check(
  Schema.makeFilter((path) => !path.startsWith("/") && !path.split("/").includes(".."), {
    expected: "a folder inside the run's: a relative path without ..",
  }),
)

export const CheckpointSettings = Schema.Struct({
  /** The folder that they are kept in. */
  dir: withDefault(folderInRun, "checkpoints"),
  /** Save whenever this many more env steps were taken; 0 saves at the end only, null ten times in a run. */
  everySteps: withDefault(Schema.NullOr(naturalInt), null),
  /** Save whenever this many more episodes have ended, too. */
  everyEpisodes: withDefault(naturalInt, 0),
  /** Save before the first step. */
  onStart: withDefault(Schema.Boolean, false),
  /** Which ones stay: the last `keep`, or the `keep` best by validation, for which every validation saves one. */
  strategy: withDefault(RetentionStrategy, { _tag: "LastN" as const, keep: 3 }),
})

export const RenderSettings = Schema.Struct({
  /** Keep an episode to look at whenever this many more env steps were taken: a multiple of the validations'; 0 never does. */
  everySteps: withDefault(naturalInt, 0),
  /** How many episodes are kept; the picture is of the first. */
  episodes: withDefault(positiveInt, 1),
  /** Steps a second that the picture plays. */
  speed: withDefault(positiveInt, 30),
})

export const NormalizeSettings = Schema.Struct({
  /** Observations to mean 0 and deviation 1, by running statistics. */
  observations: withDefault(Schema.Boolean, false),
  /** Rewards divided by the deviation of the discounted return. */
  rewards: withDefault(Schema.Boolean, false),
})

/** Everything about a training but the env and the algorithm themselves. */
export const Settings = Schema.Struct({
  /** An env's id, or its name with options. */
  env: EnvSetting,
  /** Envs that are stepped together. */
  numEnvs: withDefault(intBetween(1, 65_536), 8),
  /** Threads that step the envs, for heavy ones; 0 steps them where everything else is done. The result is the same. */
  workers: withDefault(threads, 0),
  /** Env steps, over all envs. */
  totalSteps: positiveInt,
  /** Where all randomness comes from. */
  seed: withDefault(Schema.Int, 1),
  /** The run's name, which is a part of its folder's. */
  name: withDefault(runName, "run"),
  /** A line about the run, for people. */
  description: withDefault(Schema.NullOr(Schema.String), null),
  /** The algorithm's name and its own config. */
  algorithm: Schema.Record(Schema.String, Schema.Unknown),
  /** How the policy is validated. */
  validation: withDefault(ValidationSettings, {}),
  /** When checkpoints are saved, and which ones stay. */
  checkpoint: withDefault(CheckpointSettings, {}),
  /** Which episodes are kept to look at. */
  render: withDefault(RenderSettings, {}),
  /** What is normalised by running statistics. */
  normalize: withDefault(NormalizeSettings, {}),
  /** Whether TensorBoard gets anything. */
  logScalars: withDefault(Schema.Boolean, true),
  /** The folder of `run.log` and of what TensorBoard reads; `.` is the run's own. */
  logDir: withDefault(folderInRun, "."),
  /** How much `run.log` and the terminal are told: failures and how it began (`ERROR`), warnings, too (`WARN`), validations, checkpoints, notes and the end, too (`INFO`), episodes and updates, too (`DEBUG`). */
  logLevel: withDefault(LogLevel, "INFO"),
  /** Env steps between two records of how the learning goes; an iteration that takes more is recorded by itself. */
  recordEvery: withDefault(positiveInt, 256),
  /** Ends the training when a validation's mean return reaches this. */
  stopAtReturn: withDefault(Schema.NullOr(Schema.Finite), null),
})
export type Settings = typeof Settings.Type

/** What `Train.run` takes: the settings, with envs and an algorithm as values or by name. */
export interface TrainInput extends TrainOptions {
  /** The env to learn in, or a built-in one's id. */
  readonly env: Env | string
  /** The algorithm that learns, or its name. */
  readonly algorithm: Algorithm | string
  /** Env steps, over all envs; may be left to `trainer`. */
  readonly totalSteps?: number
  /** How the policy is validated. */
  readonly validation?: ValidationInput
  /** Settings by their names in a flat block: see `TrainerConfig`. */
  readonly trainer?: TrainerOptions
}

interface ValidationInput extends ValidationOptions {
  /** Other envs than that of the training: each plays its share of the episodes, at the same time as the others. */
  readonly envs?: ReadonlyArray<Env | string>
}
