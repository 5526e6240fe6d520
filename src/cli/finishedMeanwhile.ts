import { statSync } from "node:fs"
import { join } from "node:path"
import { Cause, Effect, Option } from "effect"
import type { RunResult } from "../train/RunResult.ts"
import { readFinished } from "./sweep/child.ts"

/** A run whose folder was opened, and when it was finished before that. */
export interface Opened {
  readonly directory: string
  readonly finishedAt: number | undefined
}

/** When `return.json` was written, which says that a run is finished. */
export const finishedAt = (directory: string): number | undefined =>
  statSync(join(directory, "return.json"), { throwIfNoEntry: false })?.mtimeMs

/** What is told of how a training ended. */
export interface Told {
  readonly finished: (result: RunResult) => Effect.Effect<void>
  readonly interrupted: Effect.Effect<void>
}

/**
 * Tells how a training ended. One that a signal stops after its run was finished gives that run's result, and the process
 * then ends as if there had been no signal.
 */
export const unlessFinished = <E, R>(
  training: Effect.Effect<RunResult, E, R>,
  opened: () => Opened | undefined,
  { finished, interrupted }: Told,
): Effect.Effect<void, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    restore(training).pipe(
      Effect.catchCause((cause) => {
        if (!Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
        const run = opened()
        const at = run === undefined ? undefined : finishedAt(run.directory)
        const isFinished = run !== undefined && at !== undefined && at !== run.finishedAt
        const result = isFinished ? Effect.option(readFinished(run.directory)) : Effect.succeedNone
        return Effect.flatMap(result, (found) => {
          if (Option.isNone(found)) return Effect.andThen(interrupted, Effect.failCause(cause))
          process.exitCode = 0
          return Effect.succeed(found.value.result)
        })
      }),
      Effect.flatMap(finished),
    ),
  )
