/** Reads the results of finished runs from their folders. `runToEnd` executes a run and reports how it ended. */
import { join } from "node:path"
import { Cause, Effect, FileSystem, Option, Predicate, type Schema } from "effect"
import { exists, mostBytes, readRunText, statOf } from "../../../base/files/files.ts"
import type { LmError } from "../../../agents/lm/LmError.ts"
import { parseMetrics } from "../../../run/finishedResult.ts"
import * as Layout from "../../../run/Layout.ts"
import type { RunResult } from "../../../run/RunResult.ts"
import { AnyResult, toRunResult } from "../../../agents/training/RuntimeResult.ts"
import { readRunIn } from "../findRun.ts"
import { advised } from "../output/errors.ts"
import { writeError } from "../output/output.ts"

/** The result of a finished run, and its learning curve. */
export type Finished = Effect.Success<ReturnType<typeof withCurve>>

/** Reads the result and the learning curve of a finished run from its folder, which may have been moved. */
export const readFinished = Effect.fnUntraced(function* (runDir: string) {
  const result = yield* readMetrics(runDir, AnyResult)
  return yield* withCurve({ ...toRunResult(result), runDir })
})

/** Adds the learning curve to the result of a finished run; the curve is read from the run's folder. */
export const withCurve = Effect.fnUntraced(function* (result: RunResult) {
  const curve = yield* readRunIn(result.runDir).curve
  return { result, curve: curve.map(({ step, mean: value }) => ({ step, value })) }
})

/** Reads the digest (a hash of the result) of a finished run; undefined for an unfinished one. */
export const digestIn = Effect.fnUntraced(function* (path: string) {
  const run = readRunIn(path)
  const digest = (yield* run.isFinished) ? (yield* run.metrics)?.digest : undefined
  return typeof digest === "string" ? digest : undefined
})

/** Reads the keys of a run's `metrics.json` that the given Schema lists. */
export const readMetrics = Effect.fnUntraced(function* <A>(run: string, schema: Schema.Codec<A, unknown>) {
  return yield* parseMetrics(yield* readRunText(join(run, Layout.metrics), mostBytes.text), schema)
})

/** Returns the time at which a run was finished, from its `return.json`; undefined for an unfinished run. */
const finishedAt = (directory: string) =>
  Effect.map(statOf(join(directory, Layout.returns)), (stat) =>
    stat === undefined ? undefined : Option.getOrUndefined(stat.mtime)?.getTime(),
  )

/**
 * Tells whether a resumed run would repeat an error of its learner. The most common such error is that the training has
 * diverged. An error of a callback may not happen again.
 */
const isLearningError = (error: unknown): boolean =>
  Predicate.isTagged(error, "LearningError") && !("reason" in error && error.reason === "callback")

/**
 * Tells whether an error is an `LmError`. It compares the tag, because the user's program may import another copy of this
 * library.
 */
const isLmError = (error: unknown): error is LmError => Predicate.isTagged(error, "LmError")

/** Tells `runToEnd` what to do at the end of a run. */
interface RunEnding<A, E, R> {
  /** Reports the result of a run that has finished. If this fails, the command fails with the same error. */
  readonly finished: (result: A) => Effect.Effect<void, E, R>
  /** Reads the result of a finished run from its folder. */
  readonly read: (directory: string) => Effect.Effect<A, unknown, R>
  /** Returns the command that resumes the run. `remedy` is a setting that removes the cause of the failure. */
  readonly resumeCommand: (directory: string, remedy?: string) => string
  /**
   * Whether to advise the user to run that command after an error. It is false for a resumed run, whose user already knows
   * the command, and in a sweep, which resumes its runs itself.
   */
  readonly advises: boolean
  /** The run's folder, if it is known before the run is opened. */
  readonly directory?: string | undefined
}

/**
 * Runs a training or an evaluation, and reports how it ended. `run` must call `onOpen` with the folder of the run. If a
 * signal (such as Ctrl-C) interrupts `run` although the result is already saved, the result is read from the folder and
 * reported as if there had been no signal.
 */
export const runToEnd = Effect.fnUntraced(function* <A, E, E2, R, R2>(
  run: (onOpen: (directory: string) => Effect.Effect<void>) => Effect.Effect<A, E, R>,
  { finished, read, resumeCommand, advises, directory }: RunEnding<A, E2, R2>,
) {
  const fs = yield* FileSystem.FileSystem
  let opened: { readonly directory: string; readonly finishedAt: number | undefined } | undefined
  const onOpen = (directory: string) =>
    Effect.map(
      Effect.provideService(finishedAt(directory), FileSystem.FileSystem, fs),
      (time) => void (opened = { directory, finishedAt: time }),
    )
  /** Returns the command that resumes the run after an error; undefined if resuming would end in the same error. */
  const commandAfter = Effect.fnUntraced(function* (cause: Cause.Cause<E>) {
    const folder = opened?.directory ?? directory
    if (folder === undefined) return undefined
    const error = Option.getOrUndefined(Cause.findErrorOption(cause))
    // All answers of language models are saved at once, so resuming loses nothing.
    if (isLmError(error)) return resumeCommand(folder, error.remedy)
    if (!advises || isLearningError(error)) return undefined
    const { hasCheckpoint, isFinished, kind } = readRunIn(folder)
    if (yield* isFinished) return undefined
    const savesAll = ["evaluation", "multirun", "prompts"].includes((yield* kind) ?? "")
    return savesAll || (yield* hasCheckpoint) ? resumeCommand(folder) : undefined
  })
  /**
   * Adds to a failure how to resume the run. If the run was interrupted after it had finished, returns its result instead.
   */
  const ended = Effect.fnUntraced(function* (cause: Cause.Cause<E>) {
    if (!Cause.hasInterruptsOnly(cause)) {
      const command = yield* commandAfter(cause)
      return yield* Effect.failCause(command === undefined ? cause : advised(cause, `resume with: ${command}`))
    }
    if (opened === undefined) return yield* Effect.failCause(cause)
    // A resumed run may have been finished before. Only a new time shows that it was finished by this process.
    const time = yield* finishedAt(opened.directory)
    const wasFinished = time !== undefined && time !== opened.finishedAt
    const result = wasFinished ? yield* Effect.option(read(opened.directory)) : Option.none()
    if (Option.isNone(result)) {
      const hasConfig = yield* exists(join(opened.directory, Layout.config))
      const remedy = hasConfig
        ? `resume with: ${resumeCommand(opened.directory)}`
        : "the run had not begun; start it again"
      yield* writeError(`\ninterrupted; ${remedy}\n`)
      return yield* Effect.failCause(cause)
    }
    process.exitCode = 0
    return result.value
  })
  yield* Effect.uninterruptibleMask((restore) =>
    restore(run(onOpen)).pipe(Effect.catchCause(ended), Effect.flatMap(finished)),
  )
})
