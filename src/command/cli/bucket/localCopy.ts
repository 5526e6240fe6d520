/**
 * Lets commands that read a run from disk work with a run in a bucket: they get a copy of it in a temporary folder. Their
 * output names the run by its address.
 */
import { dirname, join } from "node:path"
import { Effect, FileSystem, Option } from "effect"
import { exists, makeFolder } from "../../../base/files/files.ts"
import { jsonValue, visible } from "../../../base/text/text.ts"
import { unplacedEntry } from "../../../run/find/RunEntry.ts"
import { dataAt } from "../../../run/find/Value.ts"
import * as Layout from "../../../run/Layout.ts"
import { attempt } from "../../../run/read/attempt.ts"
import type { ObjectSource } from "../../../run/read/objectSource.ts"
import { over } from "../../../run/RunReader.ts"
import { findRun, type UsableRun } from "../findRun.ts"
import { isBucket } from "../flags.ts"
import { writeError } from "../output/output.ts"
import { printingAddresses } from "./addressed.ts"
import { readingBucket } from "./readBucket.ts"

/** The runs that the user named, and the folder in which runs are looked up. */
export interface NamedRuns {
  readonly runs: ReadonlyArray<string>
  readonly resultsDir: string
}

export interface CopyOptions {
  readonly usable?: UsableRun
  readonly quiet?: boolean
  /** The step of the checkpoint that the command needs; the newest checkpoint if left out. */
  readonly step?: Option.Option<number>
  /** Whether the command needs only learning curves. Then an address may also be a folder of runs. */
  readonly curves?: boolean
}

/** The files from which the learning curve of a finished run is read. */
const ofCurves: ReadonlySet<string> = new Set([Layout.config, Layout.metrics, Layout.returns])

/** Returns the folders of a run that the command does not need: the exported steps, and the other checkpoints. */
const unneeded = Effect.fnUntraced(function* (path: string, source: ObjectSource, step: Option.Option<number>) {
  const checkpoints = yield* over(source)(unplacedEntry(path)).locate(Layout.checkpoints)
  const pointer = yield* source.text(`${checkpoints}/${Layout.latestPointer}`)
  const parsed = attempt(() => jsonValue(pointer ?? "null"))
  const latest = "value" in parsed ? dataAt(parsed.value, ["path"]) : undefined
  const isNeeded = (name: string): boolean =>
    Option.match(step, {
      onNone: () => latest === undefined || name === latest,
      onSome: (count) => Layout.checkpointOf(name)?.count === count,
    })
  const names = (yield* source.folders(checkpoints)).filter((name) => Layout.checkpointOf(name) !== undefined)
  return {
    steps: `${path}/${Layout.steps}`,
    checkpoints: names.filter((name) => !isNeeded(name)).map((name) => `${checkpoints}/${name}`),
  }
})

/**
 * Copies the run, or the folder of runs, that the user named by an address or by a part of an address. Returns the folder of
 * the copy.
 */
const copyRun = Effect.fnUntraced(function* (name: string, resultsDir: string, folder: string, options: CopyOptions) {
  const { usable, quiet = false, step = Option.none(), curves = false } = options
  const localOf = (address: string): string => join(folder, address.replace(/^s3:\/\//, ""))
  return yield* readingBucket(isBucket(name) ? name : resultsDir, ({ source, fetch, root }) =>
    Effect.gen(function* () {
      const copy = Effect.fnUntraced(function* (path: string) {
        const bytes = yield* fetch(path)
        if (bytes === undefined) return
        yield* makeFolder(dirname(localOf(path)))
        yield* (yield* FileSystem.FileSystem).writeFile(localOf(path), bytes)
      })
      const copyAll = (paths: ReadonlyArray<string>) =>
        Effect.forEach(paths, copy, { concurrency: "unbounded", discard: true })
      const pathsBelow = (path: string) => source.below(path).map(({ key }) => `${root}/${key}`)

      const place = name.replace(/\/+$/, "")
      const isRun = (yield* source.list(place)).some((one) => one === Layout.config || one === Layout.returns)
      if (curves && isBucket(place) && !isRun) {
        yield* copyAll(pathsBelow(place).filter((path) => ofCurves.has(Layout.fileName(path))))
        return localOf(place)
      }
      const { path } = yield* findRun(name, {
        folders: [resultsDir],
        source,
        ...(usable === undefined ? {} : { usable }),
      })
      if (!isBucket(name) && !quiet) yield* writeError(`run: ${visible(path)}\n`)
      const leftOut = yield* unneeded(path, source, step)
      const isLeftOut = (file: string): boolean =>
        [leftOut.steps, ...leftOut.checkpoints].some((one) => file.startsWith(`${one}/`)) ||
        Layout.isOfWriter(Layout.fileName(file))
      yield* copyAll(
        pathsBelow(path).filter((file) => !isLeftOut(file) && (!curves || ofCurves.has(Layout.fileName(file)))),
      )
      // The empty folders tell the command which other checkpoints there are.
      for (const checkpoint of leftOut.checkpoints) yield* makeFolder(localOf(checkpoint))
      return localOf(path)
    }),
  )
})

/**
 * Runs `body` with the folders of the runs that the user named. A run in a bucket is copied to a folder, which is removed
 * afterwards.
 */
export const withCopies = <A, E, R>(
  { runs, resultsDir }: NamedRuns,
  options: CopyOptions,
  body: (named: NamedRuns) => Effect.Effect<A, E, R>,
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const folder = yield* fs.makeTempDirectoryScoped({ prefix: "effect-s3-" })
      const copied = Effect.forEach(runs, (name) =>
        Effect.flatMap(isBucket(name) ? Effect.succeed(false) : exists(name), (isOnDisk) =>
          isOnDisk || (!isBucket(name) && !isBucket(resultsDir))
            ? Effect.succeed(name)
            : copyRun(name, resultsDir, folder, options),
        ),
      )
      const command = Effect.flatMap(copied, (paths) => body({ runs: paths, resultsDir: folder }))
      return yield* printingAddresses(`${folder}/`, "s3://", command)
    }),
  )
