import { Schema } from "effect"
import type { Algorithm } from "../learner/Algorithm.ts"
import { RetentionStrategy } from "../run/Checkpoint.ts"
import { intBetween, naturalInt, positiveInt, runName, threads, withDefault } from "../config/fields.ts"
import type { Env } from "../env/Env.ts"
import { LogLevel } from "../run/record/logLevel.ts"
import { kindField } from "../run/RunSpec.ts"
import type { TrainerOptions, TrainOptions, ValidationOptions } from "./TrainOptions.ts"
import * as Layout from "../run/Layout.ts"

/** An env in a config: its id, or its name with options. */
const EnvSetting = Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]).annotate({
  expected: "an env's id, or its name with options",
})

export const ValidationSettings = Schema.Struct({
  /** The number of env steps between two validations; 0 never validates. */
  everySteps: withDefault(naturalInt, 0),
  /** The number of episodes of each validation. */
  episodes: withDefault(intBetween(1, 100_000), 20),
  /** The number of steps after which a validation episode is cut off, whatever the env says. */
  maxSteps: withDefault(positiveInt, 10_000),
  /** The number of threads that step the validation envs, for heavy envs; 0 steps them in the run's own thread. */
  workers: withDefault(threads, 0),
  /** Draws actions as in training instead of taking the best one, for policies that need randomness to get anywhere. */
  sampled: withDefault(Schema.Boolean, false),
  /**
   * Envs to validate on besides the training env. Each plays its share of the episodes, at the same time as the others.
   */
  envs: withDefault(Schema.Array(EnvSetting), []),
})

/** A folder inside the run's folder, so that the run can be found, moved and resumed as a whole. */
const folderInRun = Schema.NonEmptyString.check(
  Schema.makeFilter((path) => !path.startsWith("/") && !path.split("/").includes(".."), {
    expected: "a folder inside the run's: a relative path without ..",
  }),
)

export const CheckpointSettings = Schema.Struct({
  /** The folder of the checkpoints, inside the run's folder. */
  dir: withDefault(folderInRun, Layout.checkpoints),
  /** The number of env steps between two checkpoints; 0 saves at the end only, null saves ten times in a run. */
  everySteps: withDefault(Schema.NullOr(naturalInt), null),
  /** The number of ended episodes between two checkpoints, in addition to `everySteps`; 0 does not count episodes. */
  everyEpisodes: withDefault(naturalInt, 0),
  /** Saves a checkpoint before the first step. */
  onStart: withDefault(Schema.Boolean, false),
  /**
   * Which checkpoints are kept: the last `keep`, or the `keep` best by validation; the latter saves one at every
   * validation.
   */
  strategy: withDefault(RetentionStrategy, { _tag: "LastN" as const, keep: 3 }),
})

export const RenderSettings = Schema.Struct({
  /** The number of env steps between two rendered episodes, a multiple of the validations'; 0 never renders. */
  everySteps: withDefault(naturalInt, 0),
  /** The number of episodes that are kept each time; the picture shows the first. */
  episodes: withDefault(positiveInt, 1),
  /** The speed of the picture, in env steps per second. */
  speed: withDefault(positiveInt, 30),
})

export const NormalizeSettings = Schema.Struct({
  /** Normalises observations to mean 0 and standard deviation 1, by running statistics. */
  observations: withDefault(Schema.Boolean, false),
  /** Divides rewards by the standard deviation of the discounted return, by running statistics. */
  rewards: withDefault(Schema.Boolean, false),
})

/** The settings of a training. The env and the algorithm are decoded by their own Schemas. */
export const Settings = Schema.Struct({
  /** The kind of run: a training by reinforcement learning. */
  kind: kindField("training"),
  /** The id of an env, or its name with options. */
  env: EnvSetting,
  /** The number of envs that are stepped together. */
  numEnvs: withDefault(intBetween(1, 65_536), 8),
  /**
   * The number of threads that step the envs, for heavy envs; 0 steps them in the run's own thread. The result is the
   * same.
   */
  workers: withDefault(threads, 0),
  /** The number of env steps of the training, over all envs. */
  totalSteps: positiveInt,
  /** The seed of all randomness. */
  seed: withDefault(Schema.Int, 1),
  /** The name of the run, which is a part of its folder's name. */
  name: withDefault(runName, "run"),
  /** A line that describes the run, for people; null for none. */
  description: withDefault(Schema.NullOr(Schema.String), null),
  /** The name of the algorithm, with its own settings. */
  algorithm: Schema.Record(Schema.String, Schema.Unknown),
  /** How the policy is validated. */
  validation: withDefault(ValidationSettings, {}),
  /** When checkpoints are saved, and which ones are kept. */
  checkpoint: withDefault(CheckpointSettings, {}),
  /** Which episodes are kept to look at. */
  render: withDefault(RenderSettings, {}),
  /** Normalises observations or rewards by running statistics. */
  normalize: withDefault(NormalizeSettings, {}),
  /** Whether scalars are written for TensorBoard. */
  logScalars: withDefault(Schema.Boolean, true),
  /** The folder of `run.log` and of TensorBoard's files, inside the run's folder; `.` is the run's folder itself. */
  logDir: withDefault(folderInRun, "."),
  /**
   * The level of messages in `run.log` and on the terminal. `ERROR` shows failures and the start of the run, `WARN` adds warnings, `INFO`
   * adds validations, checkpoints, notes and the end, `DEBUG` adds episodes and updates.
   */
  logLevel: withDefault(LogLevel, "INFO"),
  /**
   * The number of env steps between two records of the training's progress; a longer iteration has a record of its own.
   */
  recordEvery: withDefault(positiveInt, 256),
  /** The mean return of a validation at which the training ends early; null never ends it early. */
  stopAtReturn: withDefault(Schema.NullOr(Schema.Finite), null),
})
export type Settings = typeof Settings.Type

/** The input of `Train.run`: the settings, with envs and an algorithm as values or by name. */
export interface TrainInput extends TrainOptions {
  /** The env to learn in, or the id of a built-in env. */
  readonly env: Env | string
  /** The algorithm that learns, or its name. */
  readonly algorithm: Algorithm | string
  /** The number of env steps of the training, over all envs. The `trainer` block can set it instead. */
  readonly totalSteps?: number
  /** How the policy is validated. */
  readonly validation?: ValidationInput
  /** Settings in one flat block, by the names of other libraries: see `TrainerConfig`. */
  readonly trainer?: TrainerOptions
}

interface ValidationInput extends ValidationOptions {
  /** Envs to validate on besides the training env. Each plays its share of the episodes, at the same time as the others. */
  readonly envs?: ReadonlyArray<Env | string>
}
