/**
 * Reads the config of a multi-run trainer and of its runs, and checks both completely before anything is written. Every error
 * names the file, the line and the key: `conf.yaml:31: runs.letters.optimiser.lr: expected …`.
 */
import { Effect, Path, Record, Schema } from "effect"
import { choiceHint } from "../../base/text/closest.ts"
import {
  checkAll,
  ConfigError,
  decode,
  type DecodeOptions,
  isPlain,
  overridden,
  type Plain,
  placeOf,
} from "../../base/config/Config.ts"
import { withPlaces } from "../../base/config/places.ts"
import { isOfThisComputer, permitAddress } from "../../agents/lm/addressTrust.ts"
import { projections, projectionsOf } from "../../decoder/networks/Decoder.ts"
import type { DecoderConfig } from "../../decoder/networks/DecoderConfig.ts"
import type { RunOptions } from "../../run/RunOptions.ts"
import { onlyKnown, permit } from "../../base/trust/Trust.ts"
import { expertsOfToken, replayedExperts } from "../batches/routerReplay.ts"
import * as Layout from "../Layout.ts"
import type { DiscoveredRun } from "../runs/RunSlot.ts"
import { comparesRewards } from "./learningProblems.ts"
import { alphabetOf, lettersWarnings } from "./letters.ts"
import { MultiRunConfig } from "./MultiRunConfig.ts"
import { defaultMaxTokens, OrchestratorConfig } from "./OrchestratorConfig.ts"
import { serverProblems, serverRunProblems } from "./serverProblems.ts"
import { openRunParts } from "./runParts.ts"

/** A config that is not yet checked, and where it was read. */
interface Unchecked {
  readonly config: unknown
  /** The folder that relative paths start from. */
  readonly baseDir: string
  /** Where each key was written, for error messages: maps `trainer.rows` to `conf.yaml:7`. */
  readonly lines: ReadonlyMap<string, string>
  readonly options: Pick<RunOptions, "overrides" | "source" | "name">
}

/**
 * Reads and checks a config. Returns the settings, in which all paths are absolute; `effective`, the same as plain data; and
 * `from`, the lines of the keys.
 */
export const readConfig = Effect.fnUntraced(function* ({ config, baseDir, lines, options }: Unchecked) {
  const { overrides, source, name } = options
  const { value, from } = yield* overridden(config, { lines, overrides, source, whole: withRuns })
  const reading = decode(MultiRunConfig, { name, ...withBlock(value) }, from)
  const written = isPlain(value["runs"]) ? value["runs"] : {}
  yield* checkAll(misspeltRuns(config, written).map(([key, problem]) => ConfigError.at(from, key, problem)))
  yield* checkAll([reading, ...Object.entries(written).map(([run, own]) => decodeRun(run, own, from))])
  const settings = yield* reading
  const entries = Object.entries(settings.runs)
  const decoded = yield* Effect.forEach(entries, ([run, own]) => decodeRun(run, own, from))
  yield* checkAll([
    ...[...trainerProblems(settings), ...serverProblems(settings)].map(([key, problem]) =>
      ConfigError.at(from, key, problem),
    ),
    ...entries.flatMap(([run], at) => [
      ...allRunProblems(settings, decoded[at]).map(([key, problem]) =>
        ConfigError.at(from, `runs.${run}.${key}`, problem),
      ),
      openRunParts(decoded[at], { from: runPlace(run, from), baseDir, model: run }),
    ]),
  ])
  yield* permitStore(settings.trainer.store, from)
  yield* permitAddress(settings.trainer, undefined, { ...from, prefix: ["trainer"] })
  const alphabet = alphabetOf(settings)
  const warnings = yield* Effect.forEach(alphabet === null ? [] : entries, ([run], at) =>
    openRunParts(decoded[at], { from: runPlace(run, from), baseDir, model: run }).pipe(
      Effect.flatMap((parts) => lettersWarnings(`runs.${run}`, parts, alphabet ?? "")),
    ),
  )
  const placed = yield* withAbsolutePaths(settings, baseDir)
  const encoded = yield* Effect.orDie(Schema.encodeEffect(MultiRunConfig)(placed))
  return { settings: placed, effective: isPlain(encoded) ? encoded : {}, from, warnings: warnings.flat() }
})

