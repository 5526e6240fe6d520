/** The page with its data as plain files, which any file server hosts: what the server answers, written down. */
import { existsSync } from "node:fs"
import { copyFile, mkdir, readdir, realpath, writeFile } from "node:fs/promises"
import { basename, dirname, isAbsolute, join, relative, sep } from "node:path"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { Effect } from "effect"
import { makeFolder } from "../config/files.ts"
import { messageOf } from "../config/text.ts"
import { attempt } from "../run/read/attempt.ts"
import * as Layout from "../run/Layout.ts"
import { parseConfig } from "../run/read/configText.ts"
import { axes } from "./curve.ts"
import { measures } from "./curves-node.ts"
import { detailOf } from "./detail-node.ts"
import { removeEarlier } from "./earlier-node.ts"
import { allGroups } from "./grouping.ts"
import { pageFiles } from "./page-node.ts"
import { DashboardError, openResults, type Results } from "./results-node.ts"
import type { RunSummary } from "./RunSummary.ts"
import type { PageAsked } from "./transcripts/transcripts-node.ts"

export interface ExportOptions {
  /** Copies checkpoints too, which are most of the bytes of a results folder. */
  readonly checkpoints?: boolean
}

export interface Exported {
  readonly runs: number
  readonly files: number
  /** Files of checkpoints that were not copied. */
  readonly leftOut: number
  /** Files of checkpoints that an earlier export had copied, and that were removed. */
  readonly removed: number
  /** Files of checkpoints of an earlier export that have changed since, and were therefore not removed. */
  readonly kept: number
}

/** Writes the page and its data into a folder that is new, empty, or an earlier export. */
export const exportSite = Effect.fnUntraced(function* (
  directory: string,
  out: string,
  options: ExportOptions = {},
): Effect.fn.Return<Exported, DashboardError> {
  return yield* exportResults(yield* openResults(directory), out, options)
})

/** As `exportSite`, of results that are open. What vanishes while it is copied is skipped: runs may be going on. */
export const exportResults = Effect.fnUntraced(function* (
  results: Results,
  out: string,
  { checkpoints = false }: ExportOptions = {},
): Effect.fn.Return<Exported, DashboardError> {
  yield* results.index.refresh
  yield* makeFolder(out).pipe(
    Effect.mapError(({ message }) => new DashboardError({ message: `--export ${out}: ${message}` })),
    Effect.provide([NodeFileSystem.layer, NodePath.layer]),
  )
  const page = yield* pageFiles
  let files = 0
  const sums = { leftOut: 0, removed: 0, kept: 0 }
  const write = async (path: string, contents: string | Uint8Array): Promise<void> => {
    await mkdir(dirname(join(out, path)), { recursive: true })
    await writeFile(join(out, path), contents)
    files++
  }
  const writing = (body: () => Promise<void>): Effect.Effect<void, DashboardError> =>
    Effect.tryPromise({
      try: body,
      catch: (error) => new DashboardError({ message: `--export ${out}: ${messageOf(error)}` }),
    })
  const runs = results.index.runs()
  yield* writing(async () => {
    await refuseUnfit(join(results.files.root, results.files.only), out)
    for (const { name, bytes } of page) await write(name, bytes)
    for (const run of runs) {
      const done = await exportRun(results, run, { out, write, checkpoints })
      files += done.copied
      for (const key of ["leftOut", "removed", "kept"] as const) sums[key] += done[key]
    }
    await exportBands(results, runs, write)
  })
  for (const { path } of runs) {
    const metrics = yield* results.metrics(path)
    yield* writing(() => write(`data/run/${path}/metrics.json`, JSON.stringify(metrics)))
  }
  const settings = yield* results.settings(runs)
  yield* writing(() => write("data/settings.json", JSON.stringify(settings)))
  // This file makes the folder a site, so it is written last.
  const list = { live: false, title: basename(results.files.root), runs }
  yield* writing(() => write(marker, JSON.stringify(list)))
  return { runs: runs.length, files, ...sums }
})

const marker = "data/runs.json"

