/**
 * Finds the finished trainings that the user named, in groups of runs that differ only in their seeds, for export and
 * compare.
 */
import { dirname, join, resolve } from "node:path"
import { Effect, Option } from "effect"
import { exists } from "../../base/files/files.ts"
import { findRuns } from "../../run/find/find-node.ts"
import { entryOf, type RunEntry, unplacedEntry } from "../../run/find/RunEntry.ts"
import { derivedName, isChildName } from "../../run/identifier.ts"
import * as Layout from "../../run/Layout.ts"
import { diskSource, silentSource } from "../../run/read/disk-node.ts"
import { over } from "../../run/RunReader.ts"
import { findRun, printRun, readRun, trainings, type UsableRun, warn } from "./findRun.ts"
import { usageError } from "./output/output.ts"

/** Makes the `RunReader` of a run, which reads facts from the run's files and reports damaged ones on stderr. */
export const openRun = over(diskSource(warn))

/** Finished runs that differ only in their seeds. */
export interface RunGroup {
  /** A text that is equal for all runs of the group, and for no other group of the same argument. */
  readonly key: string
  readonly runs: ReadonlyArray<RunEntry>
}

/** The depth to which folders are searched for runs: the depth of a trainer's run below a results folder. */
const mostDepth = 5

/**
 * Returns the finished trainings that one argument names, in their groups. The argument can be the folder of a run, a folder
 * with runs in it, `latest`, or a part of a path that only runs of one group have.
 */
export const groupsNamed = Effect.fnUntraced(function* (typed: string, resultsDir: string) {
  const entries = (yield* exists(typed)) ? yield* finishedIn(typed, mostDepth) : yield* finishedWith(typed, resultsDir)
  if (entries.length === 0) {
    return yield* usageError(`${typed}: expected a finished run, found no ${Layout.returns}`)
  }
  return [...Map.groupBy(entries, keyOf)].map(([key, runs]): RunGroup => ({ key, runs }))
})

/**
 * Returns the key of a run's group. Runs with equal names and variables differ only in their seeds; other runs are in one
 * group if they are in one folder.
 */
const keyOf = ({ path, name, population }: RunEntry): string =>
  name === undefined ? dirname(resolve(path)) : JSON.stringify([name, population])

/** Returns the folder itself if it is a finished run, otherwise the finished runs below it. */
const finishedIn = Effect.fnUntraced(function* (
  folder: string,
  depth: number,
): Effect.fn.Return<ReadonlyArray<RunEntry>> {
  const entry = entryOf(folder, resolve(folder).replaceAll("\\", "/")) ?? unplacedEntry(folder)
  const names = yield* silentSource.list(folder)
  if (names.includes(Layout.returns)) return [entry]
  if (depth === 0) return []
  // The folder of a run contains no other runs, unless it is the folder of a trainer.
  const isRun = names.includes(Layout.config)
  const inside = (yield* silentSource.folders(folder)).filter((name) => !isRun || isChildName(name))
  return (yield* Effect.forEach(inside, (name) => finishedIn(join(folder, name), depth - 1))).flat()
})

const finishedTrainings: UsableRun = {
  noun: "a finished training",
  isUsable: Effect.fnUntraced(function* (entry, read = readRun) {
    return (yield* trainings.isUsable(entry, read)) && (yield* read(entry).isFinished)
  }),
}

/**
 * Returns the finished trainings that `latest` or a part of a path names: all runs that the part fits if they are of one
 * group, else the one run that `findRun` finds, or none if it is not finished. `latest` is the newest finished one.
 */
const finishedWith = Effect.fnUntraced(function* (typed: string, resultsDir: string) {
  if (typed !== "latest") {
    const part = derivedName(typed.replace(/\/+$/, ""))
    const named = (yield* findRuns(resultsDir, silentSource)).filter(({ path }) => derivedName(path).includes(part))
    const finished = yield* Effect.filter(named, (entry) => over(silentSource)(entry).isFinished)
    const usable = yield* Effect.filter(finished, (entry) => trainings.isUsable(entry))
    if (usable.length > 1 && new Set(usable.map(keyOf)).size === 1) return usable
  }
  const usable = typed === "latest" ? finishedTrainings : trainings
  const entry = yield* findRun(typed, { folders: [resultsDir], usable })
  yield* printRun(Option.some(typed), entry.path)
  return (yield* over(silentSource)(entry).isFinished) ? [entry] : []
})

/** The facts whose values are clear without the fact's name before them. */
const selfExplaining: ReadonlySet<string> = new Set(["name", "algorithm", "environment", "agent", "commit", "time"])

/**
 * Returns a short name for each group of runs: the part of its name and variables in which the groups differ. If that is not
 * enough, its commit and time are added; if that is not enough either, the name is its path.
 */
export const labelsOf = (groups: ReadonlyArray<RunGroup>): ReadonlyArray<string> => {
  const facts = groups.map(
    ({ runs: [{ name = "", population, commit = "", time = "" }] }) =>
      new Map(Object.entries({ name, ...population, commit, time })),
  )
  const keys = [...new Set(facts.flatMap((one) => [...one.keys()]))]
  const varying = keys.filter((key) => new Set(facts.map((one) => one.get(key))).size > 1)
  for (const leftOut of [["commit", "time"], ["time"], []]) {
    const used = varying.filter((key) => !leftOut.includes(key))
    const labels = facts.map((one) => used.flatMap((key) => labelOf(key, one.get(key) ?? "")).join(" · "))
    if (labels.every((label) => label !== "") && new Set(labels).size === labels.length) return labels
  }
  return distinctParts(groups.map(({ runs }) => (runs.length > 1 ? dirname(runs[0].path) : runs[0].path)))
}

const labelOf = (key: string, value: string): ReadonlyArray<string> =>
  value === "" ? [] : [selfExplaining.has(key) ? value : `${key}=${value}`]

/** Removes the folders at the beginning and at the end that all paths have in common. */
const distinctParts = (paths: ReadonlyArray<string>): ReadonlyArray<string> => {
  const parts = paths.map((path) => path.split("/").filter((part) => part !== ""))
  const shortest = Math.min(...parts.map(({ length }) => length)) - 1
  const isCommon = (at: number): boolean => parts.every((some) => some.at(at) === parts[0].at(at))
  let [start, end] = [0, 0]
  while (start < shortest && isCommon(start)) start++
  while (start + end < shortest && isCommon(-1 - end)) end++
  return parts.map((some) => some.slice(start, some.length - end).join("/"))
}
