/** Deletes the folder of a run. */
import { Effect, FileSystem, Path } from "effect"
import type { PlatformFailure } from "../../base/files/files.ts"
import { entryOf } from "../find/RunEntry.ts"
import * as Layout from "../Layout.ts"
import { holdLock, type Owner, refuseHeld } from "../store/lock.ts"
import { RunStoreError, runStoreError } from "../store/RunStoreError.ts"

/** A run has one of these files. Other folders may also have a file of such a name. */
const files: ReadonlyArray<string> = [Layout.config, Layout.returns, Layout.batchRollouts, Layout.batchOutcomes]

/** The number of folders above a run in which the lock of its sweep may be. */
const levels = 3

/**
 * Tells whether a folder was certainly made for a run: its path has the layout of the results folder, or a process has opened it to
 * write a run. A `config.yaml` alone is no proof, because it may be anybody's.
 */
const isOfRun = (directory: string, names: ReadonlyArray<string>): boolean =>
  entryOf(directory.replaceAll("\\", "/"))?.name !== undefined || names.includes(Layout.lease)

/**
 * Deletes the run in a folder: everything inside of the folder and the folder itself, but nothing that a link in it points to.
 * Fails if the folder is not certainly a run, is a link, or contains the current directory, and if a living process writes the
 * run, its trainer or its sweep.
 *
 * The folder is renamed first, so a run that is only half deleted is never listed.
 */
export const deleteRun = Effect.fnUntraced(function* (
  typed: string,
  owner: Owner,
): Effect.fn.Return<void, RunStoreError, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const directory = path.resolve(typed)
  const refused = (problem: string) =>
    new RunStoreError({ path: typed, operation: "delete", message: `${typed}: ${problem}` })
  const failing = Effect.mapError((error: PlatformFailure) => runStoreError("delete", typed, error))
  if (yield* Effect.isSuccess(fs.readLink(directory)))
    return yield* refused("expected the folder of a run, found a link; name the folder that it points to")
  const names = yield* failing(fs.readDirectory(directory))
  if (!files.some((name) => names.includes(name))) return yield* refused(`it is not a run (it has no ${Layout.config})`)
  if (!isOfRun(directory, names)) {
    const made = `it has no ${Layout.lease}, and its path does not have the layout of a results folder`
    return yield* refused(
      `nothing shows that this folder was made for a run (${made}); if it is one, remove it yourself`,
    )
  }
  const [real, current] = yield* failing(Effect.all([fs.realPath(directory), fs.realPath(path.resolve("."))]))
  const below = path.relative(real, current)
  if (!path.isAbsolute(below) && below.split(path.sep)[0] !== "..")
    return yield* refused("the current directory is in this folder; go to another one first")
  for (const child of names.filter(Layout.isChildName))
    yield* refuseHeld(path.join(directory, child, Layout.lock), owner)
  let above = directory
  for (let level = 0; level < levels; level++) {
    above = path.dirname(above)
    yield* refuseHeld(path.join(above, Layout.sweepLock), owner)
  }
  if (Layout.isChildName(path.basename(directory)))
    yield* refuseHeld(path.join(path.dirname(directory), Layout.lock), owner)
  yield* Effect.scoped(
    Effect.gen(function* () {
      // From here on, no other process can resume the run.
      yield* holdLock(path.join(directory, Layout.lock), owner)
      const aside = path.join(path.dirname(directory), `.${path.basename(directory)}.${crypto.randomUUID()}.tmp`)
      yield* failing(fs.rename(directory, aside))
      yield* failing(fs.remove(aside, { recursive: true, force: true }))
    }),
  ).pipe(Effect.uninterruptible)
})
