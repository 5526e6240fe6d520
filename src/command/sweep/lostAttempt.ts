/**
 * Finds the files that a lost worker left of a run, and copies them into the folder of a new attempt, where the run is
 * resumed. They are copied and not moved, because the lost worker may only be frozen, and may later continue to write.
 */
import { cp } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect, type FileSystem, type Path } from "effect"
import { exists, makeFolder, namesIn } from "../../base/files/files.ts"
import * as Layout from "../../run/Layout.ts"

/** An attempt at a run of a sweep. */
interface SweepAttempt {
  /** The folder with the attempts at all runs. */
  readonly folder: string
  /** The prefix of the names of this sweep's attempts. */
  readonly sweep: string
  /** The path of the run's folder below the folder of an attempt. */
  readonly path: string
}

/** Returns the folder of the unfinished run with the newest checkpoint among the attempts; undefined if there is none. */
export const newestLost = Effect.fnUntraced(function* ({ folder, sweep, path }: SweepAttempt) {
  let newest: { readonly run: string; readonly count: number } | undefined
  for (const name of (yield* namesIn(folder)).filter((name) => name.startsWith(sweep))) {
    const run = join(folder, name, path)
    // This worker was lost after the run was finished and before it was published; metrics.json may then contain either path.
    if (yield* exists(join(run, Layout.returns))) continue
    for (const checkpoint of yield* namesIn(join(run, Layout.checkpoints))) {
      const count = Layout.checkpointOf(checkpoint)?.count ?? 0
      if (count > (newest?.count ?? 0)) newest = { run, count }
    }
  }
  return newest?.run
})

/**
 * Copies the run that a lost worker left, without the files that describe its writer (`run.lock`, `run.lease`). Returns
 * whether that succeeded: a worker that is working again may remove files during the copy.
 */
export const copyLost = (run: string, to: string): Effect.Effect<boolean, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    yield* makeFolder(dirname(to))
    const names = (yield* namesIn(run)).filter((name) => !Layout.isOfWriter(name))
    // Checkpoints are copied first: the logs must reach at least as far as the newest checkpoint, and may reach further.
    const ordered = [Layout.checkpoints, ...names.filter((name) => name !== Layout.checkpoints)]
    for (const name of ordered) {
      yield* Effect.tryPromise(() => cp(join(run, name), join(to, name), { recursive: true, verbatimSymlinks: true }))
    }
  }).pipe(Effect.isSuccess)
