/**
 * Learns the prompts of an agent. `fromConfig` runs the search that a config describes: it opens the agent, the data sets and
 * the models; `execute.ts` then searches and writes the run's folder. Its `texts.json` has the best texts, which the setting
 * `texts` of an agent loads. The command `effect run` calls it.
 *
 * @example
 * ```ts
 * const { best, validationScores } = yield* Prompts.fromConfig({
 *   agent: { type: "memoryless_agent", system_prompt: "Answer.", lm_config: { model: "gpt-4.1-mini" } },
 *   dataset: { type: "codebook", num_tasks: 60 },
 *   learner: { type: "gepa", reflection_lm_config: { model: "gpt-4.1", temperature: 1 } },
 * })
 * console.log(best, validationScores.difference)
 * ```
 */
import { Effect, type Path, Schema, type Scope } from "effect"
import type { AgentError } from "../agent/AgentError.ts"
import * as Agents from "../agent/Agents.ts"
import { inject } from "../agent/internal/prompts.ts"
import { ConfigError, type DecodeOptions, isPlain, type Plain } from "../../base/config/Config.ts"
import { withPlaces } from "../../base/config/places.ts"
import { sha256 } from "../../base/text/sha256.ts"
import { utf8 } from "../../base/text/utf8.ts"
import type { FormatError } from "../../base/formats/FormatError.ts"
import { agentIdentity, openParts, scorerIdentity } from "../evaluate/openParts.ts"
import { type ConfigPlace, readSections } from "../evaluate/readSections.ts"
import * as Scorers from "../evaluate/Scorers.ts"
import { priceOf } from "../lm/middleware/budgeted.ts"
import { Lm } from "../lm/Lm.ts"
import type { LmError } from "../lm/LmError.ts"
import type * as Lms from "../lm/Lms.ts"
import * as Datasets from "../task/Datasets.ts"
import { type DatasetError, ordered, type TaskSet } from "../task/TaskSet.ts"
import type { Recorder } from "../../run/record/Recorder.ts"
import { RunOptions } from "../../run/RunOptions.ts"
import type { OwnPlace, RunStore } from "../../run/store/RunStore.ts"
import { logsDir } from "../training/logsDir.ts"
import { execute, type ExecuteError, type PreparedPrompts } from "./execute.ts"
import { costOf } from "./gepa.ts"
import type { Reflector } from "./play.ts"
import { type Learner, type PromptsSettings, PromptsSettings as Settings, Whole } from "./PromptsConfig.ts"
import type { PromptsResult } from "./PromptsResult.ts"
import { defaultPrompt, placeholders } from "./reflection.ts"

export { PromptsSettings } from "./PromptsConfig.ts"
export { CandidatesFile, PromptsResult } from "./PromptsResult.ts"

export type PromptsError = ExecuteError | ConfigError | AgentError | DatasetError | LmError | FormatError

export type PromptsNeeds = RunStore | Recorder | Lms.LmNeeds

/**
 * Runs the search that a config describes, and returns its result. If the service `RunStore` resumes a stopped run, only the
 * missing episodes are played.
 */
export const fromConfig = (
  config: unknown,
  place: ConfigPlace = {},
): Effect.Effect<PromptsResult, PromptsError, PromptsNeeds> =>
  Effect.scoped(Effect.flatMap(prepare(config, place), execute))

/** The Schema with the settings of all built-in types: error messages use it to find where a misplaced key belongs. */
const whole = Schema.Struct({
  ...Settings.fields,
  agent: Agents.AgentConfig,
  dataset: Datasets.DatasetConfig,
  validationDataset: Datasets.DatasetConfig,
  testDataset: Datasets.DatasetConfig,
})

/** Opens the agent, the data sets and the models of a run. Nothing is played or written yet. */
const prepare = (
  config: unknown,
  place: ConfigPlace,
): Effect.Effect<PreparedPrompts, PromptsError, Lms.LmNeeds | Scope.Scope> =>
  Agents.withOwnKinds(config, (named) => prepareNamed(named, place))

/** Reads the config, and checks its sections. */
const sectionsOf = Effect.fnUntraced(function* (config: unknown, place: ConfigPlace) {
  const options = yield* RunOptions
  const source = options.source === "Train.run" ? "Prompts.fromConfig" : options.source
  const datasets = ["dataset", "validationDataset", "testDataset"]
  const read = yield* readSections(config, { ...place, source, schema: Whole, whole, datasets, required: ["dataset"] })
  const { sections, from, baseDir } = read
  return { ...sections, from, baseDir, source }
})

