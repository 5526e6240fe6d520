/**
 * Defines the settings of a run that learns prompts. `Prompts.ts` decodes them from a config; the sections of the agent and
 * the data sets are decoded there, by their types.
 */
import { Schema } from "effect"
import { atOnce, bounded, fraction, real, runName, withDefault } from "../../base/config/fields.ts"
import { LmConfig } from "../lm/LmConfig.ts"
import { LogLevel } from "../../run/record/logLevel.ts"
import { kindField } from "../../run/RunSpec.ts"

const optional = <S extends Schema.Codec<unknown, unknown>>(schema: S) => withDefault(Schema.NullOr(schema), null)

const limitFields = {
  /** The largest number of tasks that are played, on training and validation tasks together. Test tasks don't count. */
  maxMetricCalls: withDefault(bounded("count"), 300),
  /** The number of tokens of the agent and the reflection model after which no iteration begins; null sets no limit. */
  maxTokens: optional(bounded("count")),
  /** The mean validation score with which the run ends; null always uses all metric calls. */
  stopScore: optional(real),
}

/** The learner that improves texts by reflection (GEPA). */
export const GepaLearner = Schema.Struct({
  type: Schema.Literal("gepa"),
  /** The model that writes new texts. A strong model with a high temperature is best. */
  reflectionLmConfig: LmConfig,
  /**
   * The prompt for reflections, with `{text}` and `{examples}`, and perhaps `{name}`; `{file:path}` inserts the text of a file.
   * null uses the built-in prompt.
   */
  reflectionPrompt: optional(Schema.String),
  /** The number of training tasks that an iteration plays before and after its change of a text. */
  minibatchSize: withDefault(bounded("tasks"), 3),
  ...limitFields,
  /** Whether two candidates of different lines of descent are merged after an accepted change. */
  merge: withDefault(Schema.Boolean, true),
  /** The largest number of accepted merges. */
  maxMerges: withDefault(bounded("countOrNone"), 5),
  /** The score of a perfectly solved task: a minibatch of such scores is not reflected on. null reflects on all. */
  perfectScore: withDefault(Schema.NullOr(real), 1),
})

/** The learner that collects few-shot examples from the agent's own successes. */
export const BootstrapLearner = Schema.Struct({
  type: Schema.Literal("bootstrap"),
  /** The name of the text that the examples replace; `examples` follows the system prompt. */
  text: withDefault(Schema.NonEmptyString, "examples"),
  /** The number of examples in the text. */
  shots: withDefault(bounded("tasks"), 4),
  /** The number of sets of examples that are tried. */
  sets: withDefault(bounded("tasks"), 8),
  /** The smallest score of an episode that can be an example. */
  goodScore: withDefault(real, 1),
  ...limitFields,
})

const Learner = Schema.Union([GepaLearner, BootstrapLearner])
export type Learner = typeof Learner.Type

export const OutputSettings = Schema.Struct({
  /** The folder in which the run's folder `YYYYMMDD_HHMMSS` is created; null uses the results folder of the command. */
  resultsDir: optional(Schema.NonEmptyString),
  /** The level of messages in `run.log` and the terminal: `ERROR`, `WARN`, `INFO` or `DEBUG`. */
  logLevel: withDefault(LogLevel, "INFO"),
})

export const StartSettings = Schema.Struct({
  /**
   * The run that learned the texts with which the search begins: a folder, `latest` or a part of a run's path, or a
   * `texts.json`. The saved config has the texts themselves, as `agent.texts`.
   */
  texts: optional(Schema.NonEmptyString),
})

/** The settings of a run that learns prompts, apart from its agent and its data sets. */
export const PromptsSettings = Schema.Struct({
  /** The kind of run: learning the prompts of an agent. */
  kind: kindField("prompts"),
  /** The name of the run, which is shown in lists and is a part of its folder's name. */
  name: withDefault(runName, "prompts"),
  /** A description of the run in one line; null makes one from its agent, tasks and seed. */
  description: optional(Schema.String),
  /** The seed of all random numbers: of the search, the envs and the model's sampling. */
  seed: withDefault(bounded("seed"), 0),
  /** The run whose texts the search begins with; null begins with the agent's own. */
  start: optional(StartSettings),
  /** The names of the texts that are learned; null learns all texts of the agent. */
  learn: optional(Schema.Array(Schema.NonEmptyString)),
  /** The share of the tasks in `dataset` that become validation tasks, if there is no `validation_dataset`. */
  validationShare: withDefault(fraction.check(Schema.isGreaterThan(0), Schema.isLessThan(1)), 0.5),
  /** The scorer of each episode, by name or with settings; higher scores must be better. */
  scorer: withDefault(Schema.Unknown, "score"),
  /** The score of an episode that failed, or that the scorer could not score. */
  failureScore: withDefault(real, 0),
  /** The learner: `gepa` reflects on episodes and rewrites texts, `bootstrap` collects few-shot examples. */
  learner: Learner,
  /** The number of episodes that are played at the same time; null is the number of CPU cores. */
  workers: optional(atOnce),
  /** The number of steps after which an episode is cut off; null leaves the limit to the envs. */
  maxStepsPerEpisode: optional(bounded("count")),
  /** The confidence level of all intervals. */
  confidence: withDefault(fraction.check(Schema.isGreaterThan(0), Schema.isLessThan(1)), 0.95),
  /** Whether progress is shown in the terminal. */
  verbose: withDefault(Schema.Boolean, true),
  /** The folder for the files that the run writes, and the level of its messages. */
  output: withDefault(OutputSettings, {}),
})
export type PromptsSettings = typeof PromptsSettings.Type

/** The Schema of a config. The sections of the agent and the data sets are decoded later, by their types. */
export const Whole = Schema.Struct({
  ...PromptsSettings.fields,
  /** The agent whose texts are learned. */
  agent: Schema.optionalKey(Schema.Unknown),
  /** The training tasks, from whose feedback the texts are learned. */
  dataset: Schema.optionalKey(Schema.Unknown),
  /** The tasks on which candidates are compared; by default a share of `dataset`. */
  validationDataset: Schema.optionalKey(Schema.Unknown),
  /** Tasks that are only played at the end, with the seed's texts and with the best ones. */
  testDataset: Schema.optionalKey(Schema.Unknown),
})
