/**
 * Declares and reads the config of one run of a multi-run trainer: `configs/orch.toml` or `configs/orch.yaml` in the
 * run's folder. Keys are written in snake_case. An unknown key is an error, and every error names file, line and key.
 *
 * @example
 * ```ts
 * const config = yield* parse("max_steps = 100\n[lora]\nrank = 8", "run_a/configs/orch.toml")
 * config.lora.rank // 8
 * config.optimiser.type // "adamw", the default
 * ```
 */
import { Effect, Schema } from "effect"
import { ConfigError, decode, isPlain, overLines, type Plain, toCamelCase } from "../config/Config.ts"
import { fraction, intBetween, naturalInt, nonNegative, positive, positiveInt, withDefault } from "../config/fields.ts"
import { readTomlText } from "../config/toml.ts"
import { keyPlaces, readYamlText } from "../config/yaml.ts"
import { ScheduleConfig, scheduleProblem } from "../graph/schedules.ts"
import { TokenObjective } from "../losses/Losses.ts"
import { OptimiserConfig } from "./optimisers/OptimiserConfig.ts"

/** Settings that the owner of a section decodes later: the model, the env and the data set. */
const Section = Schema.declare((value: unknown): value is Plain => isPlain(value), { expected: "a section" })
/** A part that is named (`reverse-text`) or described by a section of settings. */
const Reference = Schema.NullOr(Schema.Union([Schema.NonEmptyString, Section]))

/** The adapter of a run. */
export const LoraConfig = Schema.Struct({
  /** The rank, at most the trainer's; null takes the trainer's. */
  rank: withDefault(Schema.NullOr(intBetween(1, 4096)), null),
  /** The adapter's output is scaled by alpha / rank; null takes the trainer's alpha. */
  alpha: withDefault(Schema.NullOr(positive), null),
})
export type LoraConfig = typeof LoraConfig.Type

/** How the engine draws tokens. */
export const SamplingConfig = Schema.Struct({
  temperature: withDefault(nonNegative, 1),
  topP: withDefault(fraction, 1),
  /** The number of most likely tokens to draw from; null draws from all. */
  topK: withDefault(Schema.NullOr(positiveInt), null),
  minP: withDefault(fraction, 0),
  maxTokens: withDefault(positiveInt, 128),
  stop: withDefault(Schema.Array(Schema.NonEmptyString), []),
  stopTokenIds: withDefault(Schema.Array(naturalInt), []),
})
export type SamplingConfig = typeof SamplingConfig.Type

/** How many samples a step has. */
export const BatchConfig = Schema.Struct({
  /** The number of samples that one step trains on. */
  size: withDefault(positiveInt, 64),
  /** The number of samples of one prompt, which are compared with each other; it divides `size`. */
  groupSize: withDefault(positiveInt, 8),
}).check(
  Schema.makeFilter(({ size, groupSize }) =>
    size % groupSize === 0
      ? undefined
      : { path: ["groupSize"], issue: `a divisor of the batch's size, which is ${size}` },
  ),
)
export type BatchConfig = typeof BatchConfig.Type

/** When the run's adapter and optimiser are saved. */
export const CheckpointConfig = Schema.Struct({
  /** The number of steps between two checkpoints; 0 saves only at the end. */
  every: withDefault(naturalInt, 0),
  /** The number of checkpoints to keep; null keeps all. */
  keep: withDefault(Schema.NullOr(positiveInt), null),
})
export type CheckpointConfig = typeof CheckpointConfig.Type

/** The config of one run. All keys have defaults, so an empty file is valid. */
export const OrchestratorConfig = Schema.Struct({
  seed: withDefault(naturalInt, 0),
  /** The base model; null takes the trainer's. A run for another model than the trainer's is refused. */
  model: withDefault(Reference, null),
  /** The env that the run's agent acts in. */
  env: withDefault(Reference, null),
  /** The data set that the run's tasks are drawn from. */
  dataset: withDefault(Reference, null),
  optimiser: withDefault(OptimiserConfig, {}),
  schedule: withDefault(ScheduleConfig, {}),
  lora: withDefault(LoraConfig, {}),
  batch: withDefault(BatchConfig, {}),
  sampling: withDefault(SamplingConfig, {}),
  /** The loss with its settings. */
  objective: withDefault(TokenObjective, { type: "grpo" }),
  /** The number of steps after which the run ends; null trains until the run's folder is removed. */
  maxSteps: withDefault(Schema.NullOr(positiveInt), null),
  /** The largest number of steps by which the weights that sampled may be older than those that are trained. */
  maxAsyncLevel: withDefault(naturalInt, 2),
  checkpoint: withDefault(CheckpointConfig, {}),
  /** The step of the checkpoint to resume from: −1 is the newest complete one, or 0 if there is none. */
  resumeStep: withDefault(Schema.Int.check(Schema.isGreaterThanOrEqualTo(-1)), -1),
}).check(
  Schema.makeFilter(({ optimiser, schedule, maxSteps }) => {
    const problem = scheduleProblem(schedule, { learningRate: optimiser.lr, maxSteps })
    return problem === undefined ? undefined : { path: ["schedule", problem.key], issue: problem.expected }
  }),
)
export type OrchestratorConfig = typeof OrchestratorConfig.Type

/** Parses and checks the text of a config. `file` names it in errors; a name that ends in `.toml` is read as TOML. */
export const parse = Effect.fnUntraced(function* (text: string, file: string) {
  const document = yield* file.endsWith(".toml") ? readTomlText(text, file) : readYamlText(text, file)
  const value = document.value ?? {}
  if (!isPlain(value))
    return yield* ConfigError.at({ source: file }, "", "expected keys and values, found a list or text")
  const sources = overLines(keyPlaces(document, file), new Map())
  return yield* decode(OrchestratorConfig, toCamelCase(value), { source: file, sources, whole: OrchestratorConfig })
})
