/**
 * Declares and reads the config of one run of a multi-run trainer: `configs/orch.toml` or `configs/orch.yaml` in the
 * run's folder. Keys are written in snake_case. An unknown key is an error, and every error names file, line and key.
 * `configs/orch.toml` may also be a file of prime-rl's; see `primeRl.ts`.
 *
 * @example
 * ```ts
 * const config = yield* parse("max_steps = 100\n[lora]\nrank = 8", "run_a/configs/orch.toml")
 * config.lora.rank // 8
 * config.optimiser.type // "adamw", the default
 * ```
 */
import { Effect, Schema } from "effect"
import {
  ConfigError,
  decode,
  isPlain,
  overLines,
  type Plain,
  snakeCase,
  toCamelCase,
} from "../../base/config/Config.ts"
import { bounds } from "../../base/config/bounds.ts"
import { bounded, fraction, nonNegative, positive, withDefault } from "../../base/config/fields.ts"
import { readTomlText } from "../../base/formats/toml.ts"
import { keyPlaces, readYamlText } from "../../base/config/yaml.ts"
import { byStep, ScheduleConfig, scheduleProblem } from "../../tensor/graph/schedules.ts"
import { SftObjective, TokenObjective } from "../../rl/losses/Losses.ts"
import { OptimiserConfig } from "../optimisers/OptimiserConfig.ts"
import { CriticConfig, criticProblem } from "../critic/CriticConfig.ts"
import { PairsConfig } from "../preferences/pairs.ts"
import { TeacherConfig } from "../teacher/TeacherConfig.ts"
import { teacherProblem, unusedProblem } from "./learningProblems.ts"
import { isPrimeRl, translated } from "./primeRl.ts"

/** A section of the config that is decoded later by the part which it describes: the agent, the data sets. */
const Section = Schema.declare((value: unknown): value is Plain => isPlain(value), { expected: "a section" })

/** The adapter of a run. */
export const LoraConfig = Schema.Struct({
  /** The rank, at most the trainer's; null takes the trainer's. */
  rank: withDefault(Schema.NullOr(bounded("adapterRank")), null),
  /** The alpha of the adapter, whose output is scaled by alpha / rank; null takes the trainer's alpha. */
  alpha: withDefault(Schema.NullOr(positive), null),
})
export type LoraConfig = typeof LoraConfig.Type

/** The default for the most tokens of an answer. */
export const defaultMaxTokens = 128

/** Settings of how the engine draws tokens. */
export const SamplingConfig = Schema.Struct({
  /** The temperature; 0 always draws the likeliest token. */
  temperature: withDefault(nonNegative, 1),
  /** Draws from the likeliest tokens whose probabilities add up to this share. */
  topP: withDefault(fraction, 1),
  /** The number of most likely tokens to draw from; null draws from all. */
  topK: withDefault(Schema.NullOr(bounded("count")), null),
  /** The smallest probability of a token that can be drawn, as a share of the likeliest token's probability. */
  minP: withDefault(fraction, 0),
  /** The largest number of tokens of an answer; longer ones are cut off. */
  maxTokens: withDefault(bounded("count"), defaultMaxTokens),
  /** The texts that end an answer. */
  stop: withDefault(Schema.Array(Schema.NonEmptyString), []),
  /** The tokens that end an answer, besides the model's own. */
  stopTokenIds: withDefault(Schema.Array(bounded("index")), []),
})
export type SamplingConfig = typeof SamplingConfig.Type

/** The filters of single samples. */
const sampleFilters = ["complete", "not_truncated", "parsed", "env_turns"] as const