/** The default of `trainer.block`. */
const usualBlock = 32

/** Without `trainer.block`, adds the default, or the largest number that divides both it and `trainer.width`. */
const withBlock = (value: Plain): Plain => {
  const { trainer } = value
  if (!isPlain(trainer) || trainer["block"] !== undefined) return value
  const { width } = trainer
  const isWhole = typeof width === "number" && Number.isSafeInteger(width) && width > 0
  return isWhole ? { ...value, trainer: { ...trainer, block: commonDivisor(width, usualBlock) } } : value
}

const commonDivisor = (a: number, b: number): number => (b === 0 ? a : commonDivisor(b, a % b))

/**
 * Asks the service `Trust` whether the ranks may exchange gradients through the config's server, unless the server is on this
 * computer.
 */
const permitStore = (store: MultiRunConfig["trainer"]["store"], from: DecodeOptions) => {
  if (store.type !== "redis" || store.url === null || isOfThisComputer(store.url)) return Effect.void
  const key = "trainer.store.url"
  const place = placeOf(from, key)
  return permit({ _tag: "Sending", place, address: store.url, variable: null, what: "gradients" }).pipe(
    Effect.mapError(({ message }) => ConfigError.at(from, key, message)),
  )
}

/** The Schema of a whole config, with the settings of its runs. */
const withRuns = Schema.Struct({ ...MultiRunConfig.fields, runs: Schema.Record(Schema.String, OrchestratorConfig) })

const runPlace = (run: string, from: DecodeOptions): DecodeOptions => ({
  ...from,
  prefix: ["runs", run],
  whole: Schema.Struct({ ...MultiRunConfig.fields, runs: Schema.Struct({ [run]: OrchestratorConfig }) }),
})

const decodeRun = (run: string, config: unknown, from: DecodeOptions) =>
  decode(OrchestratorConfig, config, runPlace(run, from))

type Problem = readonly [key: string, problem: string]

/**
 * Returns the runs that an override seems to have created by a misspelt name: they are not in the file, and have no tasks.
 */
const misspeltRuns = (config: unknown, runs: Plain): ReadonlyArray<Problem> => {
  const inFile = isPlain(config) && isPlain(config["runs"]) ? config["runs"] : {}
  const isNew = (run: string, own: unknown): boolean =>
    !Object.hasOwn(inFile, run) && isPlain(own) && (own["trainDataset"] ?? null) === null
  const added = Object.keys(runs).filter((run) => isNew(run, runs[run]))
  const known = Object.keys(runs).filter((run) => !added.includes(run))
  if (known.length === 0) return []
  return added.map((run) => [`runs.${run}`, `unknown run "${run}"; ${choiceHint(run, known)}`])
}

/** Returns what is wrong with the settings of the model and the trainer together, each problem with its key. */
const trainerProblems = ({
  model,
  trainer,
  runs,
  orchestrators,
  broadcast,
}: MultiRunConfig): ReadonlyArray<Problem> => {
  const { width, block, lora, maxRuns } = trainer
  const names = Object.keys(runs)
  const unless = (holds: boolean, key: string, problem: string): ReadonlyArray<Problem> =>
    holds ? [] : [[key, problem]]
  return [
    ...unless(
      width % block === 0,
      "trainer.block",
      `expected a divisor of trainer.width (${width}), found ${block}; leave it out to have one chosen`,
    ),
    ...unless(
      lora !== null || maxRuns === 1,
      "trainer.max_runs",
      `expected 1, found ${maxRuns}; without trainer.lora, one run trains all weights of the model`,
    ),
    ...unless(
      lora !== null || names.length <= 1,
      "runs",
      `expected one run, found ${names.join(", ")}; with trainer.lora, many runs share the model`,
    ),
    ...unless(
      orchestrators === "inside" || broadcast.keep > 0,
      "broadcast.keep",
      "expected at least 1 with orchestrators: outside, because their server reads broadcasts; found 0",
    ),
    ...(model.type === "folder"
      ? unless(
          model.quantization === null || (lora !== null && trainer.type === "local"),
          "model.quantization",
          "expected null without trainer.lora or with trainer.type: tinker; int8 is for a base model that this process holds to train adapters",
        )
      : []),
    ...(model.type === "scratch"
      ? [
          ...unless(
            model.hiddenSize % (2 * model.heads) === 0,
            "model.heads",
            `expected a divisor of half of model.hidden_size (${model.hiddenSize}), found ${model.heads}`,
          ),
          ...sizeProblems(trainer, model, "model.max_positions"),
        ]
      : []),
  ]
}

