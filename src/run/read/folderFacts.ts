/** Reads facts about a run from the files in its folder. Each file is read only once, when it is first needed. */
import { Effect } from "effect"
import { isPlain } from "../../base/config/plain.ts"
import { jsonValue } from "../../base/text/text.ts"
import { utf8 } from "../../base/text/utf8.ts"
import type { RunEntry } from "../find/RunEntry.ts"
import * as Layout from "../Layout.ts"
import { mostLabelBytes, type RunLabels } from "../manage/labels.ts"
import { labelsIn } from "../manage/labelsFile.ts"
import { attempt } from "./attempt.ts"
import type { configReader } from "./configText.ts"
import type { FileSource } from "./FileSource.ts"
import { once } from "./once.ts"
import { evaluationsIn } from "./validations.ts"

/** The names of the files and folders in a run's folder. */
export interface Listed {
  readonly names: Iterable<string>
}

/** The source and the caches that the readers of several runs share. */
export interface SharedReading {
  readonly source: FileSource
  readonly configs: ReturnType<typeof configReader>
  readonly lineCount: (file: string) => Effect.Effect<number>
}

export type FolderFacts = ReturnType<typeof folderFacts>

export const folderFacts = (entry: RunEntry, { source, configs }: SharedReading, listed: Listed | undefined) => {
  const at = (file: string): string => pathIn(entry.path, file)
  const damaged = new Set<string>()
  const warn = (file: string, problem: string): Effect.Effect<undefined> =>
    Effect.suspend(() => {
      if (damaged.has(file)) return Effect.undefined
      damaged.add(file)
      return Effect.as(source.warn(`${at(file)}: ${problem}`), undefined)
    })

  const names = once(
    Effect.map(listed === undefined ? source.list(entry.path) : Effect.succeed(listed.names), (all) => new Set(all)),
  )
  const has = (file: string): Effect.Effect<boolean> => Effect.map(names, (all) => all.has(file))
  const textOf = (file: string): Effect.Effect<string | undefined> =>
    Effect.flatMap(has(file), (exists) => (exists ? source.text(at(file)) : Effect.undefined))
  const isFinished = has(Layout.returns)

  const jsonOf = <A>(file: string, decode: (data: unknown) => A | undefined, expected: string) =>
    once(
      Effect.flatMap(textOf(file), (text): Effect.Effect<A | undefined> => {
        if (text === undefined) return Effect.undefined
        const data = attempt(() => jsonValue(text))
        if ("problem" in data) return warn(file, `not valid JSON: ${data.problem}`)
        const value = decode(data.value)
        return value === undefined ? warn(file, `expected ${expected}`) : Effect.succeed(value)
      }),
    )
  /** The contents of metrics.json; undefined if it is missing or damaged. */
  const metrics = jsonOf(Layout.metrics, (data) => (isPlain(data) ? data : undefined), "keys and values")
  const labels = labelsFile({ at, has, source, warn })
  const evaluations = jsonOf(Layout.returns, evaluationsIn, "a list of evaluations")

  const configText = once(textOf(Layout.config))
  const reading = (read: (text: string) => unknown): Effect.Effect<unknown> =>
    Effect.flatMap(configText, (text): Effect.Effect<unknown> => {
      if (text === undefined) return Effect.undefined
      const result = attempt(() => read(text))
      return "problem" in result ? warn(Layout.config, `not a config: ${result.problem}`) : Effect.succeed(result.value)
    })
  const configAt = (path: ReadonlyArray<string>): Effect.Effect<unknown> => reading((text) => configs.at(text, path))
  const config = once(reading(configs.tree))

  /** The actual paths of files and folders that the config moves away from their usual paths. */
  const places = once(Effect.map(Effect.forEach(Layout.placeKeys, configAt), Layout.placesAt))
  /** Returns the actual path of a file. The config is read only if the file is missing from its usual place. */
  const located = Effect.fnUntraced(function* (path: string) {
    if (yield* has(path.split("/")[0])) return path
    return Layout.locate(yield* places, path)
  })

  /** Returns the whole lines within the last `bytes` bytes of a file, given its usual path; undefined if it is missing. */
  const tailOf = Effect.fnUntraced(function* (path: string, bytes: number) {
    return yield* tail(source, at(yield* located(path)), bytes)
  })

  return {
    at,
    warn,
    has,
    textOf,
    isFinished,
    metrics,
    labels,
    evaluations,
    configText,
    configAt,
    config,
    places,
    located,
    tailOf,
  }
}

interface LabelsFile {
  readonly at: (file: string) => string
  readonly has: (file: string) => Effect.Effect<boolean>
  readonly source: FileSource
  readonly warn: (file: string, problem: string) => Effect.Effect<undefined>
}

/** Reads the labels that the run's owner gave it; none if their file is missing or damaged. */
const labelsFile = ({ at, has, source, warn }: LabelsFile) =>
  once<RunLabels>(function* () {
    if (!(yield* has(Layout.labels))) return {}
    const bytes = yield* source.part(at(Layout.labels), 0, mostLabelBytes + 1)
    if (bytes === undefined || bytes.length > mostLabelBytes)
      return (yield* warn(Layout.labels, `expected at most ${mostLabelBytes} bytes`)) ?? {}
    const data = attempt(() => jsonValue(utf8.decode(bytes)))
    if ("problem" in data) return (yield* warn(Layout.labels, `not valid JSON: ${data.problem}`)) ?? {}
    return labelsIn(data.value) ?? (yield* warn(Layout.labels, "expected the labels of a run")) ?? {}
  })

/** Returns the path of a run's file. The config may have placed the file at an absolute path. */
const pathIn = (run: string, file: string): string => (file.startsWith("/") ? file : `${run}/${file}`)

/** Returns the whole lines within the last `bytes` bytes of a file; undefined if it is missing. */
const tail = (source: FileSource, file: string, bytes: number): Effect.Effect<string | undefined> =>
  Effect.map(source.part(file, -bytes), (part) => {
    if (part === undefined) return undefined
    const text = utf8.decode(part)
    return part.length < bytes ? text : text.slice(text.indexOf("\n") + 1)
  })

/**
 * Returns the reason why a run failed, from the last lines of its `run.log`; undefined if its last entry is no failure. An
 * entry begins with a line that has the time; in the entry of a failure, lines of a stack may follow.
 */
export const failureIn = (lines: ReadonlyArray<string>): string | undefined => {
  const last = lines.findLast((line) => /^\d{4}-\d\d-\d\dT\S+ /.test(line))
  const failed = /^\S+ failed at (?:step|episode) \d[^:]*(?:: (.*))?$/.exec(last ?? "")
  return failed === null ? undefined : (failed[1] ?? "")
}
