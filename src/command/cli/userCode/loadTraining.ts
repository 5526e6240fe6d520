/** Makes a training from the file that the user names, and adds hints to its errors. It does not run the training. */
import { dirname, extname, join, resolve } from "node:path"
import { Effect, type FileSystem, Option, Path, Predicate } from "effect"
import {
  applyOverrides,
  type ConfigError,
  isPlain,
  type Override,
  type Plain,
  toCamelCase,
} from "../../../base/config/Config.ts"
import { exists } from "../../../base/files/files.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { messageOf } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import * as Layout from "../../../run/Layout.ts"
import type { RunResult } from "../../../run/RunResult.ts"
import { kindOf, refuseUnknownKind } from "../../../run/RunSpec.ts"
import { codeOf } from "../../../run/store/code-node.ts"
import { toRunResult } from "../../../agents/training/RuntimeResult.ts"
import { logsDir } from "../../../agents/training/logsDir.ts"
import type * as MultiRun from "../../../trainer/MultiRun.ts"
import type * as Prompts from "../../../agents/prompts/Prompts.ts"
import type * as Runtime from "../../../agents/training/Runtime.ts"
import type { Run, TrainError } from "../../../rl/train/Train.ts"
import type { TrainerError } from "../../../trainer/TrainerError.ts"
import { usageError } from "../output/output.ts"
import { permit } from "../../../base/trust/Trust.ts"
import { isOwnCode } from "../trust/ownFiles.ts"
import { loadModule } from "./loadModule.ts"
import { guarded, notATraining } from "./userCode.ts"
import { isConfig, notKeys, readLocatedYaml, readYaml } from "./yamlFile.ts"
import type { CommandError } from "../../CommandError.ts"

/** An Effect that runs a training: reinforcement learning of a policy, or a training of agents that ask a language model. */
export type LoadedTraining = Effect.Effect<
  RunResult,
  TrainError | Runtime.RuntimeError | Prompts.PromptsError | TrainerError | CommandError,
  TrainingNeeds
>

type TrainingNeeds = Effect.Services<Run> | Effect.Services<ReturnType<typeof Runtime.fromConfig>>

/** Loads the training that made a run: from the program that the user names, otherwise from the run's saved config. */
export const loadTrainingOf = (run: string, program: Option.Option<string>) =>
  loadTraining(
    Option.getOrElse(program, () => join(run, Layout.config)),
    { programHint: { text: "if your own program defines it, name that program: --file FILE.ts", ofRun: true } },
  )

interface TrainingLoadOptions {
  readonly programHint?: ProgramHint
  /** Identifies the content of a module, for a process that may load several versions of the module. */
  readonly version?: string
}

/**
 * Loads the training in a file: a module's default export, or a config in YAML. The hint tells the user how to name the
 * program if the config names an env or an algorithm that isn't built in.
 */
export const loadTraining = Effect.fnUntraced(function* (
  file: string,
  {
    programHint = {
      text: `if your own program defines it, name that program: effect run FILE.ts --config ${file}`,
      ofRun: false,
    },
    version,
  }: TrainingLoadOptions = {},
): Effect.fn.Return<LoadedTraining, CommandError | ConfigError, FileSystem.FileSystem> {
  const path = resolve(file)
  if (!(yield* exists(path))) return yield* usageError(`${file}: there is no such file`)
  if (isConfig(path)) return yield* fromYaml(file, path, programHint)
  if (!isProgram(path)) {
    const hint = (yield* exists(resolve(path, Layout.config)))
      ? `; this is a run: effect run ${file}/config.yaml repeats it, effect run FILE --resume ${file} resumes it`
      : ""
    return yield* usageError(`${file}: expected a .ts, .js or .yaml file, or an orch.toml of prime-rl${hint}`)
  }
  const program = yield* loadProgram(file, { version, expected: "Train.run({ … })", isRun: isTraining })
  return withStepsHint(Effect.map(program, toRunResult))
})

/** Tells whether a path ends like the name of a module whose default export can be a run. */
export const isProgram = (file: string): boolean => [".ts", ".mts", ".js", ".mjs"].includes(extname(file))

