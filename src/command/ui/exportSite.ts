/**
 * Exports a results folder as a site of plain files, which any file server can host, for `effect ui --export`. The site has
 * the page, a JSON file for each request that the page makes to the server of `effect ui`, and copies of the runs' files.
 */
import { Effect, FileSystem, Path, type PlatformError } from "effect"
import { type FileError, makeFolder, systemMessage } from "../../base/files/files.ts"
import * as Multirun from "../../trainer/Layout.ts"
import { builtIn } from "../../rl/env/Envs.ts"
import * as Layout from "../../run/Layout.ts"
import { copyName, documentStart, isDocument } from "./copyName.ts"
import { axes, measures } from "./curves/Curve.ts"
import { detailOf } from "./detail.ts"
import { removeEarlier } from "./earlier.ts"
import { allGroups } from "./grouping.ts"
import { mujocoFiles, pageFiles, workerFile } from "./page-node.ts"
import { openResults, type ResultsFolder } from "./results-node.ts"
import type { RunSummary } from "./RunSummary.ts"
import { dataAddress, readStudyIn, studiesOf } from "./studies.ts"
import { everything } from "./transcripts/pageAsked.ts"
import { CommandError } from "../CommandError.ts"

export interface SiteOptions {
  /**
   * Copies all checkpoints, which are most of the bytes of a results folder. Without this, a checkpoint is copied only if it
   * is the newest of its run and small; its policy can then be played in the page.
   */
  readonly checkpoints?: boolean
}

interface Exported {
  readonly runs: number
  readonly files: number
  /** The number of checkpoint files that were not copied. */
  readonly leftOut: number
  /** The number of files that were not copied, because a browser could think from their first bytes that they are pages. */
  readonly documents: number
  /**
   * The number of files of an earlier export that were removed: checkpoints, and files whose names a browser could execute.
   */
  readonly removed: number
  /** The number of files of an earlier export that should be removed but were kept, because somebody has changed them. */
  readonly kept: number
  /** Whether the page cannot play some of the runs, because MuJoCo's package, which their envs need, is not installed. */
  readonly lacksMujoco: boolean
}

type Platform = FileSystem.FileSystem | Path.Path
type ExportFailure = PlatformError.PlatformError | FileError | CommandError

/** Writes the page and its data into a folder that is new, empty, or an earlier export. */
export const exportSite = Effect.fn("exportSite")(function* (
  directory: string,
  out: string,
  options: SiteOptions = {},
): Effect.fn.Return<Exported, CommandError, Platform> {
  return yield* exportResults(yield* openResults(directory), out, options)
})

/**
 * Exports results that are already open. It skips a file that vanishes while it is copied, because runs may be in progress.
 */
export const exportResults = Effect.fnUntraced(
  function* (results: ResultsFolder, out: string, { checkpoints = false }: SiteOptions) {
    const paths = yield* Path.Path
    yield* results.index.refresh
    yield* makeFolder(out)
    yield* refuseUnfit(paths.join(results.files.root, results.files.only), out)
    let files = 0
    const write: Write = Effect.fnUntraced(function* (path, contents) {
      const fs = yield* FileSystem.FileSystem
      const file = paths.join(out, path)
      yield* makeFolder(paths.dirname(file))
      yield* typeof contents === "string" ? fs.writeFileString(file, contents) : fs.writeFile(file, contents)
      files++
    })
    for (const { name, bytes } of [...(yield* pageFiles), yield* workerFile]) yield* write(name, bytes)
    const runs = results.index.runs()
    const needsMujoco = runs.some(({ env }) => bodies.has(env ?? ""))
    if (needsMujoco) for (const file of mujocoFiles.values()) yield* write((yield* file).name, (yield* file).bytes)
    const trainers = results.index.trainers()
    const all = new Set([...runs, ...trainers])
    const exported = yield* Effect.forEach(all, (run) => exportRun(results, run, { out, write, checkpoints }))
    const sum = (key: "copied" | "leftOut" | "documents" | "removed" | "kept"): number =>
      exported.reduce((total, run) => total + run[key], 0)
    yield* exportBands(results, runs, write)
    for (const path of studiesOf(runs)) {
      const study = yield* readStudyIn(results.files, path)
      if (study !== undefined) yield* write(dataAddress(path), JSON.stringify(study))
    }
    yield* write("data/settings.json", JSON.stringify(yield* results.settings(runs)))
    // This file marks the folder as a complete site, so it is written last.
    yield* write(marker, JSON.stringify({ live: false, title: paths.basename(results.files.root), runs, trainers }))
    const [leftOut, documents, removed, kept] = [sum("leftOut"), sum("documents"), sum("removed"), sum("kept")]
    const lacksMujoco = needsMujoco && mujocoFiles.size === 0
    return { runs: runs.length, files: files + sum("copied"), leftOut, documents, removed, kept, lacksMujoco }
  },
  (effect, _results, out, _options) =>
    Effect.mapError(effect, (error) => {
      const message = error._tag === "CommandError" ? error.message : systemMessage(error)
      return CommandError.failed(`--export ${out}: ${message}`)
    }),
)

