/**
 * Finds the runs in a folder, or in a bucket, by the names of folders and files, for the commands. It reads no files of runs.
 */
import { join, resolve, sep } from "node:path"
import { Effect } from "effect"
import { dateOf, fromFlatPath } from "../identifier.ts"
import type { FileSource } from "../read/FileSource.ts"
import * as Layout from "../Layout.ts"
import { entryOf, mayBeTrainer, type RunEntry } from "./RunEntry.ts"

/** The number of folders between a results folder and a run in RLtools' layout, including the run's own folder. */
const depth = 4

/** Appends a name to a path or to an address such as `s3://runs/team`. */
const below = (folder: string, name: string): string => (isAddress(folder) ? `${folder}/${name}` : join(folder, name))

const isAddress = (folder: string): boolean => /^\w+:\/\//.test(folder)

const isTime = (name: string): boolean => dateOf(name) !== undefined

/**
 * Finds all runs in a results folder or a folder inside it (`results/2026-01-31_12-00-00`), and runs of the flat layout in
 * their folders (`outputs/my_experiment/20260131_120000`; `identifier.ts` defines the layouts). Skips other folders. A
 * multi-run trainer is replaced by its runs as soon as one of them has begun. Runs of a trainer that have not begun are left
 * out, except those for which `isWaiting` returns true.
 */
export const findRuns = Effect.fnUntraced(function* (
  folder: string,
  { folders, list }: Pick<FileSource, "folders" | "list">,
  isWaiting: (run: string) => Effect.Effect<boolean> = () => Effect.succeed(false),
): Effect.fn.Return<ReadonlyArray<RunEntry>> {
  /** Returns the runs of a trainer, or the run itself. */
  const expanded = Effect.fnUntraced(function* (entry: RunEntry, full: string) {
    if (!mayBeTrainer(entry)) return [entry]
    const children: Array<RunEntry> = []
    let isBegun = false
    for (const name of (yield* folders(entry.path)).filter(Layout.isChildName)) {
      const child = entryOf(below(entry.path, name), `${full}/${name}`)
      if (child === undefined) continue
      const hasBegun = (yield* list(child.path)).includes(Layout.config)
      isBegun ||= hasBegun
      if (hasBegun || (yield* isWaiting(child.path))) children.push(child)
    }
    return isBegun ? children : [entry]
  })

  const absolute = isAddress(folder) ? folder.replace(/\/+$/, "") : resolve(folder).replaceAll(sep, "/")
  const lastNames = absolute.split("/").slice(1 - depth)
  const timeIndex = lastNames.findLastIndex(isTime)
  const runs: Array<RunEntry> = []
  const visit = Effect.fnUntraced(function* (path: string, full: string, level: number): Effect.fn.Return<void> {
    // `level` is the number of folders between `path` and the results folder.
    const names = yield* folders(path)
    const nested: Array<string> = []
    const experiments: Array<string> = []
    for (const name of names) {
      const entry = entryOf(below(path, name), `${full}/${name}`)
      if (entry !== undefined) for (const run of yield* expanded(entry, `${full}/${name}`)) runs.push(run)
      else if (level > 0 ? level < depth - 1 : isTime(name)) nested.push(name)
      else if (level === 0 && !name.startsWith(".")) experiments.push(name)
    }
    for (const name of experiments) {
      const flat = (yield* folders(below(path, name))).filter((run) => fromFlatPath(run) !== undefined)
      for (const run of flat) {
        const whole = `${full}/${name}/${run}`
        const entry = entryOf(below(below(path, name), run), whole)
        if (entry !== undefined) for (const run of yield* expanded(entry, whole)) runs.push(run)
      }
    }
    yield* Effect.forEach(nested, (name) => visit(below(path, name), `${full}/${name}`, level + 1), {
      concurrency: 16,
      discard: true,
    })
  })
  const top = isAddress(folder) ? absolute : folder
  const ownEntry = entryOf(top, absolute)
  if (ownEntry !== undefined) return yield* expanded(ownEntry, absolute)
  yield* visit(top, absolute, timeIndex < 0 ? 0 : lastNames.length - timeIndex)
  return runs
})