type Sections = Effect.Success<ReturnType<typeof sectionsOf>>

/** Opens the data sets, and returns their tasks, with their configs for `config.yaml`. */
const openSets = Effect.fnUntraced(function* (sections: Sections, parts: LearnerOpening["parts"]) {
  const {
    agent: _agent,
    dataset,
    validationDataset,
    testDataset,
    from,
    baseDir,
    source: _source,
    ...settings
  } = sections
  const open = (section: unknown, key: string) =>
    section === undefined || section === null ? Effect.succeed(null) : parts.openDataset(section, key)
  const train = yield* parts.openDataset(dataset, "dataset")
  const validation = yield* open(validationDataset, "validationDataset")
  const test = yield* open(testDataset, "testDataset")
  const sets = { ...split(train.tasks, validation?.tasks ?? null, settings), test: test?.tasks ?? null }
  yield* checkSizes(sets, settings, from)
  const placed = (one: { readonly config: Plain } | null) =>
    one === null ? Effect.succeed(null) : withPlaces(one.config, baseDir)
  const configs = {
    dataset: yield* placed(train),
    validationDataset: yield* placed(validation),
    testDataset: yield* placed(test),
  }
  return { settings, sets, configs }
})

/** Opens the scorer. Fails if its higher values are not better. */
const openScorer = Effect.fnUntraced(function* (scorer: unknown, { parts, from, baseDir }: LearnerOpening) {
  const opened = yield* Scorers.open(scorer, {
    baseDir,
    from: { ...from, prefix: ["scorer"] },
    openLm: (judge) => parts.openLm(judge, ["scorer", "lmConfig"]),
  })
  const { name, direction } = opened.scorer
  if (direction === "higher") return opened
  const problem = `expected a scorer whose higher values are better, found "${name}" (${direction})`
  return yield* ConfigError.at(from, "scorer", problem)
})

const prepareNamed = Effect.fnUntraced(function* (
  config: unknown,
  place: ConfigPlace,
): Effect.fn.Return<PreparedPrompts, PromptsError, Lms.LmNeeds | Scope.Scope> {
  const sections = yield* sectionsOf(config, place)
  const { from, baseDir, source } = sections
  const parts = yield* openParts(from, baseDir)
  const { settings, sets, configs } = yield* openSets(sections, parts)
  const decoded = yield* Agents.decode(sections.agent ?? {}, { ...from, prefix: ["agent"], baseDir })
  const { type, lmConfig, texts } = decoded
  const lm = yield* parts.openLm(lmConfig, ["agent", "lmConfig"])
  const { reflector, learner } = yield* openLearner(settings.learner, { parts, from, baseDir })
  const { scorer, config: scorerConfig } = yield* openScorer(settings.scorer, { parts, from, baseDir })
  const make = Effect.provideService(decoded.make, Lm, lm)
  const price = lmConfig === null ? undefined : priceOf(lmConfig.model, lmConfig.prices)
  return {
    settings,
    agent: { type, model: lmConfig?.model ?? null, price, make, texts },
    sets,
    seed: settings.seed,
    scorer,
    failureScore: settings.failureScore,
    workers: settings.workers,
    maxStepsPerEpisode: settings.maxStepsPerEpisode,
    reflector,
    spent: parts.spent,
    effective: {
      ...settings,
      learner,
      scorer: yield* withPlaces(scorerConfig, baseDir),
      agent: yield* withPlaces(decoded.config, baseDir),
      ...configs,
    },
    identity: {
      ...(yield* identityOf(settings, sets, learner)),
      agent: agentIdentity(decoded.config, lmConfig),
      scorer: scorerIdentity(scorerConfig),
    },
    logCalls: lmConfig?.logCalls === true || reflector?.config.logCalls === true,
    source,
    place: yield* placeOf(settings),
  }
})

interface Sets {
  readonly train: TaskSet
  readonly validation: TaskSet
  readonly test: TaskSet | null
}

