import { statSync } from "node:fs"
import { join } from "node:path"
import { Cause, Effect, Option } from "effect"
import * as Layout from "../../run/Layout.ts"

/** A run whose folder was opened, and when it was finished before that. */
export interface Opened {
  readonly directory: string
  readonly finishedAt: number | undefined
}

/** When `return.json` was written, which says that a run is finished. */
export const finishedAt = (directory: string): number | undefined =>
  statSync(join(directory, Layout.returns), { throwIfNoEntry: false })?.mtimeMs

/** How the end of a run is reported, and how its result is read from its folder. */
export interface Ending<A> {
  readonly finished: (result: A) => Effect.Effect<void>
  readonly interrupted: Effect.Effect<void>
  readonly read: (directory: string) => Effect.Effect<A, unknown>
}

/**
 * Reports how a training or an evaluation ended. Where a signal stops it after its run was finished, this gives that run's
 * result, and the process then ends as if there had been no signal.
 */
export const unlessFinished = <A, E, R>(
  run: Effect.Effect<A, E, R>,
  opened: () => Opened | undefined,
  { finished, interrupted, read }: Ending<A>,
): Effect.Effect<void, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    restore(run).pipe(
      Effect.catchCause((cause) => {
        if (!Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
        const folder = opened()
        const at = folder === undefined ? undefined : finishedAt(folder.directory)
        const isFinished = folder !== undefined && at !== undefined && at !== folder.finishedAt
        const result = isFinished ? Effect.option(read(folder.directory)) : Effect.succeedNone
        return Effect.flatMap(result, (found) => {
          if (Option.isNone(found)) return Effect.andThen(interrupted, Effect.failCause(cause))
          process.exitCode = 0
          return Effect.succeed(found.value)
        })
      }),
      Effect.flatMap(finished),
    ),
  )