const refuseUnfit = async (root: string, out: string): Promise<void> => {
  const inside = relative(root, await realpath(out))
  if (inside === "" || (inside !== ".." && !inside.startsWith(`..${sep}`))) {
    throw new Error("expected a folder outside of the results, which are copied into it")
  }
  const names = await readdir(out)
  const earlier = existsSync(join(out, marker))
  if (names.length > 0 && !earlier) throw new Error("the folder has other files; name a new or an empty one")
}

const everything: PageAsked = {
  text: "",
  phase: "",
  least: null,
  most: null,
  failed: false,
  order: "oldest",
  from: 0,
  count: Infinity,
  at: null,
}

type Write = (path: string, contents: string | Uint8Array) => Promise<void>

interface Target {
  readonly out: string
  readonly write: Write
  readonly checkpoints: boolean
}

/**
 * Tells which of a run's files belong to checkpoints: the run is resumed from them, or a policy is taken from them, and
 * nothing on the page reads them.
 */
const checkpointsOf = async (
  { files }: Results,
  run: string,
  configText: string | null,
): Promise<(path: string) => boolean> => {
  const config = attempt(() => parseConfig(configText ?? ""))
  const named = Layout.locate(Layout.placesIn("value" in config ? config.value : undefined), Layout.checkpoints)
  // An absolute folder may lie in the run's own.
  const folder = isAbsolute(named) ? relative(join(files.root, run), named) : named
  return (path) => Layout.belowCheckpoints(path, folder) !== undefined || Layout.stepOfPolicy(path) !== undefined
}

const exportRun = async (
  results: Results,
  run: RunSummary,
  { out, write, checkpoints }: Target,
): Promise<Omit<Exported, "runs" | "files"> & { readonly copied: number }> => {
  const { files, curves, transcripts } = results
  const detail = await detailOf(results, run)
  await write(`data/run/${run.path}/curves.json`, JSON.stringify(await curves.of(run.path)))
  // A file server knows no pages: the page has all of the list at once, and looks through it by itself.
  const list = await transcripts.page(run.path, everything)
  await write(`data/run/${run.path}/episodes.json`, JSON.stringify(list))
  for (const { key } of list.episodes) {
    const transcript = await transcripts.one(run.path, key)
    if (transcript === undefined) continue
    await write(`data/run/${run.path}/episodes/${key}.json`, JSON.stringify(transcript))
  }
  const isCheckpoint = await checkpointsOf(results, run.path, detail.config)
  const wanted = detail.files.filter(({ path }) => checkpoints || !isCheckpoint(path))
  const leftOut = detail.files.length - wanted.length
  const copied: Array<(typeof wanted)[number]> = []
  for (const file of wanted) {
    const real = await files.locate(`${run.path}/${file.path}`)
    if (real !== undefined && (await copyUnlessGone(real, join(out, "files", run.path, file.path)))) copied.push(file)
  }
  // Before `run.json` is replaced, which lists them: a repeated export can remove what an interrupted one did not.
  const earlier = checkpoints ? { removed: 0, kept: 0 } : await removeEarlier(out, run.path, isCheckpoint)
  await write(`data/run/${run.path}/run.json`, JSON.stringify({ ...detail, files: copied, leftOut }))
  return { copied: copied.length, leftOut, ...earlier }
}

/** Whether the file was still there. */
const copyUnlessGone = async (from: string, to: string): Promise<boolean> => {
  await mkdir(dirname(to), { recursive: true })
  try {
    await copyFile(from, to)
    return true
  } catch (error) {
    if (!existsSync(from)) return false
    throw error
  }
}

/** The bands of every group that the page can show, by the places of its runs in the list. */
const exportBands = async ({ curves }: Results, runs: ReadonlyArray<RunSummary>, write: Write): Promise<void> => {
  const places = new Map(runs.map(({ path }, index) => [path, index]))
  const names: Record<string, string> = {}
  for (const group of allGroups(runs).filter(({ length }) => length > 1)) {
    const name = String(Object.keys(names).length)
    const key = group.map((path) => places.get(path) ?? -1).sort((a, b) => a - b)
    names[key.join(",")] = name
    for (const measure of measures) {
      for (const axis of axes) {
        const band = await curves.band(group, measure, axis)
        await write(`data/bands/${name}-${measure}-${axis}.json`, JSON.stringify(band))
      }
    }
  }
  await write("data/bands.json", JSON.stringify(names))
}