/** The samples of a step. */
export const BatchConfig = Schema.Struct({
  /**
   * The number of samples that one step trains on; with `protocol: self_play`, the number of games; with the objective `dpo`,
   * the number of pairs.
   */
  size: withDefault(bounded("samples"), 64),
  /** The number of samples of one prompt, which are compared with each other; it divides `size`. */
  groupSize: withDefault(bounded("samples"), 8),
  /**
   * Chooses how groups are handled whose rewards are all equal, and whose advantages are therefore 0: `keep` trains on them,
   * `drop` leaves them out.
   */
  evenGroups: withDefault(Schema.Literals(["keep", "drop"]), "keep"),
  /** Whether negative advantages become 0, so that samples worse than the others of their group are not punished. */
  positiveOnly: withDefault(Schema.Boolean, false),
  /**
   * The largest number of groups that a step plays in addition, in the place of groups whose rewards are all equal or whose
   * episodes all failed (dynamic sampling): with other tasks, or with other seeds after all tasks of the data set. The groups
   * that they replace are not trained on. 0 plays none.
   */
  replacedGroups: withDefault(bounded("groupsOrNone"), 0),
  /**
   * The filters that a sample has to pass to be trained on; each sample is one turn of an episode. The episode still counts
   * where rewards are compared. `complete` leaves out turns with an answer that was cut off at `sampling.max_tokens`,
   * `not_truncated` those at which a limit cut off the episode, `parsed` those whose answer gave no action, and `env_turns`
   * those without a step of the env. Supervised steps train on all samples.
   */
  filters: withDefault(Schema.Array(Schema.Literals(sampleFilters)), []),
}).check(
  Schema.makeFilter(({ size, groupSize, replacedGroups }) => {
    if (size % groupSize !== 0)
      return { path: ["groupSize"], issue: `Expected a divisor of the batch's size, which is ${size}` }
    if (groupSize === 1 && replacedGroups > 0)
      return { path: ["replacedGroups"], issue: "Expected 0, as all groups of one sample have equal rewards" }
    const most = Math.floor((bounds.samples.most - size) / groupSize)
    return replacedGroups > most
      ? {
          path: ["replacedGroups"],
          issue: `Expected at most ${most} groups of ${groupSize}, as a step keeps all samples`,
        }
      : undefined
  }),
)
export type BatchConfig = typeof BatchConfig.Type

/** When the run's adapter and optimiser are saved. */
export const CheckpointConfig = Schema.Struct({
  /**
   * The number of steps between two checkpoints; 0 saves only at the end. A trainer that is interrupted, fails or loses a rank
   * saves one more.
   */
  every: withDefault(bounded("countOrNone"), 0),
  /** The number of checkpoints to keep, which are the newest ones; null keeps all. */
  keep: withDefault(Schema.NullOr(bounded("kept")), null),
})
export type CheckpointConfig = typeof CheckpointConfig.Type

/** The weights that the run keeps for other programs, in `weights/step_N`. */
export const WeightsConfig = Schema.Struct({
  /** The number of steps between two saved weights; the last step is always saved. 0 saves none. */
  every: withDefault(bounded("countOrNone"), 0),
  /** The number of steps whose weights are kept; null keeps all. */
  keep: withDefault(Schema.NullOr(bounded("kept")), null),
})
export type WeightsConfig = typeof WeightsConfig.Type

/** How long the samples of trained steps are kept in `rollouts/step_N`. */
export const RolloutsConfig = Schema.Struct({
  /**
   * The number of steps before the newest checkpoint whose samples are kept; null keeps all. Samples of later steps are
   * always kept. A run that resumes from an older checkpoint makes missing samples again.
   */
  keep: withDefault(Schema.NullOr(bounded("keptOrNone")), 100),
})
export type RolloutsConfig = typeof RolloutsConfig.Type

/**
 * The supervised steps, with which a run begins and in which it imitates the right answers of its tasks. They count as steps
 * of the run.
 */
export const SupervisedConfig = Schema.Struct({
  /** The number of supervised steps; 0 for none. Each of them trains on `batch.size` answers. */
  steps: withDefault(bounded("countOrNone"), 0),
  /** The learning rate of the supervised steps; null takes the optimiser's. */
  lr: withDefault(Schema.NullOr(positive), null),
  /** How the learning rate changes during the supervised steps. */
  schedule: withDefault(ScheduleConfig, {}),
})
export type SupervisedConfig = typeof SupervisedConfig.Type

/**
 * The validations of the run: its agent plays all tasks of `validation_dataset` once, greedily (with the likeliest tokens).
 */
export const ValidationConfig = Schema.Struct({
  /** The number of steps between two validations; 0 never validates. The first is before step 0, the last at the end. */
  every: withDefault(bounded("countOrNone"), 50),
})
export type ValidationConfig = typeof ValidationConfig.Type

/** Which training episodes are recorded in the run's scores, with their advantages. Validations are always recorded. */
export const TranscriptsConfig = Schema.Struct({
  /** The number of steps from one step whose episodes are recorded to the next; 0 records none. */
  every: withDefault(bounded("countOrNone"), 10),
  /** The number of groups that are recorded in such a step. */
  groups: withDefault(bounded("count"), 2),
})
export type TranscriptsConfig = typeof TranscriptsConfig.Type

/** A number of failures, or a share below 1. */
const Failures = nonNegative.check(
  Schema.makeFilter((value) =>
    value < 1 || Number.isInteger(value) ? undefined : "Expected a whole number, or a share below 1",
  ),
)

