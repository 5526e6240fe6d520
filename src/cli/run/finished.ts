/** Reads the results of finished runs, and reports how a run ended. */
import { join } from "node:path"
import { Cause, Effect, FileSystem, Option, type Schema } from "effect"
import { mostBytes, readRunText, statOf } from "../../config/files.ts"
import { unplacedEntry } from "../../run/find/RunEntry.ts"
import { parseMetrics } from "../../run/finishedResult.ts"
import * as Layout from "../../run/Layout.ts"
import { silentSource } from "../../run/read/disk-node.ts"
import * as RunReader from "../../run/RunReader.ts"
import type { RunResult } from "../../run/RunResult.ts"
import { AnyResult, toRunResult } from "../../run/RuntimeResult.ts"

/** The result of a finished run, and its learning curve. */
export interface Finished {
  readonly result: RunResult
  readonly curve: ReadonlyArray<{ readonly step: number; readonly value: number }>
}

/** Reads the result and the learning curve of a finished run from its folder, which may have been moved. */
export const readFinished = Effect.fnUntraced(function* (runDir: string) {
  const result = yield* readMetrics(runDir, AnyResult)
  return yield* withCurve({ ...toRunResult(result), runDir })
})

/** Adds the learning curve from the folder of a finished run to its result. */
export const withCurve = Effect.fnUntraced(function* (result: RunResult): Effect.fn.Return<Finished> {
  const curve = yield* open(unplacedEntry(result.runDir)).curve
  return { result, curve: curve.map(({ step, mean: value }) => ({ step, value })) }
})

const open = RunReader.over(silentSource)

/** Reads the digest of a finished run; undefined for an unfinished one. */
export const digestIn = Effect.fnUntraced(function* (path: string): Effect.fn.Return<string | undefined> {
  const run = open(unplacedEntry(path))
  const digest = (yield* run.isFinished) ? (yield* run.metrics)?.digest : undefined
  return typeof digest === "string" ? digest : undefined
})

/** Reads the keys of a run's `metrics.json` that the given Schema lists. */
export const readMetrics = Effect.fnUntraced(function* <A>(run: string, schema: Schema.Codec<A, unknown>) {
  return yield* parseMetrics(yield* readRunText(join(run, Layout.metrics), mostBytes.text), schema)
})

/** Returns the time at which a run was finished, from its `return.json`; undefined for an unfinished run. */
const finishedAt = (directory: string): Effect.Effect<number | undefined, never, FileSystem.FileSystem> =>
  Effect.map(statOf(join(directory, Layout.returns)), (stat) =>
    stat === undefined ? undefined : Option.getOrUndefined(stat.mtime)?.getTime(),
  )

/** The folder that a command has opened for its run. */
interface OpenedRun {
  /** Records the folder. Call this when the run store has opened it. */
  readonly onOpen: (directory: string) => Effect.Effect<void>
  /** Returns the folder; undefined before it is opened. */
  readonly directory: () => string | undefined
  /** Tells whether the run was finished after its folder was opened. */
  readonly wasFinished: Effect.Effect<boolean>
}

/** Makes an object that remembers the folder that a command opens, and whether that run was already finished. */
export const openedRun: Effect.Effect<OpenedRun, never, FileSystem.FileSystem> = Effect.map(
  FileSystem.FileSystem,
  (fs) => {
    let opened: { readonly directory: string; readonly finishedAt: number | undefined } | undefined
    const timeOf = (directory: string) => Effect.provideService(finishedAt(directory), FileSystem.FileSystem, fs)
    return {
      onOpen: (directory) => Effect.map(timeOf(directory), (time) => void (opened = { directory, finishedAt: time })),
      directory: () => opened?.directory,
      wasFinished: Effect.suspend(() => {
        if (opened === undefined) return Effect.succeed(false)
        const before = opened.finishedAt
        return Effect.map(timeOf(opened.directory), (now) => now !== undefined && now !== before)
      }),
    }
  },
)

/** Says how to report the end of a run, and how to read its result from its folder. */
export interface Ending<A, R> {
  readonly finished: (result: A) => Effect.Effect<void, never, R>
  readonly interrupted: (directory: string) => Effect.Effect<void>
  readonly read: (directory: string) => Effect.Effect<A, unknown, R>
}

/**
 * Runs a training or an evaluation and reports how it ended. If a signal comes after the run was finished, the result is
 * read from its folder, and the process ends as if there had been no signal.
 */
export const reportEnd = <A, E, R, R2>(
  run: Effect.Effect<A, E, R>,
  opened: OpenedRun,
  { finished, interrupted, read }: Ending<A, R2>,
): Effect.Effect<void, E, R | R2> =>
  Effect.uninterruptibleMask((restore) =>
    restore(run).pipe(
      Effect.catchCause((cause) =>
        Effect.gen(function* () {
          const directory = opened.directory()
          if (!Cause.hasInterruptsOnly(cause) || directory === undefined) return yield* Effect.failCause(cause)
          const result = (yield* opened.wasFinished) ? yield* Effect.option(read(directory)) : Option.none()
          if (Option.isNone(result)) return yield* Effect.andThen(interrupted(directory), Effect.failCause(cause))
          process.exitCode = 0
          return result.value
        }),
      ),
      Effect.flatMap(finished),
    ),
  )
