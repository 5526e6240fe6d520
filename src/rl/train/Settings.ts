/** Declares the settings of a training: the Schemas by which `plan.ts` checks them, and the types for use in code. */
import * as Schema from "effect/Schema"
import type { Algorithm } from "../learner/Algorithm.ts"
import { RetentionStrategy } from "../../run/Checkpoint.ts"
import type { Plain } from "../../base/config/plain.ts"
import { bounded, real, runName, threads, withDefault } from "../../base/config/fields.ts"
import type { Env } from "../env/Env.ts"
import type { Callback } from "./Callback.ts"
import { LogLevel } from "../../run/record/logLevel.ts"
import { kindField } from "../../run/RunSpec.ts"
import type { TrainerOptions } from "./TrainerConfig.ts"
import * as Layout from "../../run/Layout.ts"

/** An env in a config: its id, or its name with options. */
const EnvSetting = Schema.Union([Schema.String, Schema.Record(Schema.String, Schema.Unknown)]).annotate({
  expected: "an env's id, or its name with options",
})

export interface ValidationOptions {
  /** The number of env steps, over all envs, between two validations; 0 never validates. @default 0 */
  readonly everySteps?: number
  /** The number of episodes of each validation. @default 20 */
  readonly episodes?: number
  /**
   * The number of steps after which a validation episode is cut off, even if the env does not end it. @default 10000
   */
  readonly maxSteps?: number
  /** The number of threads that step the validation envs, for heavy envs; 0 steps them in the run's own thread. @default 0 */
  readonly workers?: number
  /** Whether actions are sampled as in training, instead of taking the best ones. @default false */
  readonly sampled?: boolean
  /** The envs to validate on at the same time, which share the episodes; if empty, the training env. @default [] */
  readonly envs?: ReadonlyArray<Env | string>
  /**
   * The agents of a game whose returns make the score; if empty, all. The score decides which checkpoints are kept, and
   * compares runs. @default []
   */
  readonly agents?: ReadonlyArray<string>
}

export const ValidationSettings = Schema.Struct({
  everySteps: withDefault(bounded("countOrNone"), 0),
  episodes: withDefault(bounded("episodes"), 20),
  maxSteps: withDefault(bounded("count"), 10_000),
  workers: withDefault(threads, 0),
  sampled: withDefault(Schema.Boolean, false),
  envs: withDefault(Schema.Array(EnvSetting), []),
  agents: withDefault(Schema.Array(Schema.NonEmptyString), []),
})

/** The Schema of a folder inside the run's folder, so that the run can be found, moved and resumed as a whole. */
const folderInRun = Schema.NonEmptyString.check(
  Schema.makeFilter((path) => !path.startsWith("/") && !path.split("/").includes(".."), {
    expected: "a folder inside the run's: a relative path without ..",
  }),
)

export interface CheckpointOptions {
  /** The folder of the checkpoints, inside the run's folder. @default "checkpoints" */
  readonly dir?: string
  /**
   * The number of env steps, over all envs, between two checkpoints; 0 saves only at the end, null saves ten in a run.
   * @default null
   */
  readonly everySteps?: number | null
  /**
   * The number of ended episodes between two further checkpoints, in addition to `everySteps`; 0 saves none. @default 0
   */
  readonly everyEpisodes?: number
  /** Saves a checkpoint before the first step. @default false */
  readonly onStart?: boolean
  /**
   * The checkpoints to keep: the last `keep` ones (`LastN`), or the `keep` ones with the best validation scores
   * (`TopKValidation`, which also saves a checkpoint at every validation). @default {"_tag":"LastN","keep":3}
   */
  readonly strategy?: RetentionStrategy
}

export const CheckpointSettings = Schema.Struct({
  dir: withDefault(folderInRun, Layout.checkpoints),
  everySteps: withDefault(Schema.NullOr(bounded("countOrNone")), null),
  everyEpisodes: withDefault(bounded("countOrNone"), 0),
  onStart: withDefault(Schema.Boolean, false),
  strategy: withDefault(RetentionStrategy, { _tag: "LastN" as const, keep: 3 }),
})

