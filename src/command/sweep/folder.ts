/** Makes the folder of a new sweep, or finds the folder of the sweep to resume and checks its settings. */
import { basename, dirname, join } from "node:path"
import { Clock, Effect, FileSystem } from "effect"
import { display, isPlain, toSnakeCase } from "../../base/config/Config.ts"
import { exists, makeFolder, namesIn, systemMessage } from "../../base/files/files.ts"
import { asSaved } from "../../base/config/yaml.ts"
import { diff } from "../../run/find/diff.ts"
import { findRuns } from "../../run/find/find-node.ts"
import { dateOf, fromPath, timeOf } from "../../run/identifier.ts"
import * as Layout from "../../run/Layout.ts"
import { silentSource } from "../../run/read/disk-node.ts"
import { RunStoreError, runStoreError } from "../../run/store/RunStoreError.ts"
import { readRunIn } from "../cli/findRun.ts"
import { usageError } from "../cli/output/output.ts"
import { readYaml } from "../cli/userCode/yamlFile.ts"
import { SweepPlace } from "./place.ts"
import { keyOf, type PlannedRun } from "./plan.ts"

/** The folder of a sweep, `{resultsDir}/{time}`, and the progress of each planned run in it. */
export interface SweepFolder {
  readonly resultsDir: string
  readonly time: string
  /** The planned runs in their order; undefined for each run that hasn't started. */
  readonly runs: ReadonlyArray<StartedRun | undefined>
}

export interface StartedRun {
  readonly directory: string
  /** `empty` means that the run was stopped before it wrote its config. */
  readonly state: "finished" | "unfinished" | "empty"
}

/**
 * Makes the folder of a new sweep. Its name is the current time in seconds; if that folder already exists, the first later
 * second that is free.
 */
export const newFolder = Effect.fnUntraced(function* (resultsDir: string, runs: ReadonlyArray<PlannedRun>) {
  const fs = yield* FileSystem.FileSystem
  yield* Effect.mapError(makeFolder(resultsDir), (error) => runStoreError("create", resultsDir, error))
  const from = yield* Clock.currentTimeMillis
  const { isTaken } = yield* SweepPlace
  for (let second = 0; ; second++) {
    const time = timeOf(new Date(from + second * 1000))
    const path = join(resultsDir, time)
    const isNew = yield* fs.makeDirectory(path).pipe(
      Effect.as(true),
      Effect.catchIf(
        (error) => error.reason._tag === "AlreadyExists",
        () => Effect.succeed(false),
      ),
      Effect.mapError((error) => new RunStoreError({ path, operation: "create", message: systemMessage(error) })),
    )
    if (isNew && !(yield* isTaken(time))) return { resultsDir, time, runs: runs.map(() => undefined) }
  }
})

/**
 * Returns the folder of the sweep to resume. `latest` means the newest sweep in which some of the planned runs (`runs`) are
 * unfinished.
 */
export const earlierFolder = Effect.fnUntraced(function* (
  wanted: string,
  resultsDir: string,
  runs: ReadonlyArray<PlannedRun>,
) {
  if (wanted !== "latest") {
    const path = yield* pathOf(wanted, resultsDir)
    const folder = yield* inspect(dirname(path), basename(path), runs)
    // A sweep that was stopped before its first run started has an empty folder.
    if (folder.runs.some((run) => run !== undefined) || folder.others === 0) return folder
    return yield* usageError(`--resume ${wanted}: ${path} has none of these runs, but others`)
  }
  const times = (yield* namesIn(resultsDir)).filter((name) => dateOf(name) !== undefined)
  // The newest sweep that is finished, or that was stopped before its first run started; used if none is unfinished.
  let fallback: SweepFolder | undefined
  for (const time of times.toReversed()) {
    const folder = yield* inspect(resultsDir, time, runs)
    const isUnstarted = folder.runs.every((run) => run === undefined)
    if (isUnstarted && !(folder.others === 0 && (yield* isEmpty(join(resultsDir, time))))) continue
    if (!isUnstarted && folder.runs.some((run) => run?.state !== "finished")) return folder
    fallback ??= folder
  }
  if (fallback !== undefined) return fallback
  const message = `--resume latest: there is no sweep of ${runs[0].identity.name} with any of these runs in ${resultsDir}`
  return yield* usageError(message)
})