/** The largest number of elements in an array of a program, whose addresses have 32 bits. */
const mostNumbers = 2 ** 29

type ModelSizes = Pick<DecoderConfig, "hiddenSize" | "maxPositions" | "gated" | "experts"> &
  Partial<Pick<DecoderConfig, "layers">>

type TrainerSizes = Pick<MultiRunConfig["trainer"], "width" | "rows" | "lora"> &
  Partial<Pick<MultiRunConfig["trainer"], "enableRouterReplay">>

/**
 * Returns the settings of a trainer that do not fit the sizes of its model. For a model in a folder, it is called when the
 * folder is opened, because the config does not have the sizes. `positionsKey` is the key with the model's positions.
 */
export const sizeProblems = (
  { width, rows, lora, enableRouterReplay = false }: TrainerSizes,
  { hiddenSize, maxPositions, layers = 1, ...kinds }: ModelSizes,
  positionsKey = "max_position_embeddings in the config.json of model.path",
): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  if (width > maxPositions)
    problems.push([
      "trainer.width",
      `expected at most the model's ${maxPositions} positions (${positionsKey}), found ${width}; make trainer.width smaller (seq_len in an orch.toml of prime-rl)`,
    ])
  if (lora !== null && lora.rank > hiddenSize)
    problems.push([
      "trainer.lora.rank",
      `expected at most the model's hidden size (${hiddenSize}), beyond which a rank adds nothing; found ${lora.rank}`,
    ])
  const own = projectionsOf(kinds)
  const missing = lora === null ? [] : lora.targets.filter((target) => !own.includes(target))
  // The default, all projections, stands for those that the model has.
  if (lora !== null && missing.length > 0 && projections.some((projection) => !lora.targets.includes(projection)))
    problems.push([
      "trainer.lora.targets",
      `expected some of the model's projections (${own.join(", ")}), found ${missing.join(", ")}`,
    ])
  if (enableRouterReplay && kinds.experts === undefined)
    problems.push([
      "trainer.enable_router_replay",
      "expected false, because the model has no experts whose choice could be replayed; found true: leave the key out, or choose a mixture of experts, such as Qwen3-MoE",
    ])
  const recorded = expertsOfToken(replayedExperts({ enableRouterReplay }, { layers, ...kinds }))
  if (rows * width * recorded > mostNumbers)
    problems.push([
      "trainer.rows",
      `${rows} rows of ${width} tokens, each with ${recorded} recorded experts, are more than ${mostNumbers} numbers; make rows or width smaller`,
    ])
  if (rows * width * hiddenSize > mostNumbers)
    problems.push([
      "trainer.rows",
      `${rows} rows of ${width} tokens, each of ${hiddenSize} numbers, are more than ${mostNumbers} numbers; make rows or width smaller`,
    ])
  return problems
}

