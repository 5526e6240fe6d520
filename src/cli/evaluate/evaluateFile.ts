import { basename, dirname, extname, join } from "node:path"
import { Effect, type FileSystem, Layer, Option } from "effect"
import { isPlain } from "../../config/Config.ts"
import { exists } from "../../config/files.ts"
import type { EvaluationError, EvaluationResult } from "../../evaluate/Evaluations.ts"
import { LmError } from "../../lm/LmError.ts"
import { platform, recorder, runStore, terminalProgress } from "../../node.ts"
import { newestFirst } from "../../run/find/RunEntry.ts"
import { findRuns } from "../../run/find/find-node.ts"
import { silentSource } from "../../run/read/disk-node.ts"
import { derivedName, isSameName } from "../../run/identifier.ts"
import * as Layout from "../../run/Layout.ts"
import { kindOf } from "../../run/RunSpec.ts"
import { logsDir } from "../../runtime/logsDir.ts"
import { ofKind, printRun, runToResumeAt } from "../findRun.ts"
import { defaultResultsDir, quoted } from "../flags.ts"
import { UsageError } from "../output/errors.ts"
import { writeError, writeOut } from "../output/output.ts"
import { openedRun, readMetrics, reportEnd } from "../run/finished.ts"
import { parseSetting } from "../run/overrides.ts"
import { ownPlace } from "../userCode/loadTraining.ts"
import { notKeys, readLocatedYaml } from "../userCode/yamlFile.ts"

interface GivenFile {
  readonly file: string
  readonly set: ReadonlyArray<string>
  readonly resultsDir: string
  readonly name: Option.Option<string>
  readonly resume: Option.Option<string>
  readonly quiet: boolean
  readonly json: boolean
}

export type EvaluateFileError = EvaluationError | UsageError

/** Runs the evaluation that a YAML file describes: `effect eval tasks.yaml`. */
export const evaluateFile = Effect.fnUntraced(function* (
  given: GivenFile,
): Effect.fn.Return<void, EvaluateFileError, FileSystem.FileSystem> {
  const { file, json, quiet } = given
  const { value: config, lines } = yield* readLocatedYaml(file)
  if (!isPlain(config)) return yield* notKeys(file, config)
  if (kindOf(config) === "agents") {
    const hint = `train it with effect run ${file}, then evaluate the run with effect eval RUN`
    return yield* new UsageError({
      message: `${file}: this is a training, not an evaluation (it has no dataset); ${hint}`,
    })
  }
  const resume = yield* runToResume(given)
  if (resume !== undefined && !quiet && !json) {
    yield* printRun(
      Option.getOrElse(given.resume, () => resume),
      resume,
    )
  }
  const overrides = [
    ...Option.toArray(given.name).map((value) => ({ path: "name", value, source: "--name" })),
    ...(yield* Effect.forEach(given.set, parseSetting)),
  ]
  const opened = yield* openedRun
  const layers = Layer.mergeAll(
    platform,
    recorder(...(quiet ? [] : [terminalProgress])),
    runStore({
      resultsDir: given.resultsDir,
      // --results-dir wins over the results folder that the file names.
      ownPlaces: given.resultsDir === defaultResultsDir,
      onOpen: opened.onOpen,
      ...(resume === undefined ? {} : { resume }),
    }),
  )
  const { EvaluationResult, fromConfig } = yield* Effect.promise(() => import("../../evaluate/Evaluations.ts"))
  const evaluation = fromConfig(config, {
    baseDir: dirname(file),
    source: file,
    name: nameOf(given),
    overrides,
    lines,
    placeOf: (resultsDir) => Effect.map(logsDir(resultsDir), (placed) => ({ resultsDir: placed })),
  }).pipe(
    Effect.provide(layers),
    // All answers so far are saved, so the user can resume after removing the cause.
    Effect.catchTag("LmError", (error) => {
      const directory = opened.directory() ?? resume
      if (directory === undefined) return Effect.fail(error)
      const message = `${error.message}; resume with: ${resumeCommand(given, directory)}`
      return Effect.fail(new LmError({ ...error, message }))
    }),
  )
  yield* reportEnd(evaluation, opened, {
    read: (directory) => readMetrics(directory, EvaluationResult),
    finished: (result) => {
      if (json) return writeOut(`${JSON.stringify(result)}\n`)
      return quiet ? Effect.void : Effect.flatMap(summary(result), writeOut)
    },
    interrupted: (directory) => writeError(`\ninterrupted; resume with: ${resumeCommand(given, directory)}\n`),
  })
})

const nameOf = ({ file, name }: GivenFile): string =>
  Option.getOrElse(name, () => derivedName(basename(file, extname(file))))

const summary = (result: EvaluationResult): Effect.Effect<string> =>
  Effect.map(
    Effect.promise(() => import("../../evaluate/Report.ts")),
    ({ text }) => `${text(result.report, result)}\n${result.runDir}\n`,
  )

/** Returns the command that resumes the evaluation, with all flags except those that change only what is printed. */
const resumeCommand = ({ file, set, name, resultsDir }: GivenFile, directory: string): string => {
  const words = [file, "--resume", directory, ...set.flatMap((setting) => ["--set", setting])]
  if (Option.isSome(name)) words.push("--name", name.value)
  if (resultsDir !== defaultResultsDir) words.push("--results-dir", resultsDir)
  return `npx effect eval ${quoted(words)}`
}

const evaluations = ofKind("an evaluation", "evaluation")

/** Returns the folder of the evaluation that `--resume` names; undefined without that flag. */
const runToResume = Effect.fnUntraced(function* (
  given: GivenFile,
): Effect.fn.Return<string | undefined, UsageError, FileSystem.FileSystem> {
  if (Option.isNone(given.resume)) return undefined
  const wanted = given.resume.value
  if (yield* exists(join(wanted, Layout.config))) return wanted
  const own = yield* ownPlace(given.file)
  const folders = own.resultsDir === undefined ? [given.resultsDir] : [given.resultsDir, own.resultsDir]
  if (wanted !== "latest") return yield* runToResumeAt(wanted, { folders, usable: evaluations })
  const name = Option.getOrElse(given.name, () => own.name ?? nameOf(given))
  const entries = (yield* Effect.forEach(folders, (folder) => findRuns(folder, silentSource))).flat()
  const ofThisName = entries.filter((run) => run.name === undefined || isSameName(run.name, name))
  for (const { path } of newestFirst(ofThisName)) {
    const isFinished = yield* exists(join(path, Layout.returns))
    if (!isFinished && (yield* exists(join(path, Layout.evaluation.journal)))) return path
  }
  const message = `--resume latest: there is no unfinished evaluation named ${name} in ${folders.join(" or ")}`
  return yield* new UsageError({ message })
})
