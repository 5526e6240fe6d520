import { createHash } from "node:crypto"
import { stat } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { isAlive } from "../run/store/owner-node.ts"
import { behind, type Confined } from "./confined-node.ts"
import { newestLine, type Evidence, type RunSummary, summarise } from "./RunSummary.ts"
import { scoresIn } from "./scoresFolder.ts"
import * as Layout from "../run/Layout.ts"

/** All runs of a results folder, kept up to date by looking again: that works on every file system, network ones too. */
export interface RunIndex {
  readonly runs: () => ReadonlyArray<RunSummary>
  readonly has: (path: string) => boolean
  /** Looks what has changed since last time. */
  readonly refresh: Effect.Effect<Changes>
}

export interface Changes {
  /** New runs, and those of which something is new; what the table shows of them may be the same. */
  readonly changed: ReadonlyArray<RunSummary>
  readonly gone: ReadonlyArray<string>
}

interface Known {
  readonly summary: RunSummary
  readonly signature: string
  readonly places: Layout.Places
}

/** Folders above a run: time, heading, config. */
const deepest = 4

const lineFeed = 10

/** Of what runs of one config have alike: all but the seed, and where the results go. */
const digestOf = (config: string): string =>
  createHash("sha256")
    .update(config.replaceAll(/^(?:seed| {2}results_dir): .*\n/gm, ""))
    .digest("hex")
    .slice(0, 16)

/** How many files are open at once. */
const concurrency = 32

/** Whether a folder is a run, and not one that runs lie in. */
export const isRunFolder = ({ files, folders }: Awaited<ReturnType<Confined["list"]>>): boolean =>
  [Layout.config, Layout.returns, Layout.batchRollouts, Layout.batchOutcomes].some((name) => files.includes(name)) ||
  folders.includes(Layout.scores)

export const makeIndex = (files: Confined): RunIndex => {
  let known = new Map<string, Known>()
  const counted = new Map<string, { readonly read: number; readonly lines: number; readonly behind: string }>()

  const look = async (path: string): Promise<Known | { readonly folders: ReadonlyArray<string> }> => {
    const before = known.get(path)
    if (before !== undefined && before.signature === (await signatureOf(path, before))) return before
    const found = await files.list(path)
    if (!isRunFolder(found)) return { folders: found.folders.map((name) => (path === "" ? name : `${path}/${name}`)) }
    const has = (name: string): boolean => found.files.includes(name)
    const read = (name: string, from?: number) =>
      has(name) ? files.text(`${path}/${name}`, from) : Promise.resolve(undefined)
    const finished = has(Layout.returns)
    const lock = await read(Layout.lock)
    const [config, metrics, returns, log] = await Promise.all([
      read(Layout.config),
      read(Layout.metrics),
      read(Layout.returns),
      finished ? undefined : read(Layout.log, -64 * 1024),
    ])
    const places = scoresIn(config)
    const scored = finished ? undefined : await newest(`${path}/${Layout.locate(places, Layout.trainScores)}`)
    const owned = lock !== undefined && lock !== "" && isAlive(lock)
    const absolutePath = join(files.root, path)
    const summary = summarise({
      path,
      absolutePath,
      config,
      configDigest: digestOf(config ?? ""),
      onlyRollouts: ![Layout.config, Layout.returns, Layout.log].some(has) && !found.folders.includes(Layout.scores),
      metrics,
      returns,
      log,
      ...scored,
      scores: scored?.scores,
      owned,
    })
    return { summary, places, signature: await signatureOf(path, { summary, places }) }
  }

  /** The end of a run's training scores, and how many lines they have where one is a step. */
  const newest = async (file: string): Promise<Pick<Evidence, "scores" | "scoredSteps">> => {
    let scores = await files.text(file, -2048)
    // What was said in a step may be longer.
    if (newestLine(scores) === undefined) scores = await files.text(file, -1024 * 1024)
    return newestLine(scores)?.of === "step" ? { scores, scoredSteps: await lineCount(file) } : { scores }
  }

  /** Of files that grow, and so are counted on from where that was last. */
  const lineCount = async (file: string): Promise<number> => {
    const size = (await files.size(file)) ?? 0
    const before = counted.get(file)
    const isSame =
      before !== undefined && before.read <= size && before.behind === (await behind(files, file, before.read))
    let { read, lines } = isSame ? before : { read: 0, lines: 0 }
    while (read < size) {
      const bytes = await files.bytes(file, read)
      if (bytes === undefined || bytes.length === 0) break
      read += bytes.length
      for (const byte of bytes) if (byte === lineFeed) lines++
    }
    counted.set(file, { read, lines, behind: await behind(files, file, read) })
    return lines
  }

  /** What differs when something has changed: of a finished run its folder's time, of others also what grows. */
  const signatureOf = async (
    path: string,
    { summary: { state }, places }: Omit<Known, "signature">,
  ): Promise<string> => {
    const folder = join(files.root, path)
    const growing =
      state === "finished"
        ? []
        : [
            Layout.locate(places, Layout.trainScores),
            Layout.locate(places, Layout.validationScoresFolder),
            Layout.log,
            Layout.steps,
            Layout.system,
            Layout.trainRollouts,
            Layout.validationRolloutsFolder,
            Layout.batchRollouts,
            Layout.batchOutcomes,
            Layout.samples,
          ]
    const parts = await Promise.all(
      [folder, ...growing.map((name) => join(folder, name))].map(async (file) => {
        const found = await stat(file).catch(() => undefined)
        return found === undefined ? "" : `${found.size}:${found.mtimeMs}`
      }),
    )
    // Whether a writer still lives shows in no file.
    const alive = state === "running" ? isAlive((await files.text(`${path}/${Layout.lock}`)) ?? "") : ""
    return `${parts.join(" ")} ${alive}`
  }

  const refresh = Effect.gen(function* () {
    const now = new Map<string, Known>()
    let level: ReadonlyArray<string> = [files.only]
    for (let depth = 0; depth <= deepest && level.length > 0; depth++) {
      const found = yield* Effect.forEach(level, (path) => Effect.promise(() => look(path)), { concurrency })
      for (const one of found) if ("summary" in one) now.set(one.summary.path, one)
      level = found.flatMap((one) => ("folders" in one ? one.folders : []))
    }
    const changed = [...now.values()].filter((one) => known.get(one.summary.path) !== one).map(({ summary }) => summary)
    const gone = [...known.keys()].filter((path) => !now.has(path))
    known = now
    return { changed, gone }
  })

  return {
    runs: () => [...known.values()].map(({ summary }) => summary),
    has: (path) => known.has(path),
    refresh,
  }
}
