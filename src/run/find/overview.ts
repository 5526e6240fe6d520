/** Collects all facts about one run from its files, and formats them as text. `effect runs show` calls it. */
import { Effect } from "effect"
import { jsonValue } from "../../base/text/text.ts"
import { attempt } from "../read/attempt.ts"
import * as Layout from "../Layout.ts"
import { leaves } from "./diff.ts"
import { runLine } from "./query.ts"
import type { RunReader } from "../RunReader.ts"
import type { FileSize, FileSource } from "../read/FileSource.ts"
import { thinned } from "../../base/statistics/resampling.ts"
import { bar, bytesText, cell, indented, short, table } from "./table.ts"
import { dataAt, valueOfData } from "./Value.ts"
import type { ValidationPoint } from "../read/validations.ts"
import { highest } from "../../base/statistics/extremes.ts"

/** Reads all facts about one run, as `effect runs show` prints them. */
export const overview = Effect.fnUntraced(function* (run: RunReader, source: FileSource) {
  const config = yield* run.config
  const files = yield* source.tree(run.entry.path)
  const folder = Layout.locate(Layout.placesIn(config), Layout.checkpoints)
  const checkpoints = yield* checkpointsIn(run.entry.path, folder, files, source)
  const ownCheckpoints = checkpoints.filter(({ path }) => Layout.belowCheckpoints(`${path}/`, folder) !== undefined)
  // A run that another library wrote has no config.yaml, so it cannot be resumed.
  const line = yield* runLine(run)
  const isResumable = !(yield* run.isFinished) && (yield* run.configText) !== undefined
  return {
    ...line,
    /** The reason why the run failed; null if it has not failed. */
    reason: line.state === "failed" ? ((yield* run.failure) ?? null) : null,
    /** The parsed config; null if it is missing or damaged. */
    config: config ?? null,
    metrics: (yield* run.metrics) ?? null,
    validations: yield* run.curve,
    /** The step from which a resume would continue, 0 without checkpoints; null for a finished run. */
    resumesFrom: isResumable
      ? (ownCheckpoints.find(({ latest }) => latest)?.step ?? ownCheckpoints.at(-1)?.step ?? 0)
      : null,
    checkpoints,
    files,
  }
})

export type RunsOverview = Effect.Success<ReturnType<typeof overview>>

const checkpointsIn = Effect.fnUntraced(function* (
  run: string,
  folder: string,
  files: ReadonlyArray<FileSize>,
  source: FileSource,
) {
  const readJson = Effect.fnUntraced(function* (file: string) {
    if (!files.some(({ path }) => path === file)) return undefined
    const text = yield* source.text(`${run}/${file}`)
    const data = attempt(() => jsonValue(text ?? ""))
    if ("value" in data) return data.value
    return yield* Effect.as(source.warn(`${run}/${file}: not valid JSON: ${data.problem}`), undefined)
  })
  const latest = dataAt(yield* readJson(Layout.inFolder(folder, Layout.latestPointer)), ["path"])
  const sizes = new Map<string, number>()
  for (const { path, bytes } of files) {
    const checkpoint = checkpointOf(path, folder)
    if (checkpoint !== undefined) sizes.set(checkpoint, (sizes.get(checkpoint) ?? 0) + bytes)
  }
  const checkpoints = yield* Effect.forEach(sizes, ([path, bytes]) =>
    Effect.map(readJson(`${path}/${Layout.inCheckpoint.manifest}`), (manifest) => {
      const [step, score] = [dataAt(manifest, ["step"]), dataAt(manifest, ["score"])]
      const digits = /(\d+)$/.exec(Layout.fileName(path))?.[1]
      return {
        path,
        step: typeof step === "number" ? step : digits === undefined ? null : Number(digits),
        /** The validation score at the checkpoint's step; null if there was no validation. */
        score: typeof score === "number" ? score : null,
        bytes,
        /** Whether `latest` points to this checkpoint. */
        latest: path === Layout.inFolder(folder, String(latest)),
      }
    }),
  )
  return checkpoints.sort((a, b) => (a.step ?? -1) - (b.step ?? -1))
})

/** Returns the path of a file's checkpoint, in our layout or RLtools' (`steps/{STEP}/checkpoint.h5`), if it has one. */
const checkpointOf = (path: string, folder: string): string | undefined => {
  const below = Layout.belowCheckpoints(path, folder)
  if (below !== undefined) {
    const [name, ...inside] = below.split("/")
    // A checkpoint that is still being written has a name that begins with a dot.
    if (inside.length === 0 || name.startsWith(".")) return undefined
    return Layout.inFolder(folder, name)
  }
  return Layout.stepOfPolicy(path)
}

const curveRows = 20
const barWidth = 30

/** Matches a line of YAML that sets a key to null. */
const isUnset = /^ *\w+: null$/

const indent = (line: string): number => line.length - line.trimStart().length

/**
 * Returns a config's lines without settings that are null. It goes from the last line to the first, to drop groups that
 * become empty.
 */
