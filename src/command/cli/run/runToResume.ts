/** Finds the run that `effect run FILE --resume` continues, and checks that it is a run of this file. It writes nothing. */
import { join, resolve } from "node:path"
import { Effect, Option } from "effect"
import { display, isPlain, type Plain, toSnakeCase } from "../../../base/config/Config.ts"
import { exists, mostBytes, readRunText } from "../../../base/files/files.ts"
import { asSaved } from "../../../base/config/yaml.ts"
import { diff } from "../../../run/find/diff.ts"
import { findRuns } from "../../../run/find/find-node.ts"
import { entryOf, newestFirst, trainerOf, unplacedEntry } from "../../../run/find/RunEntry.ts"
import { isSameName } from "../../../run/identifier.ts"
import * as Layout from "../../../run/Layout.ts"
import { kindOf } from "../../../run/RunSpec.ts"
import { silentSource } from "../../../run/read/disk-node.ts"
import { readRun, runToResumeAt, trainings } from "../findRun.ts"
import { nameOf, quoted } from "../flags.ts"
import { usageError, writeError } from "../output/output.ts"
import { ownPlace, type LoadedTraining } from "../userCode/loadTraining.ts"
import { isConfig, readYaml } from "../userCode/yamlFile.ts"
import type { RunFlags } from "./flags.ts"
import { overridesOf } from "./overrides.ts"

/**
 * Returns the folder of the run that `--resume` names; undefined without that flag. `latest` means the newest unfinished run
 * with the name of this file. If none is unfinished, it means the newest finished one, which needs more steps to be trained
 * further. If an unfinished run with another name is newer, a note on stderr names it.
 */
export const runToResume = Effect.fnUntraced(function* (input: RunFlags, training: LoadedTraining) {
  if (Option.isNone(input.resume)) return undefined
  const wanted = input.resume.value
  if (yield* exists(join(wanted, Layout.config))) return yield* resumable(wanted)
  const own = yield* ownPlace(input.file, yield* overridesOf(input, undefined))
  const folders = own.resultsDir === undefined ? [input.resultsDir] : [input.resultsDir, own.resultsDir]
  if (wanted !== "latest") return yield* resumable(yield* runToResumeAt(wanted, { folders, usable: trainings }))
  const { name = nameOf(input) } = isConfig(input.file)
    ? own
    : Option.getOrElse(
        Option.map(yield* planOf(input, training), ({ identity }) => identity),
        () => own,
      )
  const runs = newestFirst((yield* Effect.forEach(folders, runsIn)).flat())
  const ofThisName = runs.filter((run) => run.name !== undefined && isSameName(run.name, name))
  const newest = ofThisName.find((run) => !run.isFinished)
  if (newest !== undefined) {
    const command = yield* sweepCommandIn(newest.path)
    if (command === undefined) {
      yield* noteNewer(input, newest, runs)
      return newest.path
    }
    const message = `--resume latest: the newest unfinished run, ${newest.path}, is part of a sweep; resume the sweep with: ${command}; or this run alone with --resume ${newest.path}`
    return yield* usageError(message)
  }
  for (const run of ofThisName) {
    if (yield* exists(join(run.path, Layout.sweepCommand))) continue
    yield* noteNewer(input, run, runs)
    return run.path
  }
  const other = runs.find((run) => !run.isFinished)
  const hint = other === undefined ? "" : otherRun(input.file, other)
  const message = `--resume latest: there is no run named ${name} in ${folders.join(" or ")}${hint}`
  return yield* usageError(message)
})

/** A run that can be resumed. */
type ResumableRun = Effect.Success<ReturnType<typeof runsIn>>[number]

/** Prints a note if a run of another name is newer than the one that is resumed, and is unfinished. */
const noteNewer = Effect.fnUntraced(function* (
  input: RunFlags,
  taken: ResumableRun,
  runs: ReadonlyArray<ResumableRun>,
) {
  if (input.quiet || input.json) return
  const newer = runs.slice(0, runs.indexOf(taken)).find((run) => !run.isFinished)
  if (newer === undefined) return
  const { path, name } = newer
  const hint = name === undefined ? `--resume ${path}` : `--name ${quoted([name])}`
  yield* writeError(`note: a newer unfinished run has another name: ${path}; to resume that one, use ${hint}\n`)
})

const absolute = (path: string): string => resolve(path).replaceAll("\\", "/")

/**
 * Returns the folder of the run. For a run of a multi-run trainer, it returns the trainer's folder, because the trainer
 * trains all its runs together.
 */
const resumable = Effect.fnUntraced(function* (path: string) {
  // The typed path may not contain the name of the folder, for example if it is `.`
  if (trainerOf(absolute(path)) === undefined) return path
  const trainer = join(path, "..")
  const config = join(trainer, Layout.config)
  return (yield* exists(config)) && kindOf(yield* readYaml(config)) === "multirun" ? trainer : path
})