interface ProgramToLoad<A, E, R> {
  readonly version?: string | undefined
  /** The code that error messages tell the user to export. */
  readonly expected: string
  readonly isRun: (exported: unknown) => exported is Effect.Effect<A, E, R>
}

/** Loads the default export of a module: an Effect that runs a training or an evaluation. */
export const loadProgram = Effect.fnUntraced(function* <A, E, R>(
  file: string,
  { version, expected, isRun }: ProgramToLoad<A, E, R>,
) {
  const path = resolve(file)
  yield* permitCode(file, path)
  const exported = yield* loadModule(file, path, version)
  if (exported === undefined) {
    return yield* usageError(`${file}: it has no default export; expected export default ${expected}`)
  }
  if (!isRun(exported)) {
    return yield* usageError(`${file}: its default export is ${notATraining(exported, expected)}`)
  }
  return guarded(file, exported)
})

/**
 * Asks the service `Trust` about a module and the local files that it imports, unless the user runs the module as with
 * `node FILE`.
 */
const permitCode = Effect.fnUntraced(function* (file: string, path: string) {
  if (isOwnCode(path)) return
  // `codeOf` reads at most one MiB.
  const { files, leftOut } = yield* Effect.try({
    try: () => codeOf(path),
    catch: (error) => usageError(`${file}: ${messageOf(error)}`),
  })
  if (leftOut > 0 || files.length === 0) {
    const problem =
      "a permission for it would not cover all files that it imports, because they are too many or too large"
    return yield* usageError(
      `${file}: ${problem}; look at the code, and copy it out of the folder of the run to run it`,
    )
  }
  const digests = yield* Effect.forEach(files, (one) => sha256(one.content))
  const digest = yield* sha256(utf8.encode(files.map((one, at) => `${digests[at]} ${one.path}\n`).join("")))
  yield* permit({ _tag: "CodeImport", place: file, file: path, sha256: digest }).pipe(
    Effect.mapError(({ message }) => usageError(`${file}: ${message}`)),
  )
})

const fromYaml = Effect.fnUntraced(function* (file: string, path: string, programHint: ProgramHint) {
  const { value: config, lines, notes } = yield* readLocatedYaml(file)
  if (!isPlain(config)) return yield* notKeys(file, config)
  yield* refuseUnknownKind(config, { source: file, sources: lines })
  const kind = kindOf(config)
  if (kind === "evaluation") {
    return yield* usageError(`${file}: this is an evaluation; run it with effect eval ${file}`)
  }
  if (kind === "gateway") {
    return yield* usageError(
      `${file}: this is the config of a gateway; continue it with effect gateway --resume FOLDER`,
    )
  }
  const where = { baseDir: dirname(path), lines }
  if (kind === "multirun") return yield* ofManyRuns(config, { ...where, warnings: notes })
  if (kind === "prompts") return yield* ofPrompts(config, where)
  const training = kind === "agents" ? ofAgents(config, where) : ofPolicy(config, lines)
  return withFragmentHint(withProgramHint(yield* training, programHint), config, file)
})

// Runtime.ts and Train.ts are loaded only when a training needs them, so that help and the other commands start fast.
const ofAgents = Effect.fnUntraced(function* (config: unknown, where: Parameters<typeof Runtime.fromConfig>[1]) {
  const { fromConfig } = yield* Effect.promise(() => import("../../../agents/training/Runtime.ts"))
  return withStepsHint(Effect.map(fromConfig(config, where), toRunResult))
})

const ofPrompts = Effect.fnUntraced(function* (config: unknown, where: Parameters<typeof Prompts.fromConfig>[1]) {
  const { fromConfig } = yield* Effect.promise(() => import("../../../agents/prompts/Prompts.ts"))
  return withStepsHint(fromConfig(config, where), "prompts: --set learner.max_metric_calls=N")
})

const ofManyRuns = Effect.fnUntraced(function* (config: unknown, where: Parameters<typeof MultiRun.fromConfig>[1]) {
  const { fromConfig } = yield* Effect.promise(() => import("../../../trainer/MultiRun.ts"))
  return withStepsHint(fromConfig(config, where), "runs of a trainer: --set runs.NAME.max_steps=N")
})

