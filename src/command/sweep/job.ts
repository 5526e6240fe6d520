/**
 * Defines the job that trains one run of a sweep on another machine. Each attempt of a worker trains in its own folder inside
 * the results folder. If an earlier worker was lost, the new attempt resumes from a copy of that worker's files. The finished
 * run is published by renaming its folder, so readers see the whole run or nothing. If two workers train the same run, the
 * first one that finishes publishes it; both results have the same bits.
 */
import { rmdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { Cause, Effect, Exit, FileSystem, type Path, Schema } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { jsonText } from "../../base/text/jsonText.ts"
import { exists, makeFolder, mostBytes, namesIn, readRunText } from "../../base/files/files.ts"
import { messageOf } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { Dispatcher, type Handler, handler, job } from "../../spread/cluster/Dispatcher.ts"
import { digestOfBytes } from "../../spread/cluster/sent/loadedModules-node.ts"
import { SentFile } from "../../spread/cluster/sent/SentFile.ts"
import { asSent, asSentProgram, checkFiles, sentPath } from "../../spread/cluster/sent/sentFiles-node.ts"
import * as Layout from "../../run/Layout.ts"
import { parseMetrics } from "../../run/finishedResult.ts"
import { RunResult } from "../../run/RunResult.ts"
import { AnyResult, toRunResult } from "../../agents/training/RuntimeResult.ts"
import { indexRun } from "../../run/store/indexFile.ts"
import { owner } from "../../run/store/owner-node.ts"
import { isBucket } from "../cli/flags.ts"
import { readMetrics } from "../cli/run/finished.ts"
import { type Child, RunCommand } from "./child.ts"
import { copyLost, newestLost } from "./lostAttempt.ts"
import { SweepPart } from "./part.ts"
import { CommandError, isRunError } from "../CommandError.ts"

/** The job that trains one run of a sweep. Its result is the line of JSON that `effect run --json` prints. */
export const runJob = job({
  name: "run",
  payload: Schema.Struct({
    /** The arguments of `effect run` after the file, without `--results-dir`. */
    args: Schema.Array(Schema.String),
    /** The files on which the run depends; the first is the training's. A worker that has other files refuses to run it. */
    files: Schema.NonEmptyArray(SentFile),
    /**
     * The results folder: relative to the working directory of the client if it is below that directory, or the address of a
     * bucket.
     */
    resultsDir: Schema.String,
    /** The path of the run's folder below the results folder. */
    path: Schema.String,
    part: SweepPart,
  }),
  result: Schema.String,
  failure: Schema.Union([CommandError, WorkerError]),
  // A resumed sweep may need more steps than a job of the earlier sweep that still waits, so the arguments are part of the
  // key.
  key: ({ path, args, files }) => {
    const settings = JSON.stringify([args, files.map(({ sha256 }) => sha256)])
    return `${path} ${digestOfBytes(utf8.encode(settings)).slice(0, 12)}`
  },
})
type RunPayload = Parameters<(typeof runJob)["key"]>[0]

/** Describes the run of a sweep that other machines should train. */
interface SpreadRun {
  /** The files on which the run depends: the training's file, and the file of `--config`. */
  readonly files: readonly [string, ...ReadonlyArray<string>]
  readonly resultsDir: string
  /** The path of the run's folder below the results folder. */
  readonly path: string
}

/** Returns the function that trains a run of a sweep through the dispatcher, instead of in a process of this machine. */
export const spreadCommand = Effect.gen(function* () {
  const dispatcher = yield* Dispatcher
  const command = yield* RunCommand
  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  return ({ files: named, resultsDir, path }: SpreadRun): typeof RunCommand.Service =>
    Effect.fnUntraced(function* ({ args, part }: Child) {
      const payload: RunPayload = {
        args: args.slice(1),
        files: [...asSentProgram(named[0]), ...named.slice(1).map(asSent)],
        resultsDir: isBucket(resultsDir) ? resultsDir : sentPath(resultsDir),
        path,
        part,
      }
      const here = trainAttempt(payload).pipe(Effect.provideService(RunCommand, command), Effect.provideContext(files))
      return yield* dispatcher
        .run(runJob, payload, here)
        .pipe(Effect.mapError(({ message }) => CommandError.run(message)))
    })
})

/** Makes the code of a worker that trains runs of sweeps. */
export const sweepHandler: Effect.Effect<Handler, never, FileSystem.FileSystem | Path.Path> = Effect.map(
  Effect.context<FileSystem.FileSystem | Path.Path>(),
  (files) =>
    handler(runJob, ({ args, ...payload }) =>
      // The run's own process can't ask the user, and a worker trusts its cluster.
      Effect.provideContext(trainAttempt({ ...payload, args: [...args, "--trust"] }), files),
    ),
)

const trainAttempt = (payload: RunPayload) =>
  Effect.flatMap(checkFiles(runJob.name, payload.files), () =>
    isBucket(payload.resultsDir) ? trainIntoBucket(payload) : trainIntoFolder(payload),
  )

const failed = Effect.mapError((error: Error) => (isRunError(error) ? error : CommandError.run(messageOf(error))))

/**
 * Trains the run in the folder of an attempt, with all paths in its files as if it were in the folder (or at the address)
 * `published`. If there is a copy of a lost worker's files (`lost`), it resumes the run from them. Returns the run's folder.
 */
const trainIn = Effect.fnUntraced(function* (
  attempt: string,
  published: string,
  { args, files, part }: RunPayload,
  lost?: string,
) {
  const fs = yield* FileSystem.FileSystem
  yield* makeFolder(attempt)
  const command = yield* RunCommand
  const run = (...more: ReadonlyArray<string>) =>
    command({ args: [files[0].path, ...args, ...more, "--results-dir", attempt], part, onProgress: () => {} })
  const line = yield* lost === undefined
    ? run()
    : // The copy of a lost worker's files may be unusable; then the run starts again.
      Effect.catch(run("--resume", lost), () =>
        Effect.andThen(Effect.ignore(fs.remove(lost, { recursive: true, force: true })), run()),
      )
  const { runDir } = yield* Schema.decodeUnknownEffect(jsonText(RunResult))(line.trim().split("\n").at(-1))
  // Only one file in the run's folder contains the run's own path.
  const metrics = join(runDir, Layout.metrics)
  const text = yield* readRunText(metrics, mostBytes.text)
  yield* fs.writeFileString(metrics, text.replaceAll(JSON.stringify(runDir), JSON.stringify(published)))
  return runDir
})

const trainIntoFolder = Effect.fnUntraced(function* (payload: RunPayload) {
  const { resultsDir, path, part } = payload
  const fs = yield* FileSystem.FileSystem
  const published = join(resultsDir, path)
  if (!(yield* exists(join(resultsDir, part.time)))) {
    const message = `${resultsDir}: expected the folder of the sweep, ${part.time}, in it; mount the same results folder on all machines`
    return yield* WorkerError.dispatch(runJob.name, message)
  }
  if (yield* exists(join(published, Layout.returns))) return yield* lineOf(published)
  const folder = join(resultsDir, Layout.attempts)
  const attempt = join(folder, `${part.time}_${crypto.randomUUID()}`)
  const train = Effect.gen(function* () {
    const before = yield* newestLost({ folder, sweep: `${part.time}_`, path })
    const lost = join(attempt, path)
    const isCopied = before !== undefined && (yield* copyLost(before, lost))
    if (!isCopied) yield* Effect.ignore(fs.remove(attempt, { recursive: true, force: true }))
    const runDir = yield* trainIn(attempt, published, payload, isCopied ? lost : undefined)
    yield* makeFolder(dirname(published))
    // Another worker may already have published the same run: then that folder stays, and this attempt is deleted.
    yield* fs
      .rename(runDir, published)
      .pipe(
        Effect.catch((error) =>
          Effect.flatMap(exists(join(published, Layout.returns)), (isThere) =>
            isThere ? Effect.void : Effect.fail(error),
          ),
        ),
      )
    yield* Effect.ignore(indexRun(published, owner))
    return yield* lineOf(published)
  })
  // An interrupted worker returns the job, and the next worker resumes the run from these files.
  const tidied = Effect.onExit(train, (exit) =>
    Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
      ? Effect.void
      : Effect.ignore(fs.remove(attempt, { recursive: true, force: true })),
  )
  return yield* failed(tidied)
})

/** Trains the run in a temporary folder, and publishes it in the bucket. */
const trainIntoBucket = Effect.fnUntraced(
  function* (payload: RunPayload) {
    // The code for buckets is loaded only when it is needed.
    const { openPublished } = yield* Effect.promise(() => import("../cli/bucket/publish.ts"))
    const { address, metrics, publish } = yield* openPublished(payload.resultsDir, payload.path)
    const lineThere = Effect.flatMap(metrics, (text) =>
      text === undefined ? Effect.undefined : Effect.map(parseMetrics(text, AnyResult), lineAt(address)),
    )
    const before = yield* lineThere
    if (before !== undefined) return before
    const attempt = yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped({ prefix: "effect-s3-" })
    const runDir = yield* trainIn(attempt, address, payload)
    // While another machine publishes the same run, it holds the lock; after that, the run is finished.
    yield* Effect.retry(publish(runDir), { times: 5, while: (error) => error._tag === "RunStoreError" })
    const line = yield* lineThere
    return line ?? (yield* CommandError.run(`${address}: the run was removed after it was published`))
  },
  Effect.scoped,
  failed,
)

const lineAt =
  (runDir: string) =>
  (result: typeof AnyResult.Type): string =>
    JSON.stringify({ ...toRunResult(result), runDir })

/** Returns the line of JSON with the result of a published run. */
const lineOf = Effect.fnUntraced(
  function* (directory: string) {
    return lineAt(directory)(yield* readMetrics(directory, AnyResult))
  },
  Effect.mapError((error) => CommandError.run(messageOf(error))),
)

/** Removes the folders of attempts that killed workers left. All runs of the sweep must be finished. */
export const removeAttempts = Effect.fnUntraced(function* (resultsDir: string, time: string) {
  const fs = yield* FileSystem.FileSystem
  const folder = join(resultsDir, Layout.attempts)
  const left = (yield* namesIn(folder)).filter((name) => name.startsWith(`${time}_`))
  for (const name of left) yield* Effect.ignore(fs.remove(join(folder, name), { recursive: true, force: true }))
  // This removes only an empty folder, because another sweep may have attempts in it.
  yield* Effect.ignore(Effect.try(() => rmdirSync(folder)))
})