/** Returns the end of an error message, which suggests an unfinished run of another name. */
const otherRun = (file: string, { path, name }: { readonly path: string; readonly name: string | undefined }) => {
  const hint = name === undefined ? "" : `; if that is a run of ${file}, add --name ${quoted([name])}`
  return `; the newest unfinished one is ${path}${hint}`
}

/**
 * Returns the name and the config that a new run of the file would have; `None` if required settings are missing in the file.
 */
const planOf = Effect.fnUntraced(function* (input: RunFlags, training: LoadedTraining) {
  const { plannedOf } = yield* Effect.promise(() => import("../../sweep/plan.ts"))
  const overrides = yield* overridesOf(input, undefined)
  const options = { overrides, source: input.file, name: nameOf(input), population: {} }
  return yield* Effect.option(plannedOf(training, options))
})

/**
 * Matches a command of this program whose words are quoted in the same way as `quoted` does it. A shell that gets such a text
 * runs nothing else.
 */
const ownCommand = /^npx effect (?:run|tune)(?: (?:[\w./:=@%+,-]+|'(?:[^']|'\\'')*'))*$/

/**
 * Reads the command that resumes the sweep of a run; undefined if the run is not part of a sweep. The user may paste the
 * command into a shell, and the run may come from somebody else, so any text that is not a command of this program is
 * refused.
 */
const sweepCommandIn = (directory: string) =>
  readRunText(join(directory, Layout.sweepCommand), mostBytes.text).pipe(
    Effect.map((text) => (ownCommand.test(text.trim()) ? text.trim() : "effect run FILE --resume SWEEP")),
    Effect.orElseSucceed(() => undefined),
  )

const nameIn = (config: unknown): string | undefined =>
  isPlain(config) && typeof config.name === "string" ? config.name : undefined

/**
 * Returns the runs of a results folder that have a config, each with its name from the path, otherwise from the config. A
 * multi-run trainer is listed once for all its runs.
 */
const runsIn = Effect.fnUntraced(function* (resultsDir: string) {
  const found = yield* findRuns(resultsDir, silentSource)
  // A trainer whose config can't be read stays in the list; if it is the newest, an error names the file.
  const folderOf = (path: string) => Effect.orElseSucceed(resumable(path), () => join(path, ".."))
  const folders = new Set(yield* Effect.forEach(found, ({ path }) => folderOf(path)))
  const runs = yield* Effect.forEach(
    [...folders].flatMap((path) => entryOf(path, absolute(path)) ?? unplacedEntry(path)),
    Effect.fnUntraced(function* (entry) {
      const run = readRun(entry)
      if ((yield* run.configText) === undefined) return []
      const isFinished = yield* run.isFinished
      return [{ ...entry, isFinished, name: entry.name ?? nameIn({ name: yield* run.configAt(["name"]) }) }]
    }),
  )
  return runs.flat()
})

/** Matches the settings that define the task and the algorithm or agent that learns it, except API keys. */
const definingSetting = /^(env|algorithm|agent|train_dataset)(\.|$)(?!.*api_?key)/

/**
 * Returns the sections `env` and `algorithm` of a config with only their names. Such a section is a text, or it has the key
 * `name`.
 */
const namesIn = (config: unknown): Plain => {
  const plain = isPlain(config) ? config : {}
  return Object.fromEntries(
    ["env", "algorithm"].map((key) => {
      const part = plain[key]
      return [key, isPlain(part) ? part.name : part]
    }),
  )
}

/**
 * Refuses to resume a run with the file of another training, because the settings of the run would silently override those of
 * the file. If the file has the run's name, its env and algorithm must be the same; if it has another name, their settings
 * must be the same too. The user can skip this check with `--name` and the run's name.
 */
export const refuseOtherFile = Effect.fnUntraced(function* (input: RunFlags, training: LoadedTraining, run: string) {
  const saved = yield* readYaml(join(run, Layout.config))
  const name = nameIn(saved)
  if (name === undefined || Option.exists(input.name, (wanted) => isSameName(name, wanted))) return
  // If settings are missing in the file, they come from the run's config, so there is nothing to compare.
  const planned = yield* planOf(input, training)
  if (Option.isNone(planned)) return
  const isOfName = isSameName(name, nameOf(input)) || isSameName(name, planned.value.identity.name)
  // A sweep may have chosen env and algorithm with --population.
  if (isOfName && (yield* sweepCommandIn(run)) !== undefined) return
  const current = asSaved(toSnakeCase(planned.value.effective))
  const differences = isOfName ? diff(namesIn(saved), namesIn(current)) : diff(saved, current)
  const other = differences.find(({ key }) => definingSetting.test(key))
  if (other === undefined) return
  const message =
    `--resume ${run}: this is a run of ${name}, but ${input.file} is another training: ${other.key} is ` +
    `${display(other.left)} in the run and ${display(other.right)} in the file; give the run's own file, ` +
    `repeat the --set or --config that it was started with, or add --name ${name} if the file ${isOfName ? "is its own" : "was renamed"}`
  return yield* usageError(message)
})
