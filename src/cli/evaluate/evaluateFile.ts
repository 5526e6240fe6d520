import { existsSync } from "node:fs"
import { basename, dirname, extname, join } from "node:path"
import { Effect, Layer, Option, Schema } from "effect"
import { isPlain, toCamelCase } from "../../config/Config.ts"
import { mostBytes } from "../../config/files.ts"
import { readTextWithin } from "../../config/files-node.ts"
import type { EvaluationError, EvaluationResult } from "../../evaluate/Evaluations.ts"
import { LmError } from "../../lm/LmError.ts"
import { platform, recorder, runStore, terminalProgress } from "../../node.ts"
import { newestFirst } from "../../run/find/RunEntry.ts"
import { findRuns } from "../../run/find/find-node.ts"
import { silentSource } from "../../run/read/disk-node.ts"
import { kindOf } from "../../run/RunSpec.ts"
import { logsDir } from "../../runtime/logsDir.ts"
import { defaultResultsDir, quoted } from "../flags.ts"
import { finishedAt, type Opened, unlessFinished } from "../run/unlessFinished.ts"
import { ofKind, runToResumeAt, tellRun } from "../findRun.ts"
import { notKeys, ownPlace, yamlLines } from "../userCode/loadTraining.ts"
import { setting } from "../run/overrides.ts"
import { derivedName, isSameName } from "../../run/identifier.ts"
import { writeError, writeOut } from "../output/output.ts"
import { UsageError } from "../UsageError.ts"
import * as Layout from "../../run/Layout.ts"

export interface GivenFile {
  readonly file: string
  readonly set: ReadonlyArray<string>
  readonly resultsDir: string
  readonly name: Option.Option<string>
  readonly resume: Option.Option<string>
  readonly quiet: boolean
  readonly json: boolean
}

export type EvaluateFileError = EvaluationError | UsageError

/** `effect eval tasks.yaml`. */
export const evaluateFile = Effect.fnUntraced(function* (given: GivenFile): Effect.fn.Return<void, EvaluateFileError> {
  const { file, json, quiet } = given
  const { value: config, lines } = yield* yamlLines(file)
  if (!isPlain(config)) return yield* notKeys(file, config)
  if (kindOf(config) === "agents") {
    const hint = `train it with effect run ${file}, then evaluate the run with effect eval RUN`
    return yield* new UsageError({
      message: `${file}: this is a training, not an evaluation (it has no dataset); ${hint}`,
    })
  }
  const name = Option.getOrElse(given.name, () => derivedName(basename(file, extname(file))))
  const resume = yield* runToResume(given)
  if (resume !== undefined && !given.quiet && !given.json) {
    yield* tellRun(
      Option.getOrElse(given.resume, () => resume),
      resume,
    )
  }
  const overrides = [
    ...Option.toArray(given.name).map((value) => ({ path: "name", value, source: "--name" })),
    ...(yield* Effect.forEach(given.set, setting)),
  ]
  let opened: Opened | undefined
  const layers = Layer.mergeAll(
    platform,
    recorder(...(quiet ? [] : [terminalProgress])),
    runStore({
      resultsDir: given.resultsDir,
      // A results folder given on the command line goes before the one that the file names.
      ownPlaces: given.resultsDir === defaultResultsDir,
      onOpen: (directory) => Effect.sync(() => void (opened = { directory, finishedAt: finishedAt(directory) })),
      ...(resume === undefined ? {} : { resume }),
    }),
  )
  const { fromConfig } = yield* Effect.promise(() => import("../../evaluate/Evaluations.ts"))
  const placeOf = (resultsDir: string) => Effect.map(logsDir(resultsDir), (placed) => ({ resultsDir: placed }))
  const evaluation = fromConfig(config, {
    baseDir: dirname(file),
    source: file,
    name,
    overrides,
    lines,
    placeOf,
  }).pipe(
    Effect.provide(layers),
    // The answers so far are kept, so that the user can resume after removing the cause.
    Effect.catchTag("LmError", (error) => {
      const directory = opened?.directory ?? resume
      if (directory === undefined) return Effect.fail(error)
      const message = `${error.message}; resume with: ${resumeCommand(given, directory)}`
      return Effect.fail(new LmError({ ...error, message }))
    }),
  )
  yield* unlessFinished(evaluation, () => opened, {
    read: readEvaluation,
    finished: (result) => {
      if (json) return writeOut(`${JSON.stringify(result)}\n`)
      return quiet ? Effect.void : Effect.flatMap(shown(result), writeOut)
    },
    interrupted: Effect.suspend(() =>
      opened === undefined
        ? Effect.void
        : writeError(`\ninterrupted; resume with: ${resumeCommand(given, opened.directory)}\n`),
    ),
  })
})

/** Reads the result of a finished evaluation. */
const readEvaluation = Effect.fnUntraced(function* (directory: string) {
  const { EvaluationResult } = yield* Effect.promise(() => import("../../evaluate/Evaluations.ts"))
  const text = yield* Effect.tryPromise(() => readTextWithin(join(directory, Layout.metrics), mostBytes.text))
  const metrics = toCamelCase(yield* Effect.try((): unknown => JSON.parse(text)))
  return yield* Schema.decodeUnknownEffect(EvaluationResult)(metrics)
})

const shown = (result: EvaluationResult) =>
  Effect.map(
    Effect.promise(() => import("../../evaluate/Report.ts")),
    ({ text }) => `${text(result.report, result)}\n${result.runDir}\n`,
  )

/** With everything that it was told, but for what is only shown. */
const resumeCommand = ({ file, set, name, resultsDir }: GivenFile, directory: string): string => {
  const words = [file, "--resume", directory, ...set.flatMap((one) => ["--set", one])]
  for (const one of Option.toArray(name)) words.push("--name", one)
  if (resultsDir !== defaultResultsDir) words.push("--results-dir", resultsDir)
  return `npx effect eval ${quoted(words)}`
}

const isUnfinished = (path: string): boolean =>
  existsSync(join(path, Layout.evaluation.journal)) && !existsSync(join(path, Layout.returns))

const evaluations = ofKind("an evaluation", "evaluation")

const runToResume = Effect.fnUntraced(function* (given: GivenFile): Effect.fn.Return<string | undefined, UsageError> {
  const [wanted] = Option.toArray(given.resume)
  if (wanted === undefined) return undefined
  if (existsSync(join(wanted, Layout.config))) return wanted
  const { resultsDir: own, name = derivedName(basename(given.file, extname(given.file))) } = yield* ownPlace(given.file)
  const places = own === undefined ? [given.resultsDir] : [given.resultsDir, own]
  if (wanted !== "latest") return yield* runToResumeAt(wanted, { folders: places, usable: evaluations })
  const found = (yield* Effect.forEach(places, (place) => findRuns(place, silentSource))).flat()
  const wantedName = Option.getOrElse(given.name, () => name)
  const newest = newestFirst(found.filter(({ path }) => isUnfinished(path))).find(
    (run) => run.name === undefined || isSameName(run.name, wantedName),
  )
  if (newest !== undefined) return newest.path
  const message = `--resume latest: there is no unfinished evaluation named ${wantedName} in ${places.join(" or ")}`
  return yield* new UsageError({ message })
})