/** Returns the tasks for training and for validation. Without validation tasks, the last tasks of `dataset` become these. */
const split = (
  tasks: TaskSet,
  validation: TaskSet | null,
  { validationShare }: Pick<PromptsSettings, "validationShare">,
): Omit<Sets, "test"> => {
  if (validation !== null) return { train: tasks, validation }
  const first = Math.max(1, Math.min(tasks.size - 1, Math.round(tasks.size * (1 - validationShare))))
  const order = { shuffle: false, seed: 0, maxSamples: null }
  return {
    train: ordered(tasks, order, (index) => index < first),
    validation: ordered(tasks, order, (index) => index >= first),
  }
}

/** Fails if there are no tasks, or if the budget does not allow a single iteration. */
const checkSizes = Effect.fnUntraced(function* (
  { train, validation, test }: Sets,
  settings: PromptsSettings,
  from: DecodeOptions,
) {
  if (train.size === 0) return yield* ConfigError.at(from, "dataset", "expected at least one task, found none")
  if (validation.size === 0) {
    const problem = "expected at least one validation task, found none; add tasks to dataset, or a validation_dataset"
    return yield* ConfigError.at(from, "validationDataset", problem)
  }
  if (test?.size === 0) return yield* ConfigError.at(from, "testDataset", "expected at least one task, found none")
  const { learner } = settings
  const sizes = { train: train.size, validation: validation.size }
  const iteration = learner.type === "gepa" ? costOf(learner, sizes) : validation.size + 1
  const least = validation.size + iteration
  if (learner.maxMetricCalls >= least) return
  const problem = `expected at least ${least} (the seed's validation, ${validation.size}, and one iteration, ${iteration}), found ${learner.maxMetricCalls}`
  return yield* ConfigError.at(from, "learner.maxMetricCalls", problem)
})

interface LearnerOpening {
  readonly parts: Effect.Success<ReturnType<typeof openParts>>
  readonly from: DecodeOptions
  readonly baseDir: string
}

/** Opens the reflection model, and reads the file of its prompt. Returns them with the learner's config without files. */
const openLearner = Effect.fnUntraced(function* (learner: Learner, { parts, from, baseDir }: LearnerOpening) {
  const encoded: unknown = Schema.encodeSync(Settings.fields.learner)(learner)
  const plain = isPlain(encoded) ? encoded : {}
  if (learner.type === "bootstrap") return { reflector: null, learner: plain }
  const { texts, config } = yield* inject(plain, ["reflectionPrompt"], [], { ...from, prefix: ["learner"], baseDir })
  const prompt = texts["reflectionPrompt"] ?? defaultPrompt
  const missing = placeholders.find((name) => !prompt.includes(`{${name}}`))
  if (missing !== undefined) {
    const problem = `expected a prompt with {${placeholders.join("} and {")}}, found none of {${missing}}`
    return yield* ConfigError.at(from, "learner.reflectionPrompt", problem)
  }
  const { reflectionLmConfig } = learner
  const lm = yield* parts.openLm(reflectionLmConfig, ["learner", "reflectionLmConfig"])
  const reflector: Reflector = { lm, config: reflectionLmConfig, prompt }
  return { reflector, learner: config }
})

/**
 * Returns the settings on which the answers depend, except the agent's and the scorer's. Budgets may change. `complete` is the
 * learner's config without files: the saved config, which a resume reads, has their texts instead of their names.
 */
const identityOf = Effect.fnUntraced(function* (settings: PromptsSettings, sets: Sets, complete: Plain) {
  const { seed, learn, failureScore, maxStepsPerEpisode, learner } = settings
  const digest = (tasks: TaskSet | null) =>
    tasks === null ? Effect.succeed(null) : sha256(utf8.encode(tasks.digest + String(tasks.size)))
  const { maxMetricCalls: _1, maxTokens: _2, stopScore: _3, ...rest } = complete
  const about =
    learner.type === "gepa"
      ? { ...rest, reflectionLmConfig: agentIdentity({}, learner.reflectionLmConfig)["lmConfig"] }
      : rest
  return {
    seed,
    learn,
    failureScore,
    maxStepsPerEpisode,
    learner: about,
    dataset: yield* digest(sets.train),
    validationDataset: yield* digest(sets.validation),
    testDataset: yield* digest(sets.test),
  }
})

const placeOf = ({ output }: PromptsSettings): Effect.Effect<OwnPlace | undefined, never, Path.Path> =>
  output.resultsDir === null
    ? Effect.undefined
    : Effect.map(logsDir(output.resultsDir), (resultsDir) => ({ resultsDir }))