const withoutUnset = (written: ReadonlyArray<string>): ReadonlyArray<string> => {
  const kept: Array<string> = []
  let isAfterLeftOut = false
  for (const line of written.toReversed()) {
    const isEmptied: boolean = isAfterLeftOut && /^ *\w+:$/.test(line) && indent(kept.at(-1) ?? "") <= indent(line)
    isAfterLeftOut = isEmptied || isUnset.test(line)
    if (!isAfterLeftOut) kept.push(line)
  }
  return kept.reverse()
}

/**
 * Formats an overview for the terminal, with the config as written, without null settings. `paint` colours the state.
 */
export const overviewText = (
  about: RunsOverview,
  configText: string | undefined,
  paint: (state: string) => string = (state) => state,
): string => {
  const { validations, checkpoints, population } = about
  const facts: ReadonlyArray<readonly [string, string | number | null]> = [
    ["time", about.time],
    ["name", about.name],
    ...(about.title === undefined ? [] : [["title", about.title] as const]),
    ...(about.tags === undefined ? [] : [["tags", about.tags.join(", ")] as const]),
    ...(about.archived === true ? [["archived", "yes"] as const] : []),
    ["commit", about.commit],
    ...Object.entries(population),
    ["seed", about.seed],
    ["state", about.state],
    ...(about.reason === null ? [] : [["reason", about.reason] as const]),
    ["steps", about.steps],
    ...(about.resumesFrom === null ? [] : [["resumes from", about.resumesFrom] as const]),
  ]
  const width = highest([
    ...facts.map(([key]) => cell(key).length),
    ...[...leaves(about.metrics).keys()].map((key) => key.length),
  ])
  const lines = (pairs: ReadonlyArray<readonly [string, string]>): string =>
    pairs.map(([key, value]) => `${cell(key).padEnd(width)}  ${value}`).join("\n")
  const section = (title: string, body: string): ReadonlyArray<string> =>
    body.trim() === "" ? [] : ["", title, indented(body)]

  const written = (configText ?? "").split("\n")
  const unset = written.filter((line) => isUnset.test(line)).length

  return [
    about.path,
    indented(lines(facts.map(([key, value]) => [key, key === "state" ? paint(cell(value)) : cell(value)]))),
    ...section("note", (about.note ?? "").split("\n").map(cell).join("\n")),
    ...section(
      unset === 0 ? "config" : `config (and ${unset} that are null)`,
      withoutUnset(written).map(cell).join("\n"),
    ),
    ...section("metrics", lines([...leaves(about.metrics)].map(([key, value]) => [key, metric(value)]))),
    ...section(counted("validations", validations.length, curveRows), curveText(validations)),
    ...section(
      "checkpoints",
      checkpoints.length === 0
        ? ""
        : table(
            ["step", "score", "size", "path"],
            checkpoints.map(({ step, score, bytes, path, latest }) => [
              step,
              score,
              bytesText(bytes),
              latest ? `${path} (latest)` : path,
            ]),
          ),
    ),
    ...section("files", filesText(about.files)),
    "",
  ].join("\n")
}

/** The number of characters after which a text is cut. A digest is shorter. */
const widest = 100

/** Formats a value of metrics.json: rounds numbers, cuts long texts, and shows only the length of a list of objects. */
const metric = (value: unknown): string => {
  if (Array.isArray(value) && value.some((item) => typeof item === "object" && item !== null)) {
    return `${value.length} in metrics.json`
  }
  const single = valueOfData(value)
  if (typeof single === "number") return String(Number(single.toPrecision(10)))
  const text = cell(single)
  return text.length > widest ? `${text.slice(0, widest)}…` : text
}

const counted = (title: string, count: number, most: number): string =>
  count > most ? `${title} (${most} of ${count})` : title

const curveText = (validations: ReadonlyArray<ValidationPoint>): string => {
  const shown = thinned(validations, curveRows)
  // Bars start at 0, or at the lowest mean if that is negative.
  const least = Math.min(0, ...shown.map(({ mean }) => mean))
  const most = Math.max(...shown.map(({ mean }) => mean))
  const agents = [...new Set(shown.flatMap(({ agents = [] }) => agents.map(({ agent }) => agent)))]
  return shown.length === 0
    ? ""
    : table(
        ["step", "mean", "std", ...agents, ""],
        shown.map(({ step, mean, std, agents: own = [] }) => [
          step,
          Number(short(mean)),
          Number(short(std)),
          ...agents.map((name) => {
            const found = own.find(({ agent }) => agent === name)
            return found === undefined ? undefined : Number(short(found.mean))
          }),
          bar(mean, least, most, barWidth),
        ]),
      )
}

/** Lists the files in the run's folder, and for each folder in it the size and the number of all files below. */
const filesText = (files: ReadonlyArray<FileSize>): string => {
  const groups = new Map<string, { count: number; bytes: number }>()
  for (const { path, bytes } of files) {
    const slash = path.indexOf("/")
    const name = slash < 0 ? path : path.slice(0, slash + 1)
    const { count, bytes: sum } = groups.get(name) ?? { count: 0, bytes: 0 }
    groups.set(name, { count: count + 1, bytes: sum + bytes })
  }
  return table(
    [],
    [...groups].map(([name, { count, bytes }]) => [
      name,
      bytesText(bytes),
      name.endsWith("/") ? `${count} ${count === 1 ? "file" : "files"}` : "",
    ]),
  )
}
