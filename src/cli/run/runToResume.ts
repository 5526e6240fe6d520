import { existsSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Option } from "effect"
import { display, isPlain, type Plain, toSnakeCase } from "../../config/Config.ts"
import { mostBytes } from "../../config/files.ts"
import { readTextWithin } from "../../config/files-node.ts"
import { asSaved } from "../../config/yaml.ts"
import { isSameName } from "../../run/identifier.ts"
import { diff } from "../../run/find/diff.ts"
import { newestFirst } from "../../run/find/RunEntry.ts"
import { findRuns } from "../../run/find/find-node.ts"
import { silentSource } from "../../run/read/disk-node.ts"
import { ofKind, runToResumeAt } from "../findRun.ts"
import { type Given, nameOf } from "../flags.ts"
import { ownPlace, readYaml, type Training } from "../userCode/loadTraining.ts"
import { overridesOf } from "./overrides.ts"
import { UsageError } from "../UsageError.ts"
import * as Layout from "../../run/Layout.ts"

const trainings = ofKind("a training", "training", "agents")

/**
 * The folder of the run to resume. `latest` is the newest unfinished run of this name; where all of them are finished, it
 * is the newest of these, which only goes on with more steps.
 */
export const runToResume = Effect.fnUntraced(function* (
  given: Given,
  nameOfFile: string,
): Effect.fn.Return<string | undefined, UsageError> {
  if (Option.isNone(given.resume)) return undefined
  const wanted = given.resume.value
  if (existsSync(join(wanted, Layout.config))) return wanted
  const own = yield* ownPlace(given.file, yield* overridesOf(given, undefined))
  const { name = nameOfFile } = own
  const places = own.resultsDir === undefined ? [given.resultsDir] : [given.resultsDir, own.resultsDir]
  if (wanted !== "latest") return yield* runToResumeAt(wanted, { folders: places, usable: trainings })
  const runs = newestFirst((yield* Effect.forEach(places, runsIn)).flat())
  const ofThisName = runs.filter((run) => run.name !== undefined && isSameName(run.name, name))
  const newest = ofThisName.find((run) => !run.isFinished)
  if (newest !== undefined) {
    const command = yield* sweepCommand(newest.path)
    if (command === undefined) return newest.path
    const message = `--resume latest: the newest unfinished run, ${newest.path}, is part of a sweep; resume the sweep with: ${command}; or this run alone with --resume ${newest.path}`
    return yield* new UsageError({ message })
  }
  const finished = ofThisName.find(({ path }) => !existsSync(join(path, sweepFile)))
  if (finished !== undefined) return finished.path
  const other = runs.find((run) => !run.isFinished)
  const hint = other === undefined ? "" : `; the newest unfinished one is ${other.path}`
  const message = `--resume latest: there is no unfinished run named ${name} in ${places.join(" or ")}${hint}`
  return yield* new UsageError({ message })
})

/** A run that is one of a sweep has the sweep's command beside its files. */
const sweepFile = "sweep.txt"

export const noteSweep = (directory: string, command: string) =>
  Effect.tryPromise(() => writeFile(join(directory, sweepFile), `${command}\n`))

const sweepCommand = (directory: string): Effect.Effect<string | undefined> =>
  Effect.promise(() =>
    readTextWithin(join(directory, sweepFile), mostBytes.text).then(
      (text) => text.trim(),
      () => undefined,
    ),
  )

const nameIn = (config: unknown): string | undefined =>
  isPlain(config) && typeof config.name === "string" ? config.name : undefined

/** All that have a config, with their names, also where their paths don't say them. */
const runsIn = Effect.fnUntraced(function* (resultsDir: string) {
  const entries = yield* findRuns(resultsDir, silentSource)
  return yield* Effect.forEach(
    entries.filter(({ path }) => existsSync(join(path, Layout.config))),
    (entry) => {
      const isFinished = existsSync(join(entry.path, Layout.returns))
      if (entry.name !== undefined) return Effect.succeed({ ...entry, isFinished })
      return Effect.match(readYaml(join(entry.path, Layout.config)), {
        onFailure: () => ({ ...entry, isFinished, name: undefined }),
        onSuccess: (config) => ({ ...entry, isFinished, name: nameIn(config) }),
      })
    },
  )
})

/** The settings that say what is learnt, and who learns it; but for secrets. */
const ofTraining = /^(env|algorithm|agent|train_dataset)(\.|$)(?!.*api_?key)/

/** The names of env and algorithm, each a text by itself or beside its settings. */
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
 * Refuses to resume a run with a file that is not its own: the run's settings would silently override those of the file.
 * A file of the run's name must have its env and algorithm, one of another name all of their settings as well. `--name`
 * with the run's name says that the file is the run's own.
 */
export const refuseOtherFile = Effect.fnUntraced(function* (
  given: Given,
  training: Training,
  run: string,
): Effect.fn.Return<void, UsageError> {
  const then = yield* readYaml(join(run, Layout.config))
  const name = nameIn(then)
  if (name === undefined || Option.exists(given.name, (wanted) => isSameName(name, wanted))) return
  const { plannedOf } = yield* Effect.promise(() => import("../sweep/plan.ts"))
  const overrides = yield* overridesOf(given, undefined)
  // A file that can't be run by itself leaves all the rest to the run's config.
  const planned = yield* Effect.option(
    plannedOf(training, { overrides, source: given.file, name: nameOf(given), population: {} }),
  )
  if (Option.isNone(planned)) return
  const isOfName = isSameName(name, nameOf(given)) || isSameName(name, planned.value.identity.name)
  // A sweep may have set them by --population.
  const swept = isOfName ? yield* sweepCommand(run) : undefined
  const now = asSaved(toSnakeCase(planned.value.effective))
  const differences = isOfName ? diff(namesIn(then), namesIn(now)) : diff(then, now)
  const other = differences.find(({ key }) => ofTraining.test(key) && swept === undefined)
  if (other === undefined) return
  const message =
    `--resume ${run}: this is a run of ${name}, but ${given.file} is another training: ${other.key} is ` +
    `${display(other.left)} in the run and ${display(other.right)} in the file; give the run's own file, ` +
    `repeat the --set or --config that it was started with, or add --name ${name} if the file ${isOfName ? "is its own" : "was renamed"}`
  return yield* new UsageError({ message })
})