/** The config of one run. All keys have defaults, so an empty file is valid. */
export const OrchestratorConfig = Schema.Struct({
  /**
   * The seed of the tasks' order, the envs and the sampling. A run in a trainer's config gets the trainer's seed by default.
   */
  seed: withDefault(bounded("seed"), 0),
  /** The agent that plays the tasks, as in a training of agents; its model is the trained one. */
  agent: withDefault(Section, { type: "memoryless_agent" }),
  /**
   * How the tasks are played. In `single_agent`, one agent plays each task. In `self_play`, the agent plays against itself,
   * in games of several players such as `tic_tac_toe`; the answers of a player are compared with the same player's answers in
   * other games of the same task. Validations always play the tasks as they are, against the opponent of the data set.
   */
  protocol: withDefault(Schema.Literals(["single_agent", "self_play"]), "single_agent"),
  /**
   * The data set from which the run's tasks are drawn. It is required, unless another program makes the samples, or the run only
   * learns from pairs.
   */
  trainDataset: withDefault(Schema.NullOr(Section), null),
  /** The pairs of answers that the objective `dpo` learns from; null for all other objectives. */
  pairs: withDefault(Schema.NullOr(PairsConfig), null),
  /** The data set that the run is validated with; null never validates. */
  validationDataset: withDefault(Schema.NullOr(Section), null),
  /** When the run is validated. */
  validation: withDefault(ValidationConfig, {}),
  /** The supervised steps, which imitate right answers. */
  supervised: withDefault(SupervisedConfig, {}),
  /** How the weights are updated. */
  optimiser: withDefault(OptimiserConfig, {}),
  /** How the learning rate changes, after the supervised steps. */
  schedule: withDefault(ScheduleConfig, {}),
  /** The run's adapter, if the trainer has adapters. */
  lora: withDefault(LoraConfig, {}),
  /** How many samples a step has. */
  batch: withDefault(BatchConfig, {}),
  /** How tokens are drawn. */
  sampling: withDefault(SamplingConfig, {}),
  /** The loss with its settings. */
  objective: withDefault(TokenObjective, { type: "grpo" }),
  /** The teacher whose probabilities are the advantages, for on-policy distillation; null takes only the rewards. */
  teacher: withDefault(Schema.NullOr(TeacherConfig), null),
  /**
   * The critic, for PPO on tokens: it learns the value of each token's context, a linear function of the model's last hidden
   * state, and gives each token an advantage of its own (GAE), instead of comparing the rewards of a group; null has none.
   */
  critic: withDefault(Schema.NullOr(CriticConfig), null),
  /** The number of steps after which the run ends; null trains until the run's folder is removed. */
  maxSteps: withDefault(Schema.NullOr(bounded("count")), null),
  /**
   * The largest difference in steps between the weights that are trained on samples and the older weights that generated
   * them.
   */
  maxAsyncLevel: withDefault(bounded("countOrNone"), 2),
  /**
   * The largest number of failed episodes in a step or a validation; a number below 1 is a share of the episodes. A failed
   * episode only loses its sample or its score. If more fail, the run is evicted. If all episodes of a step fail, other tasks
   * are played instead, up to three times, and count as episodes of the step.
   */
  maxFailures: withDefault(Failures, 0.75),
  /** Which episodes of the training are recorded. */
  transcripts: withDefault(TranscriptsConfig, {}),
  /** When the run is saved. */
  checkpoint: withDefault(CheckpointConfig, {}),
  /** How long samples are kept. */
  rollouts: withDefault(RolloutsConfig, {}),
  /** Which weights are kept for other programs: the adapter as peft writes it, or the whole model. */
  weights: withDefault(WeightsConfig, {}),
  /**
   * The step of an earlier checkpoint to go back to, once. 0 begins again. Later checkpoints are removed when the run saves
   * its next one. −1 resumes from the newest complete checkpoint, which is also what a run does that has already gone back.
   */
  resumeStep: withDefault(bounded("earlierStep"), -1),
}).check(
  Schema.makeFilter((config) => {
    const { optimiser, schedule, maxSteps, supervised, objective, pairs } = config
    if (objective.type === "dpo" && pairs === null)
      return {
        path: ["pairs"],
        issue: "Expected the pairs that dpo learns from, such as { dataset_path: pairs.jsonl }",
      }
    if (objective.type !== "dpo" && pairs !== null)
      return { path: ["pairs"], issue: `Expected no pairs, because only dpo learns from them, not ${objective.type}` }
    const misfit = teacherProblem(config) ?? criticProblem(config) ?? unusedProblem(config)
    if (misfit !== undefined) return misfit
    if (maxSteps !== null && supervised.steps > maxSteps)
      return { path: ["supervised", "steps"], issue: `Expected at most max_steps, which is ${maxSteps}` }
    const onlySupervised = maxSteps !== null && supervised.steps === maxSteps
    const problem = onlySupervised
      ? undefined
      : scheduleProblem(schedule, { learningRate: optimiser.lr, maxSteps: reinforcedSteps(config) })
    if (problem !== undefined) return { path: ["schedule", problem.key], issue: `Expected ${problem.expected}` }
    const first = scheduleProblem(supervised.schedule, firstSteps(config))
    return first === undefined
      ? undefined
      : { path: ["supervised", "schedule", first.key], issue: `Expected ${first.expected}` }
  }),
)
export type OrchestratorConfig = typeof OrchestratorConfig.Type