/** The ids of the envs that MuJoCo simulates in a browser as well. */
const bodies: ReadonlySet<string> = new Set(builtIn.filter(({ body }) => body !== undefined).map(({ id }) => id))

/** A folder that contains this file is an earlier export. */
const marker = "data/runs.json"

/** Fails if the folder `out` is in the results folder, or if it contains files that are not an earlier export. */
const refuseUnfit = Effect.fnUntraced(function* (
  root: string,
  out: string,
): Effect.fn.Return<void, ExportFailure, Platform> {
  const fs = yield* FileSystem.FileSystem
  const paths = yield* Path.Path
  const inside = paths.relative(root, yield* fs.realPath(out))
  if (inside === "" || (inside !== ".." && !inside.startsWith(`..${paths.sep}`))) {
    return yield* CommandError.failed("expected a folder outside of the results, which are copied into it")
  }
  const isEarlier = yield* fs.exists(paths.join(out, marker))
  if (!isEarlier && (yield* fs.readDirectory(out)).length > 0) {
    return yield* CommandError.failed("the folder has other files; name a new or an empty one")
  }
})

type Write = (path: string, contents: string | Uint8Array) => Effect.Effect<void, ExportFailure, Platform>

/** Returns a function that tells whether a file of the run belongs to a checkpoint. The page never reads such files. */
const checkpointsOf = Effect.fnUntraced(function* ({ files, index }: ResultsFolder, run: string) {
  const paths = yield* Path.Path
  const place = Layout.locate(yield* index.read(run).places, Layout.checkpoints)
  // An absolute checkpoint folder may be inside the run's own folder.
  const folder = paths.isAbsolute(place) ? paths.relative(paths.join(files.root, run), place) : place
  const { trainer = null, runs } = index.summary(run) ?? {}
  const weights = trainer === null && runs === undefined ? [] : [Multirun.broadcasts, Multirun.weights, Multirun.base]
  return (path: string) =>
    Layout.belowCheckpoints(path, folder) !== undefined ||
    Layout.stepOfPolicy(path) !== undefined ||
    weights.some((name) => path.startsWith(`${name}/`))
})