const ofPolicy = Effect.fnUntraced(function* (config: unknown, lines: ReadonlyMap<string, string>) {
  const { fromConfig } = yield* Effect.promise(() => import("../../../rl/train/Train.ts"))
  return fromConfig(config, { lines }) satisfies LoadedTraining
})

/** Changes the messages of the config errors of a training. */
const withHint = (training: LoadedTraining, reword: (message: string, error: ConfigError) => string): LoadedTraining =>
  Effect.mapError(training, (error) =>
    Predicate.isTagged(error, "ConfigError") ? error.reworded((message) => reword(message, error)) : error,
  )

/**
 * A hint that tells the user how to name the program that defines an env or an algorithm. The subcommands have different
 * hints.
 */
interface ProgramHint {
  readonly text: string
  /**
   * Tells whether the config was saved by a run. The names in it were valid when it ran, so a list of the built-in
   * names is no help.
   */
  readonly ofRun: boolean
}

/** Adds the hint to the error of a config that names an env or an algorithm which isn't built in. */
const withProgramHint = (training: LoadedTraining, { text, ofRun }: ProgramHint): LoadedTraining =>
  withHint(training, (message, { unknown }) => {
    if (unknown === undefined) return message
    // For a saved run, the advice to leave a callback out is removed: the subcommands that read such a run either need its
    // callbacks or don't load them.
    return `${ofRun ? message.replace(/; (?:expected one of|known:|did you mean|leave it out with) [^;]*/, "") : message}; ${text}`
  })

/**
 * If a config lacks keys that every training needs, adds a hint to the error: how to use a file that has only some settings.
 */
const withFragmentHint = (training: LoadedTraining, config: Plain, file: string): LoadedTraining => {
  const needed = kindOf(config) === "agents" ? ["agent"] : ["env", "algorithm"]
  if (needed.every((key) => key in config)) return training
  const hint = `a file with only some settings goes with a program: effect run FILE.ts --config ${file}`
  return withHint(training, (message) => (message.includes("missing key") ? `${message}; ${hint}` : message))
}

/** Explains the error of `--total-steps` for trainings that have another setting for their length, which `instead` names. */
const withStepsHint = (
  training: LoadedTraining,
  instead = "language-model agents: --set runtime.max_envs_to_visit=N",
): LoadedTraining =>
  withHint(training, (message, { source }) =>
    source === "--total-steps" && message.includes('unknown key "total_steps"')
      ? `--total-steps only works with reinforcement learning; for ${instead}`
      : message,
  )

/**
 * Tells whether a value is an Effect. The type parameters of an Effect don't exist at run time, so an Effect that isn't
 * a training passes here and fails when it runs.
 */
const isTraining = (
  value: unknown,
): value is Effect.Effect<RunResult | Runtime.RuntimeResult, Effect.Error<LoadedTraining>, TrainingNeeds> =>
  Effect.isEffect(value)

/** Returns the results folder and the name that a config in YAML chooses for its run; an empty object for a program. */
export const ownPlace = Effect.fnUntraced(function* (
  file: string,
  overrides: ReadonlyArray<Override> = [],
): Effect.fn.Return<{ readonly resultsDir?: string; readonly name?: string }, CommandError, FileSystem.FileSystem> {
  const config = isConfig(file) ? toCamelCase(yield* readYaml(file)) : {}
  // A wrong override is reported later, when the config is decoded.
  const { name, output } = yield* applyOverrides(isPlain(config) ? config : {}, overrides).pipe(
    Effect.match({ onSuccess: ({ value }) => value, onFailure: (): Plain => ({}) }),
  )
  const resultsDir = isPlain(output) ? output.resultsDir : undefined
  return {
    ...(typeof name === "string" ? { name } : {}),
    ...(typeof resultsDir === "string" ? { resultsDir: yield* Effect.provide(logsDir(resultsDir), Path.layer) } : {}),
  }
})