/** Returns the number of episodes that a run plays or imitates in all steps before `step`. */
export const episodesBefore = ({ batch }: Pick<OrchestratorConfig, "batch">, step: number): number => step * batch.size

type Staged = Pick<OrchestratorConfig, "optimiser" | "schedule" | "maxSteps" | "supervised">

/**
 * Returns the number of steps after the supervised ones, at least 1 because a schedule needs a step; null if the run has no
 * end.
 */
const reinforcedSteps = ({ maxSteps, supervised }: Pick<Staged, "maxSteps" | "supervised">): number | null =>
  maxSteps === null ? null : Math.max(1, maxSteps - supervised.steps)

const firstSteps = ({ supervised, optimiser }: Pick<Staged, "supervised" | "optimiser">) => ({
  learningRate: supervised.lr ?? optimiser.lr,
  maxSteps: Math.max(1, supervised.steps),
})

/**
 * Returns the learning rate of each step of a run: the supervised schedule first, then the main schedule, which begins after
 * the supervised steps. Throws a `GraphError` if a schedule does not fit.
 */
export const learningRateOf = (config: Staged): ((step: number) => number) => {
  const { optimiser, schedule, supervised } = config
  const first = byStep(supervised.schedule, firstSteps(config))
  const then = byStep(schedule, { learningRate: optimiser.lr, maxSteps: reinforcedSteps(config) })
  return (step) => (step < supervised.steps ? first(step) : then(step - supervised.steps))
}

/** Tells whether a run plays no tasks in its steps, because it only learns from pairs. */
export const isOnlyPairs = ({ supervised, objective }: Pick<OrchestratorConfig, "supervised" | "objective">): boolean =>
  objective.type === "dpo" && supervised.steps === 0

const imitation = Schema.decodeSync(SftObjective)({ type: "sft" })

/** Returns the objective of a step: imitation in supervised steps, afterwards the config's own. */
export const objectiveAt = (
  { supervised, objective }: Pick<OrchestratorConfig, "supervised" | "objective">,
  step: number,
): TokenObjective => (step < supervised.steps ? imitation : objective)

/** The keys of a run's config, in snake_case. */
export const runKeys: ReadonlyArray<string> = Object.keys(OrchestratorConfig.fields).map(snakeCase)

/**
 * Parses and checks the text of a config, which may also be prime-rl's `orch.toml`. `file` names it in errors; a name that
 * ends in `.toml` is read as TOML. Also returns a note for each key of prime-rl's that is left out.
 */
export const parseNoted = Effect.fnUntraced(function* (text: string, file: string) {
  const isToml = file.endsWith(".toml")
  const document = yield* isToml ? readTomlText(text, file) : readYamlText(text, file)
  const value = document.value ?? {}
  if (!isPlain(value))
    return yield* ConfigError.at({ source: file }, "", "expected keys and values, found a list or text")
  if (isToml && isPrimeRl(value)) {
    const { run, routerReplay, places, notes } = yield* translated(document, file, runKeys)
    const ofTrainer = `${file}: trainer.enable_router_replay: left out: the config of the trainer decides that`
    return { config: yield* decoded(run, file, places), notes: routerReplay === true ? [...notes, ofTrainer] : notes }
  }
  return { config: yield* decoded(value, file, keyPlaces(document, file)), notes: [] }
})

const decoded = (value: Plain, file: string, places: ReadonlyMap<string, string>) =>
  decode(OrchestratorConfig, toCamelCase(value), {
    source: file,
    sources: overLines(places, new Map()),
    whole: OrchestratorConfig,
  })

/** Parses and checks the text of a config, as `parseNoted` does. */
export const parse = (text: string, file: string): Effect.Effect<OrchestratorConfig, ConfigError> =>
  Effect.map(parseNoted(text, file), ({ config }) => config)
