/**
 * Finds what a lost worker left of a run, and copies it into the folder of a new attempt, so that the run is resumed there. It
 * is copied and not moved, because the lost worker may only be frozen, and go on writing when it comes back.
 */
import { cp } from "node:fs/promises"
import { dirname, join } from "node:path"
import { Effect, type FileSystem, type Path } from "effect"
import { exists, makeFolder, namesIn } from "../../base/config/files.ts"
import * as Layout from "../../run/Layout.ts"

/** An attempt at a run of a sweep. */
interface SweepAttempt {
  /** The folder with the attempts at all runs. */
  readonly folder: string
  /** The beginning of the names of the sweep's attempts. */
  readonly sweep: string
  /** The path of the run's folder below that of an attempt. */
  readonly path: string
}

/** Returns the folder of the unfinished run with the newest checkpoint among the attempts; undefined if there is none. */
export const newestLost = Effect.fnUntraced(function* ({ folder, sweep, path }: SweepAttempt) {
  let newest: { readonly run: string; readonly count: number } | undefined
  for (const name of (yield* namesIn(folder)).filter((name) => name.startsWith(sweep))) {
    const run = join(folder, name, path)
    // The worker of a finished run was lost before it published the run; then metrics.json may have either path.
    if (yield* exists(join(run, Layout.returns))) continue
    for (const checkpoint of yield* namesIn(join(run, Layout.checkpoints))) {
      const count = Layout.checkpointOf(checkpoint)?.count ?? 0
      if (count > (newest?.count ?? 0)) newest = { run, count }
    }
  }
  return newest?.run
})

/** Copies a lost run, without its lock. Returns whether it succeeded: a worker that came back may remove files meanwhile. */
export const copyLost = (run: string, to: string): Effect.Effect<boolean, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    yield* makeFolder(dirname(to))
    const names = (yield* namesIn(run)).filter((name) => !Layout.isOfWriter(name))
    // Checkpoints first: logs must reach at least as far as the newest checkpoint, and may reach further.
    const ordered = [Layout.checkpoints, ...names.filter((name) => name !== Layout.checkpoints)]
    for (const name of ordered) {
      yield* Effect.tryPromise(() => cp(join(run, name), join(to, name), { recursive: true, verbatimSymlinks: true }))
    }
  }).pipe(Effect.isSuccess)