export interface RenderOptions {
  /**
   * The number of env steps, over all envs, between two renderings, a multiple of `validation.everySteps`; with 0, only
   * `everyEpisodes` renders. @default 0
   */
  readonly everySteps?: number
  /** The number of ended episodes of the training between two further renderings; 0 adds none. @default 0 */
  readonly everyEpisodes?: number
  /** The number of episodes that are saved at each rendering; the picture shows the first. @default 1 */
  readonly episodes?: number
  /** The speed of the moving picture, in env steps per second. @default 30 */
  readonly speed?: number
  /**
   * The format of a video of the episodes, beside the moving picture: "gif", or "mp4", which needs the program ffmpeg; null
   * makes none. @default null
   */
  readonly video?: "gif" | "mp4" | null
  /**
   * Whether a video has one picture with a tile for each episode, which are played at the same time; otherwise each episode
   * has a video of its own. @default true
   */
  readonly tiled?: boolean
  /** The largest number of pictures in a video. It shows every n-th step of a longer episode, and the last. @default 1000 */
  readonly maxFrames?: number
  /** The longer side of a video in pixels, at most. @default 480 */
  readonly size?: number
}

export const RenderSettings = Schema.Struct({
  everySteps: withDefault(bounded("countOrNone"), 0),
  everyEpisodes: withDefault(bounded("countOrNone"), 0),
  episodes: withDefault(bounded("episodes"), 1),
  speed: withDefault(bounded("rounds"), 30),
  video: withDefault(Schema.NullOr(Schema.Literals(["gif", "mp4"])), null),
  tiled: withDefault(Schema.Boolean, true),
  maxFrames: withDefault(bounded("pictures"), 1000),
  size: withDefault(bounded("pixels"), 480),
})

export interface NormalizeOptions {
  /** Normalises observations to mean 0 and standard deviation 1, by the observations so far. @default false */
  readonly observations?: boolean
  /** Divides rewards by the standard deviation of the discounted returns so far. @default false */
  readonly rewards?: boolean
}

export const NormalizeSettings = Schema.Struct({
  observations: withDefault(Schema.Boolean, false),
  rewards: withDefault(Schema.Boolean, false),
})

/** A limit at which a training gives up. */
export const ReturnLimit = Schema.Struct({
  /** The first validation at this env step or later is compared with the limit. */
  step: bounded("count"),
  /** The training continues if that validation has at least this mean return. */
  return: real,
})
export type ReturnLimit = typeof ReturnLimit.Type

export interface StartOptions {
  /**
   * The source of the weights: the folder of a run, whose newest checkpoint is taken, or the folder of a checkpoint.
   * `effect run` also takes `latest`, or a part of a run's path.
   */
  readonly from: string
  /** The weights to take: all, or those of some parts of the network, such as `["actor"]`. @default "all" */
  readonly weights?: "all" | ReadonlyArray<string>
}

export const StartSettings = Schema.Struct({
  from: Schema.NonEmptyString,
  weights: withDefault(
    Schema.Union([Schema.Literal("all"), Schema.Array(Schema.NonEmptyString).check(Schema.isMinLength(1))]).annotate({
      expected: '"all", or a list of parts of the network, such as ["actor"]',
    }),
    "all",
  ),
})
export type StartSettings = typeof StartSettings.Type

/** The settings of a training. Env and algorithm stay as written here; `plan.ts` decodes them by their own Schemas. */
export const Settings = Schema.Struct({
  /** The kind of run: a training by reinforcement learning. */
  kind: kindField("training"),
  /** The id of an env, or its name with options. */
  env: EnvSetting,
  numEnvs: withDefault(bounded("envs"), 8),
  workers: withDefault(threads, 0),
  ranks: withDefault(bounded("ranks"), 1),
  machineCode: Schema.optionalKey(Schema.Boolean),
  /** The number of env steps of the training, over all envs. */
  totalSteps: bounded("count"),
  seed: withDefault(bounded("seed"), 1),
  name: withDefault(runName, "run"),
  description: withDefault(Schema.NullOr(Schema.String), null),
  /** The name of the algorithm, with its own settings. */
  algorithm: Schema.Record(Schema.String, Schema.Unknown),
  validation: withDefault(ValidationSettings, {}),
  checkpoint: withDefault(CheckpointSettings, {}),
  render: withDefault(RenderSettings, {}),
  normalize: withDefault(NormalizeSettings, {}),
  start: withDefault(Schema.NullOr(StartSettings), null),
  logScalars: withDefault(Schema.Boolean, true),
  logLoss: withDefault(Schema.Boolean, false),
  logDir: withDefault(folderInRun, "."),
  logLevel: withDefault(LogLevel, "INFO"),
  recordEvery: withDefault(bounded("count"), 256),
  stopAtReturn: withDefault(Schema.NullOr(real), null),
  stopBelow: withDefault(Schema.Array(ReturnLimit), []),
  /** The names of the callbacks, which only code can make. A resumed run may leave some out. */
  callbacks: withDefault(Schema.Array(Schema.String), []),
})
export type Settings = typeof Settings.Type

