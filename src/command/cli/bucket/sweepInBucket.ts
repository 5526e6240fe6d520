/**
 * Saves the runs of a sweep in a bucket of S3. Each run is trained by a process of its own that writes into the bucket, so it
 * can be resumed. The sweep itself works in a temporary folder with the configs and results of its runs.
 */
import { basename, dirname, join } from "node:path"
import { Effect, FileSystem, Option, type Path, Schema } from "effect"
import { jsonText } from "../../../base/text/jsonText.ts"
import { makeFolder } from "../../../base/files/files.ts"
import { messageOf } from "../../../base/text/text.ts"
import { dateOf } from "../../../run/identifier.ts"
import * as Layout from "../../../run/Layout.ts"
import { isFile } from "../../../run/read/objectSource.ts"
import { RunResult } from "../../../run/RunResult.ts"
import type { ObjectInfo } from "../../../run/store/objects/ObjectStore.ts"
import type { RunFlags } from "../run/flags.ts"
import { SweepPlace } from "../../sweep/place.ts"
import { sweep } from "../../sweep/sweep.ts"
import { printingAddresses } from "./addressed.ts"
import { cachedGet } from "./cache.ts"
import { connect, failingAt } from "./connect.ts"
import { lockIn } from "./runInBucket.ts"
import { CommandError, isRunError } from "../../CommandError.ts"

/** The files of a run that a sweep reads. */
const needed: ReadonlySet<string> = new Set([Layout.config, Layout.metrics, Layout.returns])

const ResultLine = jsonText(RunResult)

/** Runs a sweep whose `--results-dir` is the address of a bucket. */
export const sweepInBucket = Effect.fnUntraced(function* (typed: RunFlags) {
  const connected = yield* connect(typed.resultsDir, "--results-dir")
  const { store, root } = connected
  const failing = failingAt(root)
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "effect-s3-" })
  const get = cachedGet(connected)
  const addressed = (text: string): string => text.replaceAll(folder, root)
  const localOf = (address: string): string => join(folder, address.slice(root.length + 1))

  const copy = Effect.fnUntraced(function* (object: ObjectInfo) {
    if (!isFile(object.key) || !needed.has(Layout.fileName(object.key))) return
    const bytes = yield* failing(get(object))
    if (bytes === undefined) return
    yield* makeFolder(dirname(join(folder, object.key)))
    yield* fs.writeFile(join(folder, object.key), bytes)
  })
  const copyBelow = Effect.fnUntraced(function* (prefix: string) {
    const objects = yield* failing(store.versions.list(prefix))
    // A sweep that was stopped before its first run started left at most a lock.
    const times = new Set(objects.map(({ key }) => key.split("/")[0]).filter((name) => dateOf(name) !== undefined))
    for (const time of times) yield* makeFolder(join(folder, time))
    yield* Effect.forEach(objects, copy, { concurrency: 16, discard: true })
  })

  const resume = Option.getOrUndefined(typed.resume)?.replace(/\/+$/, "")
  const isAddress = resume?.startsWith(`${root}/`) === true
  if (resume === undefined) yield* failing(store.get(Layout.config))
  else yield* copyBelow(isAddress ? `${resume.slice(root.length + 1)}/` : "")

  const files = yield* Effect.context<FileSystem.FileSystem | Path.Path>()
  const place: SweepPlace = {
    shown: addressed,
    isTaken: (time) => Effect.map(failing(store.list(`${time}/`)), (keys) => keys.length > 0),
    lock: (time) => Effect.asVoid(lockIn(connected, `${time}/${Layout.sweepLock}`)),
    training: (command) =>
      Effect.fnUntraced(
        function* (child) {
          const part = { ...child.part, command: addressed(child.part.command) }
          const text = yield* command({ ...child, args: child.args.map(addressed), part })
          const result = yield* Schema.decodeUnknownEffect(ResultLine)(text.trim().split("\n").at(-1))
          yield* copyBelow(`${result.runDir.slice(root.length + 1)}/`)
          return JSON.stringify({ ...result, runDir: localOf(result.runDir) })
        },
        Effect.mapError((error) => (isRunError(error) ? error : CommandError.run(messageOf(error)))),
        Effect.provideContext(files),
      ),
  }
  /** Saves the summaries of seeds. A bucket has no links, so the folder above gets a copy. */
  const saveSummaries = Effect.gen(function* () {
    const names = yield* fs.readDirectory(folder, { recursive: true })
    for (const name of names.filter((one) => basename(one) === Layout.seedsSummary)) {
      const bytes = yield* fs.readFile(join(folder, name))
      const key = name.replaceAll("\\", "/")
      yield* failing(store.put(key, bytes))
      yield* failing(store.put(`${dirname(dirname(key))}/${Layout.metrics}`, bytes))
    }
  })
  const input: RunFlags = {
    ...typed,
    resultsDir: folder,
    resume: Option.fromUndefinedOr(isAddress ? localOf(resume) : resume),
  }
  const training = Effect.provideService(sweep(input), SweepPlace, place)
  // If runs failed, the sweep fails, but only after the summaries of the other runs are written.
  const saved = Effect.matchCauseEffect(training, {
    onSuccess: () => saveSummaries,
    onFailure: (cause) => Effect.andThen(Effect.ignore(saveSummaries), Effect.failCause(cause)),
  })
  yield* printingAddresses(folder, root, saved)
}, Effect.scoped)
