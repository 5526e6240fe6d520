import { existsSync } from "node:fs"
import { mkdir, readdir } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Clock, Effect } from "effect"
import { makeFolder } from "../../config/files.ts"
import { messageOf } from "../../config/text.ts"
import { dateOf, fromPath, timeOf } from "../../run/identifier.ts"
import { RunStoreError, runStoreError } from "../../run/store/RunStoreError.ts"
import { UsageError } from "../UsageError.ts"
import { keyOf, type PlannedRun } from "./plan.ts"
import * as Layout from "../../run/Layout.ts"

/** Where a sweep's runs are, and how far each of them is. */
export interface SweepFolder {
  readonly resultsDir: string
  readonly time: string
  /** What there is of each planned run; nothing of those that have not begun. */
  readonly found: ReadonlyArray<FoundRun | undefined>
}

export interface FoundRun {
  readonly directory: string
  /** `empty` was stopped before it had written even its config. */
  readonly state: "finished" | "begun" | "empty"
}

/** A folder for a new sweep, of this second or the first one after it that no other run has. */
export const newFolder = Effect.fnUntraced(function* (
  resultsDir: string,
  runs: ReadonlyArray<PlannedRun>,
): Effect.fn.Return<SweepFolder, RunStoreError> {
  yield* makeFolder(resultsDir).pipe(
    Effect.mapError((error) => runStoreError("create", resultsDir, error)),
    Effect.provide([NodeFileSystem.layer, NodePath.layer]),
  )
  const from = yield* Clock.currentTimeMillis
  for (let second = 0; ; second++) {
    const time = timeOf(new Date(from + second * 1000))
    const path = join(resultsDir, time)
    const isNew = yield* Effect.tryPromise({
      try: async () => {
        return await mkdir(path).then(
          () => true,
          (error: NodeJS.ErrnoException) => {
            if (error.code === "EEXIST") return false
            throw error
          },
        )
      },
      catch: (error) => new RunStoreError({ path, operation: "create", message: messageOf(error) }),
    })
    if (isNew) return { resultsDir, time, found: runs.map(() => undefined) }
  }
})

/** The folder of an earlier sweep to go on with: a given one, or the newest that has some of these runs unfinished. */
export const earlierFolder = Effect.fnUntraced(function* (
  wanted: string,
  resultsDir: string,
  runs: ReadonlyArray<PlannedRun>,
): Effect.fn.Return<SweepFolder, UsageError> {
  if (wanted !== "latest") {
    const place = yield* placeOf(wanted, resultsDir)
    const folder = yield* look(dirname(place), basename(place), runs)
    // One that was stopped at once is empty.
    if (folder.found.some((one) => one !== undefined) || folder.others === 0) return folder
    return yield* new UsageError({ message: `--resume ${wanted}: ${place} has none of these runs, but others` })
  }
  const times = (yield* namesIn(resultsDir)).filter((name) => dateOf(name) !== undefined)
  /** The newest that is finished, or was stopped before its first run began: nobody can tell what it was to hold. */
  let other: SweepFolder | undefined
  for (const time of times.toSorted().toReversed()) {
    const folder = yield* look(resultsDir, time, runs)
    const isNew = folder.found.every((one) => one === undefined)
    if (isNew && !(folder.others === 0 && (yield* isEmpty(join(resultsDir, time))))) continue
    if (!isNew && folder.found.some((one) => one?.state !== "finished")) return folder
    other ??= folder
  }
  if (other !== undefined) return other
  const message = `--resume latest: there is no sweep of ${runs[0].identity.name} with any of these runs in ${resultsDir}`
  return yield* new UsageError({ message })
})

/** The folder of a sweep, or the only one whose path has the wanted text in it. */
const placeOf = Effect.fnUntraced(function* (wanted: string, resultsDir: string): Effect.fn.Return<string, UsageError> {
  if (existsSync(wanted) && dateOf(basename(wanted)) !== undefined) return wanted
  const places = (yield* namesIn(resultsDir))
    .filter((name) => dateOf(name) !== undefined && join(resultsDir, name).includes(wanted))
    .map((name) => join(resultsDir, name))
  if (places.length === 1) return places[0]
  const problem =
    places.length === 0
      ? "expected the folder of a sweep, which is named by its time, or a part of its path"
      : `${places.length} folders have this in their paths: ${places.slice(0, 3).join(", ")}; write more of one of them`
  return yield* new UsageError({ message: `--resume ${wanted}: ${problem}` })
})

/** Whether a folder holds nothing but the lock of a sweep, which outlives one that was killed. */
const isEmpty = (directory: string): Effect.Effect<boolean> =>
  Effect.map(namesIn(directory), (names) => names.every((name) => name === Layout.sweepLock))

const look = Effect.fnUntraced(function* (
  resultsDir: string,
  time: string,
  runs: ReadonlyArray<PlannedRun>,
): Effect.fn.Return<SweepFolder & { readonly others: number }> {
  const wanted = new Map(runs.map(({ identity }, index) => [keyOf(identity), index]))
  const found: Array<FoundRun | undefined> = runs.map(() => undefined)
  let others = 0
  for (const heading of yield* namesIn(join(resultsDir, time)))
    for (const config of yield* namesIn(join(resultsDir, time, heading)))
      for (const seed of yield* namesIn(join(resultsDir, time, heading, config))) {
        const directory = join(resultsDir, time, heading, config, seed)
        const identity = fromPath(directory)
        if (identity === undefined) continue
        const index = wanted.get(keyOf(identity))
        if (index === undefined) others++
        else found[index] = further(found[index], { directory, state: stateOf(directory) })
      }
  return { resultsDir, time, found, others }
})

const order = ["finished", "begun", "empty"]

/** A sweep that went on with other code has its runs under two commits; one of both may be left from a crash. */
const further = (one: FoundRun | undefined, other: FoundRun): FoundRun =>
  one === undefined || order.indexOf(other.state) < order.indexOf(one.state) ? other : one

const stateOf = (directory: string): FoundRun["state"] =>
  existsSync(join(directory, Layout.returns))
    ? "finished"
    : existsSync(join(directory, Layout.config))
      ? "begun"
      : "empty"

const namesIn = (directory: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.promise(() => readdir(directory).catch(() => []))