/** An env or an algorithm as a config has it: its name with its settings, such as `{ name: "ppo", gamma: 0.98 }`. */
export type NamedConfig = Plain & { readonly name: string }

/** The input of `Train.run`: the settings, with envs and an algorithm as values or by name. */
export interface TrainInput {
  /** The env to learn in, or the id of a built-in env, or a name with options as in a config. */
  readonly env: Env | string | NamedConfig
  /** The algorithm that learns, or its name, alone or with settings as in a config. */
  readonly algorithm: Algorithm | string | NamedConfig
  /** The number of env steps of the training, over all envs. The `trainer` block can set it instead. */
  readonly totalSteps?: number
  /** When and how the policy is validated. */
  readonly validation?: ValidationOptions
  /** Settings in one flat block, by the names of other libraries: see `TrainerConfig`. */
  readonly trainer?: TrainerOptions
  /** The number of envs that are stepped together. @default 8 */
  readonly numEnvs?: number
  /** The number of threads that step heavy envs; 0 is the run's own thread. Results don't depend on it. @default 0 */
  readonly workers?: number
  /**
   * The number of processes that compute gradients, including the run's own; at most the algorithm's setting `slices`.
   * Results don't depend on it. @default 1
   */
  readonly ranks?: number
  /**
   * Whether machine code of this machine's C compiler may replace the programs of the backends `auto` and `native` while the
   * training goes on; true if left out. Results do not depend on it.
   */
  readonly machineCode?: boolean
  /** The seed of all randomness. @default 1 */
  readonly seed?: number
  /** The name of the run, which is a part of its folder's name. @default "run" */
  readonly name?: string
  /** A line that describes the run, for people; null for none. @default null */
  readonly description?: string | null
  /** When checkpoints are saved, and which ones are kept. */
  readonly checkpoint?: CheckpointOptions
  /** When episodes are saved and rendered, to look at them. */
  readonly render?: RenderOptions
  /** Normalises observations or rewards by running statistics. */
  readonly normalize?: NormalizeOptions
  /**
   * The weights of another run to begin with, for fine-tuning; null begins with random ones. A resumed run continues from its
   * own checkpoint. @default null
   */
  readonly start?: StartOptions | null
  /** Whether scalars are written for TensorBoard. @default true */
  readonly logScalars?: boolean
  /**
   * Whether the total loss of each update is recorded with its parts, as `train/loss`, by algorithms whose updates minimise one
   * loss of a rollout. @default false
   */
  readonly logLoss?: boolean
  /**
   * The folder of `run.log` and of TensorBoard's files, inside the run's folder; `.` is the run's folder itself. @default "."
   */
  readonly logDir?: string
  /**
   * The level of messages in `run.log` and on the terminal. `ERROR` shows failures and the start of the run, `WARN` adds
   * warnings, `INFO` adds validations, checkpoints, notes and the end, `DEBUG` adds episodes and updates. @default "INFO"
   */
  readonly logLevel?: LogLevel
  /**
   * The number of env steps, over all envs, between two records of the training's progress. An iteration with more
   * steps than that gets a record of its own. @default 256
   */
  readonly recordEvery?: number
  /** The mean return of a validation at which the training ends early; null never ends it early. @default null */
  readonly stopAtReturn?: number | null
  /**
   * Limits at which the training gives up: it ends if the first validation at `step` or later has a mean return below
   * `return`. `effect tune` sets them to stop trials that are worse than others. @default []
   */
  readonly stopBelow?: ReadonlyArray<ReturnLimit>
  /**
   * The Effects that run after rollouts, updates, validations and checkpoints, made by `Callback.make`. A config has
   * only their names. @default []
   */
  readonly callbacks?: ReadonlyArray<Callback>
}