/** Returns the path of a sweep's folder that the user named by its path or by a part of it. */
const pathOf = Effect.fnUntraced(function* (wanted: string, resultsDir: string) {
  if (dateOf(basename(wanted)) !== undefined && (yield* exists(wanted))) return wanted
  const paths = (yield* namesIn(resultsDir))
    .filter((name) => dateOf(name) !== undefined && join(resultsDir, name).includes(wanted))
    .map((name) => join(resultsDir, name))
  if (paths.length === 1) return paths[0]
  const problem =
    paths.length === 0
      ? "expected the folder of a sweep, which is named by its time, or a part of its path"
      : `${paths.length} folders have this in their paths: ${paths.slice(0, 3).join(", ")}; write more of one of them`
  return yield* usageError(`--resume ${wanted}: ${problem}`)
})

/** Tells whether a folder is empty, or holds only the lock file of a sweep that was killed. */
const isEmpty = (directory: string) =>
  Effect.map(namesIn(directory), (names) => names.every((name) => name === Layout.sweepLock))

/** Finds the planned runs in the folder of a sweep, and counts the runs there that are not planned. */
const inspect = Effect.fnUntraced(function* (resultsDir: string, time: string, planned: ReadonlyArray<PlannedRun>) {
  const indexes = new Map(planned.map(({ identity }, index) => [keyOf(identity), index]))
  const runs: Array<StartedRun | undefined> = planned.map(() => undefined)
  let others = 0
  for (const { path: directory } of yield* findRuns(join(resultsDir, time), silentSource)) {
    const identity = fromPath(directory)
    if (identity === undefined) continue
    const index = indexes.get(keyOf(identity))
    if (index === undefined) others++
    else runs[index] = moreAdvanced(runs[index], { directory, state: yield* stateOf(directory) })
  }
  return { resultsDir, time, runs, others }
})

/** The states of a run, the most advanced first. */
const byProgress = ["finished", "unfinished", "empty"]

/**
 * Returns the folder in which a run is more advanced. A run has two folders if its sweep was resumed after a commit, because
 * the path contains the commit.
 */
const moreAdvanced = (one: StartedRun | undefined, other: StartedRun): StartedRun =>
  one === undefined || byProgress.indexOf(other.state) < byProgress.indexOf(one.state) ? other : one

/** Returns the progress of the run in an existing folder. */
export const stateOf = Effect.fnUntraced(function* (directory: string): Effect.fn.Return<StartedRun["state"]> {
  const run = readRunIn(directory)
  if (yield* run.isFinished) return "finished"
  return (yield* run.configText) === undefined ? "empty" : "unfinished"
})

/**
 * Matches the settings that don't change the results, because they only decide how results are computed and when they are
 * saved.
 */
export const irrelevant = /^(workers|validation\.workers|checkpoint|description)(\.|$)/

/**
 * Refuses to resume a sweep with other settings, because its runs would then differ in more than the swept settings. Returns
 * the folder. A finished run in it that has fewer steps than planned counts as unfinished.
 */
export const withSameSettings = Effect.fnUntraced(function* (folder: SweepFolder, planned: ReadonlyArray<PlannedRun>) {
  const runs = yield* Effect.forEach(folder.runs, (run, index) =>
    run === undefined ? Effect.succeed(run) : checkStarted(run, planned[index]),
  )
  return { ...folder, runs }
})

/** Returns the run if its saved config and the planned config have the same settings; fails if they differ. */
export const checkStarted = Effect.fnUntraced(function* (run: StartedRun, { label, effective }: PlannedRun) {
  if (run.state === "empty") return run
  const file = join(run.directory, Layout.config)
  // A finished run whose config was deleted can't be checked.
  if (!(yield* exists(file))) return run
  const saved = yield* readYaml(file)
  const current = asSaved(toSnakeCase(effective))
  const [before, after] = [totalSteps(saved), totalSteps(current)]
  const isLonger = before !== undefined && after !== undefined && after > before
  const other = diff(saved, current).find(
    ({ key }) => !irrelevant.test(key) && !(key === "total_steps" && (isLonger || run.state === "unfinished")),
  )
  if (other === undefined) return run.state === "finished" && isLonger ? { ...run, state: "unfinished" as const } : run
  const message =
    `--resume: ${label} was ${run.state === "finished" ? "finished" : "started"} with ${other.key} = ` +
    `${display(other.left)}, and these settings have ${display(other.right)}: ${run.directory}; ` +
    "use the same settings, or start a new sweep without --resume"
  return yield* usageError(message)
})

const totalSteps = (config: unknown): number | undefined =>
  isPlain(config) && typeof config.total_steps === "number" ? config.total_steps : undefined