/** Returns what in a run's config does not fit the trainer. */
const runProblems = (
  { model, trainer: { width, lora, mixing }, orchestrators }: MultiRunConfig,
  config: OrchestratorConfig,
): ReadonlyArray<Problem> => {
  const { lora: adapter, sampling, batch, objective, trainDataset, teacher, critic } = config
  const problems: Array<Problem> = []
  const { groupSize } = batch
  // Without a data set, another program makes the samples, and compares the answers itself.
  if (groupSize === 1 && trainDataset !== null && comparesRewards(config))
    problems.push([
      "batch.group_size",
      `expected at least 2 for ${objective.type}, which compares the answers of a group: with one answer, all advantages are 0 and nothing is learned; found 1`,
    ])
  if (objective.type === "dpo" && mixing !== "one-run")
    problems.push([
      "objective.type",
      `expected trainer.mixing: one-run with dpo, whose pairs must be in one micro-batch; found ${mixing}`,
    ])
  if (teacher !== null && teacher.type !== "server" && orchestrators === "outside")
    problems.push([
      "teacher.type",
      `expected server with orchestrators: outside, found ${teacher.type}; only a trainer that plays its runs itself computes with a teacher`,
    ])
  if (critic !== null && orchestrators === "outside")
    problems.push([
      "critic",
      "expected none with orchestrators: outside; only a trainer that plays its runs itself computes with the model",
    ])
  const hasAdapter = adapter.rank !== null || adapter.alpha !== null
  if (lora === null && hasAdapter) problems.push(["lora", "expected no adapter, as trainer.lora is not set"])
  if (lora !== null && (adapter.rank ?? 0) > lora.rank)
    problems.push(["lora.rank", `expected at most trainer.lora.rank (${lora.rank}), found ${adapter.rank}`])
  // The default is always accepted: an answer may also end at the window's end, and saved configs contain the default.
  const isDefault = sampling.maxTokens === defaultMaxTokens
  const length = model.type === "scratch" ? Math.min(width, model.maxPositions) : width
  if (!isDefault && sampling.maxTokens >= length)
    problems.push([
      "sampling.max_tokens",
      `expected less than ${length}, the most tokens of a prompt with its answer, found ${sampling.maxTokens}`,
    ])
  return problems
}

/** Returns what in a run's config does not fit the trainer, wherever it trains. */
const allRunProblems = (settings: MultiRunConfig, config: OrchestratorConfig): ReadonlyArray<Problem> => [
  ...runProblems(settings, config),
  ...serverRunProblems(settings, config),
]

/** The place of the config of a run that was added to the trainer's folder, for error messages. */
const addedPlace = ({ directory }: Pick<DiscoveredRun, "directory">): DecodeOptions => ({
  source: `${directory}/${Layout.configs}`,
})

/** Fails if the config of a run in the trainer's folder does not fit the trainer. */
export const refuseMisfit = (settings: MultiRunConfig, run: DiscoveredRun): Effect.Effect<void, ConfigError> =>
  checkAll(allRunProblems(settings, run.config).map(([key, problem]) => ConfigError.at(addedPlace(run), key, problem)))

/**
 * Returns warnings about a run that was added to the folder of a running trainer. A run whose data sets cannot be opened gets
 * none here, because it is refused.
 */
export const warningsOfAdded = (
  { settings, baseDir }: { readonly settings: MultiRunConfig; readonly baseDir: string },
  run: DiscoveredRun,
) => {
  const { id, config } = run
  const alphabet = alphabetOf(settings)
  // Without orchestrators in this process, the data sets need not be on this machine.
  const isSeen = settings.orchestrators === "outside" || Object.hasOwn(settings.runs, Layout.nameOf(id))
  if (alphabet === null || isSeen) return Effect.succeed([])
  return openRunParts(config, { from: addedPlace(run), baseDir, model: id }).pipe(
    Effect.flatMap((parts) => lettersWarnings(id, parts, alphabet)),
    Effect.orElseSucceed((): ReadonlyArray<string> => []),
    onlyKnown,
  )
}

/** Makes all paths absolute, because the config is saved in another folder. */
const withAbsolutePaths = Effect.fnUntraced(function* (settings: MultiRunConfig, baseDir: string) {
  const { model, runs } = settings
  const paths = yield* Path.Path
  const placed = yield* Effect.all(
    Record.map(runs, (run) => Effect.map(withPlaces(run, baseDir), (all) => withTeacherPath(all, paths, baseDir))),
  )
  return {
    ...settings,
    model: model.type === "folder" ? { ...model, path: paths.resolve(baseDir, model.path) } : model,
    runs: placed,
  } satisfies MultiRunConfig
})

/** Makes the path of a run's teacher absolute. */
const withTeacherPath = (run: Plain, paths: Path.Path, baseDir: string): Plain => {
  const { teacher } = run
  return isPlain(teacher) && typeof teacher["path"] === "string"
    ? { ...run, teacher: { ...teacher, path: paths.resolve(baseDir, teacher["path"]) } }
    : run
}
