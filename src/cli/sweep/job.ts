/**
 * The job by which one run of a sweep is trained on another machine. The worker trains in a folder of its own attempt, inside
 * the sweep's folder, and publishes the finished run by renaming its folder. So a run is there as a whole or not at all,
 * and if two workers train the same run, the first one that finishes publishes it; its bits are the same.
 */
import { createHash } from "node:crypto"
import { readFileSync, rmdirSync } from "node:fs"
import { dirname, isAbsolute, join, relative, resolve } from "node:path"
import { Effect, FileSystem, type Path, Schema } from "effect"
import { exists, makeFolder, mostBytes, namesIn, readRunText } from "../../config/files.ts"
import { messageOf } from "../../config/text.ts"
import { DispatchError, Dispatcher, type Handler, handler, job } from "../../cluster/Dispatcher.ts"
import * as Layout from "../../run/Layout.ts"
import { RunResult } from "../../run/RunResult.ts"
import { AnyResult, toRunResult } from "../../run/RuntimeResult.ts"
import { indexRun } from "../../run/store/indexFile.ts"
import { owner } from "../../run/store/owner-node.ts"
import { readMetrics } from "../run/finished.ts"
import { type Child, RunCommand, RunFailed } from "./child.ts"
import { Part } from "./part.ts"

/** The job that trains one run of a sweep. Its result is the line of JSON that `effect run --json` prints. */
export const runJob = job({
  name: "run",
  payload: Schema.Struct({
    /** The arguments of `effect run` after the file, without `--results-dir`. */
    args: Schema.Array(Schema.String),
    /** The files on which the run depends, that of the training first. A worker with other ones refuses to run it. */
    files: Schema.NonEmptyArray(Schema.Struct({ path: Schema.String, sha256: Schema.String })),
    /** The results folder, relative to the working directory of the client if it is below it. */
    resultsDir: Schema.String,
    /** The path of the run's folder below the results folder. */
    path: Schema.String,
    part: Part,
  }),
  result: Schema.String,
  failure: Schema.Union([RunFailed, DispatchError]),
  key: ({ path, files }) => [path, ...files.map(({ sha256 }) => sha256.slice(0, 12))].join(" "),
})
type RunPayload = Parameters<(typeof runJob)["key"]>[0]

/** Returns a path as it is sent: relative if it is below the working directory, which may differ between machines. */
const sentPath = (path: string): string => {
  const below = relative(process.cwd(), resolve(path))
  return below.startsWith("..") || isAbsolute(below) ? resolve(path) : below
}

const digestOf = (file: string): string => createHash("sha256").update(readFileSync(file)).digest("hex")

const asSent = (file: string) => ({ path: sentPath(file), sha256: digestOf(file) })

/** Describes the run of a sweep that other machines should train. */
export interface SpreadRun {
  /** The files on which the run depends: that of the training, and that of `--config`. */
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
        files: [asSent(named[0]), ...named.slice(1).map(asSent)],
        resultsDir: sentPath(resultsDir),
        path,
        part,
      }
      const here = trainAttempt(payload).pipe(Effect.provideService(RunCommand, command), Effect.provideContext(files))
      return yield* dispatcher
        .run(runJob, payload, here)
        .pipe(Effect.mapError(({ message }) => new RunFailed({ message })))
    })
})

/** Makes the code of a worker that trains runs of sweeps. */
export const sweepHandler: Effect.Effect<Handler, never, FileSystem.FileSystem | Path.Path> = Effect.map(
  Effect.context<FileSystem.FileSystem | Path.Path>(),
  (files) => handler(runJob, (payload) => Effect.provideContext(trainAttempt(payload), files)),
)

const trainAttempt = Effect.fnUntraced(function* ({ args, files, resultsDir, path, part }: RunPayload) {
  yield* checkFiles(files)
  const fs = yield* FileSystem.FileSystem
  const published = join(resultsDir, path)
  if (!(yield* exists(join(resultsDir, part.time)))) {
    const message = `${resultsDir}: expected the folder of the sweep, ${part.time}, in it; mount the same results folder on all machines`
    return yield* new DispatchError({ job: runJob.name, message })
  }
  if (yield* exists(join(published, Layout.returns))) return yield* lineOf(published)
  const attempt = join(resultsDir, Layout.attempts, `${part.time}_${crypto.randomUUID()}`)
  const command = yield* RunCommand
  const train = Effect.gen(function* () {
    yield* makeFolder(attempt)
    const line = yield* command({
      args: [files[0].path, ...args, "--results-dir", attempt],
      part,
      onProgress: () => {},
    })
    const { runDir } = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(RunResult))(
      line.trim().split("\n").at(-1),
    )
    // The run's folder knows its own path from one file only.
    const metrics = join(runDir, Layout.metrics)
    const text = yield* readRunText(metrics, mostBytes.text)
    yield* fs.writeFileString(metrics, text.replaceAll(JSON.stringify(runDir), JSON.stringify(published)))
    yield* makeFolder(dirname(published))
    // Another worker may have published the same run meanwhile: then its folder stays, and this attempt is thrown away.
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
  return yield* train.pipe(
    Effect.ensuring(Effect.ignore(fs.remove(attempt, { recursive: true, force: true }))),
    Effect.mapError((error) => (error instanceof RunFailed ? error : new RunFailed({ message: messageOf(error) }))),
  )
})

/** Returns the line of JSON with the result of a published run. */
const lineOf = Effect.fnUntraced(
  function* (directory: string) {
    const result = toRunResult(yield* readMetrics(directory, AnyResult))
    return JSON.stringify({ ...result, runDir: directory })
  },
  Effect.mapError((error) => new RunFailed({ message: messageOf(error) })),
)

/** Refuses to train from other files than those of the machine that started the sweep. */
const checkFiles = Effect.fnUntraced(function* (files: RunPayload["files"]) {
  for (const { path, sha256 } of files) {
    const here = (yield* exists(path)) ? digestOf(path) : undefined
    if (here === sha256) continue
    const found = here === undefined ? "no such file" : `version ${here.slice(0, 12)}`
    const message = `${resolve(path)}: expected the file with which the sweep was started, version ${sha256.slice(0, 12)}; a worker found ${found}`
    return yield* new DispatchError({ job: runJob.name, message })
  }
})

/** Removes what workers that were killed left of a sweep whose runs are all finished. */
export const removeAttempts = Effect.fnUntraced(function* (resultsDir: string, time: string) {
  const fs = yield* FileSystem.FileSystem
  const folder = join(resultsDir, Layout.attempts)
  const left = (yield* namesIn(folder)).filter((name) => name.startsWith(`${time}_`))
  for (const name of left) yield* Effect.ignore(fs.remove(join(folder, name), { recursive: true, force: true }))
  // This only removes an empty folder: another sweep may have attempts in it.
  yield* Effect.ignore(Effect.try(() => rmdirSync(folder)))
})