const exportRun = Effect.fnUntraced(function* (
  results: ResultsFolder,
  run: RunSummary,
  { out, write, checkpoints }: { readonly out: string; readonly write: Write; readonly checkpoints: boolean },
): Effect.fn.Return<
  Omit<Exported, "runs" | "files" | "lacksMujoco"> & { readonly copied: number },
  ExportFailure,
  Platform
> {
  const { files, curves, transcripts, metrics } = results
  const paths = yield* Path.Path
  const detail = yield* detailOf(results, run)
  yield* write(`data/run/${run.path}/curves.json`, JSON.stringify(yield* curves.of(run.path)))
  yield* write(`data/run/${run.path}/metrics.json`, JSON.stringify(yield* metrics(run.path)))
  // A file server cannot return a part of the list, so the page loads the whole list and searches it itself.
  const list = yield* transcripts.page(run.path, everything)
  yield* write(`data/run/${run.path}/episodes.json`, JSON.stringify(list))
  for (const { key } of list.episodes) {
    const transcript = yield* transcripts.one(run.path, key)
    if (transcript !== undefined) yield* write(`data/run/${run.path}/episodes/${key}.json`, JSON.stringify(transcript))
  }
  const isCheckpoint = yield* checkpointsOf(results, run.path)
  const played = new Set(
    detail.checkpoints.slice(0, 1).flatMap(({ paths, bytes }) => (bytes <= mostPlayed ? paths : [])),
  )
  const isLeftOut = (path: string): boolean => !checkpoints && isCheckpoint(path) && !played.has(path)
  const wanted = detail.files.filter(({ path }) => !isLeftOut(path))
  const leftOut = detail.files.length - wanted.length
  const own = new Set(detail.files.map(({ path }) => path))
  const copied: Array<CopiedFile> = []
  const documents = new Set<string>()
  for (const file of wanted) {
    const from = `${run.path}/${file.path}`
    const real = yield* files.locate(from)
    if (real === undefined) continue
    if (isDocument((yield* files.part(from, 0, documentStart)) ?? new Uint8Array())) {
      documents.add(file.path)
      continue
    }
    const copy = copyName(file.path, (name) => own.has(name))
    if (!(yield* copyUnlessGone(real, paths.join(out, "files", run.path, copy)))) continue
    copied.push(copy === file.path ? file : { ...file, copy })
  }
  const names = new Set(copied.map(({ path, copy = path }) => copy))
  const playable = detail.checkpoints.filter((one) => one.paths.every((path) => names.has(path)))
  // Earlier copies are removed before `run.json`, which lists them, is replaced. So if an export is interrupted, the next one
  // can still remove the remaining files.
  const isUnwanted = (path: string, copy: string): boolean =>
    isLeftOut(path) || documents.has(path) || copyName(copy) !== copy
  const earlier = yield* removeEarlier(out, run.path, isUnwanted)
  yield* write(
    `data/run/${run.path}/run.json`,
    JSON.stringify({ ...detail, files: copied, leftOut, checkpoints: playable }),
  )
  return { copied: copied.length, leftOut, documents: documents.size, ...earlier }
})

/** A file of a run in an exported site, by its path in the run; `copy` is its path in the site if that is different. */
interface CopiedFile {
  readonly path: string
  readonly size: number
  readonly copy?: string
}

/** The largest checkpoint, in bytes, that an export copies so that its policy can be played in the page. */
const mostPlayed = 4 * 1024 * 1024

/** Copies a file; returns false if the file has vanished. */
const copyUnlessGone = Effect.fnUntraced(function* (from: string, to: string) {
  const fs = yield* FileSystem.FileSystem
  yield* makeFolder((yield* Path.Path).dirname(to))
  return yield* fs.copyFile(from, to).pipe(
    Effect.as(true),
    Effect.catch((error) =>
      Effect.flatMap(fs.exists(from), (exists) => (exists ? Effect.fail(error) : Effect.succeed(false))),
    ),
  )
})

/**
 * Writes the bands (mean curves with intervals) of all groups that the page can show without a filter. Each file's name is
 * the number of its group. `bands.json` maps a group to this number; a group is written as the sorted indices of its runs in
 * the list of runs, such as `0,3,4`.
 */
const exportBands = Effect.fnUntraced(function* (
  { curves }: ResultsFolder,
  runs: ReadonlyArray<RunSummary>,
  write: Write,
) {
  const places = new Map(runs.map(({ path }, index) => [path, index]))
  const names: Record<string, string> = {}
  for (const group of allGroups(runs).filter(({ length }) => length > 1)) {
    const name = String(Object.keys(names).length)
    const key = group.map((path) => places.get(path) ?? -1).sort((a, b) => a - b)
    names[key.join(",")] = name
    for (const measure of measures) {
      for (const axis of axes) {
        const band = yield* curves.band(group, measure, axis)
        yield* write(`data/bands/${name}-${measure}-${axis}.json`, JSON.stringify(band))
      }
    }
  }
  yield* write("data/bands.json", JSON.stringify(names))
})
