/**
 * Reads the folder of a run. A `RunReader` reads each file when it is first needed, and once: a listing of ten thousand
 * runs opens only the files that its filters, its order and its columns need. It changes no file.
 * `effect runs` and the page of `effect ui` use it.
 *
 * @example
 * ```ts
 * const read = RunReader.over(silentSource)
 * const run = read(unplacedEntry("results/2026-01-31_12-00-00/no-hash_tune_algorithm/ppo/0007"))
 * yield* run.state // "finished"
 * yield* run.configAt(["algorithm", "learning_rate"]) // 0.001
 * ```
 */
import { Effect } from "effect"
import { isPlain } from "../base/config/plain.ts"
import { jsonValue } from "../base/config/text.ts"
import { type RunEntry, trainerOf } from "./find/RunEntry.ts"
import { dataAt } from "./find/Value.ts"
import * as Layout from "./Layout.ts"
import { attempt } from "./read/attempt.ts"
import { configReader } from "./read/configText.ts"
import type { FileSource } from "./read/FileSource.ts"
import { countLines, type Position, readOn, start } from "./read/readOn.ts"
import {
  agentsIn,
  curveOf,
  evaluationsIn,
  type Played,
  playedIn,
  scoreLines,
  type Validation,
} from "./read/validations.ts"
import { failureIn } from "./record/runLog.ts"
import { type ScoreLine, scoreLine } from "./record/scoreLine.ts"
import { utf8 } from "../base/config/utf8.ts"
import { kindOf } from "./RunSpec.ts"

/** Says whether a run is in progress, and if not, how it ended; `stopped` may have been interrupted or killed. */
type RunState = "waiting" | "running" | "finished" | "stopped" | "failed"

/** Reads the facts about one run. Most facts are Effects that read files at their first use and keep the result. */
export type RunReader = ReturnType<typeof reader>

/** The numbers of bytes to read from a score file's end: the second if the first contain no whole line of scores. */
const tailBytes = [4096, 1024 * 1024]

/** The number of bytes to read from the end of a log; enough for its last entry, which may have the stack of an error. */
const logBytes = 16_384

/**
 * Makes the function that returns a `RunReader` for a run whose files `source` reads. The readers that it returns share
 * what they parsed of configs. A caller that has already listed the run's folder passes the names as `listed`.
 */
export const over = (source: FileSource) => {
  const configs = configReader()
  const counts = new Map<string, { readonly position: Position; readonly lines: number }>()

  /** Counts the lines of a file. A second call reads only the bytes that were appended since the first. */
  const lineCount = Effect.fnUntraced(function* (file: string) {
    let { position, lines } = counts.get(file) ?? { position: start, lines: 0 }
    position = yield* readOn(source, file, position, {
      take: (bytes) => {
        lines += countLines(bytes)
        return bytes.length
      },
      restart: () => void (lines = 0),
    })
    counts.set(file, { position, lines })
    return lines
  })

  return (entry: RunEntry, listed?: Listed) => reader(entry, { source, configs, lineCount }, listed)
}

/** The names of the files and folders in a run's folder. */
export interface Listed {
  readonly names: Iterable<string>
}

interface Shared {
  readonly source: FileSource
  readonly configs: ReturnType<typeof configReader>
  readonly lineCount: (file: string) => Effect.Effect<number>
}

/** Makes the reader of one run. */
const reader = (entry: RunEntry, { source, configs, lineCount }: Shared, listed?: Listed) => {
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

  const validationFiles = once(function* () {
    const folder = yield* located(Layout.validationScoresFolder)
    return Layout.validationFilesIn(yield* source.list(at(folder))).map((name) => `${folder}/${name}`)
  })

  const linesOf = (file: string, text: string | undefined): Effect.Effect<ReadonlyArray<ScoreLine>> => {
    const { lines, damaged } = scoreLines(text ?? "")
    return damaged ? Effect.as(warn(file, "it has lines that are no scores"), lines) : Effect.succeed(lines)
  }

  /** Reads the episodes in a score file of validations. Each file is read once, although several facts need it. */
  const episodesIn = Effect.fnUntraced(function* (file: string) {
    const before = played.get(file)
    if (before !== undefined) return before
    const episodes = playedIn(Layout.fileName(file), yield* linesOf(file, yield* source.text(at(file))))
    played.set(file, episodes)
    return episodes
  })
  const played = new Map<string, ReadonlyArray<Played>>()

  const scored = (files: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Validation>> =>
    Effect.map(Effect.forEach(files, episodesIn), (episodes) => curveOf(episodes.flat()))

  const curve = once(function* () {
    return (yield* evaluations) ?? (yield* scored(yield* validationFiles))
  })

  /** The last validation of an unfinished run, from its newest score file, or from the one before if that is empty. */
  const lastScored = once(function* () {
    const files = yield* validationFiles
    const validations = yield* scored(files.slice(-1))
    return validations.length > 0 ? validations : yield* scored(files.slice(-2, -1))
  })

  /** The mean return of the last validation; undefined if there is none. */
  const validation = once(function* () {
    const result = yield* metrics
    const last = numberAt(result, ["validation", "mean_return"])
    if (last !== undefined) return last
    // A null in metrics.json means that the run ended without a validation.
    if (result !== undefined && dataAt(result, ["validation"]) === null) return undefined
    return (yield* (yield* isFinished) ? curve : lastScored).at(-1)?.mean
  })

  /** The score of each agent of a game in the last validation; empty for other runs. */
  const agents = once(function* () {
    const result = yield* metrics
    if (result !== undefined) return agentsIn(dataAt(result, ["validation", "agents"]), "mean_return")
    return (yield* lastScored).at(-1)?.agents ?? []
  })

  const checkpoints = once(function* () {
    const names = yield* source.list(at(yield* located(Layout.checkpoints)))
    return names.flatMap((name) => Layout.checkpointOf(name) ?? [])
  })
  const checkpointSteps = Effect.map(checkpoints, (all) =>
    all.flatMap(({ unit, count }) => (unit === "step" ? count : [])),
  )

  /** The last whole line of the training scores, and the number of steps up to it; undefined if there is none. */
  const newestScore = once(function* () {
    const file = yield* located(Layout.trainScores)
    for (const bytes of tailBytes) {
      const text = yield* tail(source, at(file), bytes)
      if (text === undefined) return undefined
      const { line, isDamaged } = newestIn(text)
      if (isDamaged) yield* warn(file, "it has lines that are no scores")
      if (line === undefined) continue
      if (line.update !== null) return { line, steps: line.update }
      // A language-model agent writes one line per step, so the number of lines is the number of steps. A run of a
      // multi-run trainer is counted in updates.
      const updates = line.update === null ? undefined : line.update + 1
      return { line, steps: line.of === "episode" ? line.step : (updates ?? (yield* lineCount(at(file)))) }
    }
    return undefined
  })

  /** The largest step in an unfinished run's scores, validations, checkpoints and step folders; undefined if none. */
  const stepsSoFar = Effect.gen(function* () {
    const trained = (yield* newestScore)?.steps
    // Trainings of language-model agents number their validations by episodes, so these numbers are not steps.
    const isAgentTraining = (yield* configAt(["agent"])) !== undefined
    const validated = isAgentTraining ? undefined : (yield* lastScored).at(-1)?.step
    const stepNames = (yield* has(Layout.steps)) ? yield* source.list(at(Layout.steps)) : []
    const kept = stepNames.flatMap((name) => Layout.stepOf(name) ?? [])
    const reached = [...(yield* checkpointSteps), ...kept, trained, validated].filter((step) => step !== undefined)
    return reached.length === 0 ? undefined : Math.max(...reached)
  })

  const steps = once(function* () {
    const result = yield* metrics
    const total = numberAt(result, ["steps"]) ?? numberAt(result, ["train_steps"])
    if (total !== undefined) return total
    return (yield* isFinished) ? ((yield* curve).at(-1)?.step ?? (yield* stepsSoFar)) : yield* stepsSoFar
  })

  /** The number of training episodes. */
  const episodes = once(function* () {
    const result = yield* metrics
    const total = numberAt(result, ["train_episodes"]) ?? numberAt(result, ["episodes"])
    if (total !== undefined || (yield* isFinished)) return total
    const line = (yield* newestScore)?.line
    // Agents count their episodes from 1 and write a line per step; other trainings count from 0.
    return line === undefined ? undefined : line.of === "step" ? (line.episode ?? 0) : (line.episode ?? 0) + 1
  })

  /** Returns the whole lines within the last `bytes` bytes of run.log. */
  const log = Effect.fnUntraced(function* (bytes: number) {
    const text = (yield* tail(source, at(yield* located(Layout.log)), bytes)) ?? ""
    return text.trimEnd() === "" ? [] : text.trimEnd().split("\n")
  })

  const state = once<RunState>(function* () {
    // Its return.json is the last file that a run writes.
    if (yield* isFinished) return "finished"
    const isHeld = (owner: string | undefined) =>
      // A lock file without a name was left by a process that was killed before it wrote its name.
      owner === undefined || owner === "" ? Effect.succeed(false) : source.isAlive(owner)
    if (yield* isHeld(yield* textOf(Layout.lock))) return "running"
    const trainer = trainerOf(entry.path)
    const hasBegun = yield* has(Layout.config)
    if (trainer !== undefined && !hasBegun && (yield* isHeld(yield* source.text(`${trainer}/${Layout.lock}`))))
      return "waiting"
    return (yield* failure) === undefined ? "stopped" : "failed"
  })

  /** The reason why the run failed when it was last started; undefined if it did not. */
  const failure = once(Effect.suspend(() => Effect.map(log(logBytes), failureIn)))

  /** The kind of the run; undefined if it has no config.yaml. */
  const kind = once(function* () {
    if ((yield* configText) === undefined) return undefined
    // For speed, read only the key `kind` at first; this does not parse the whole config.
    const kind = yield* configAt(["kind"])
    return kindOf(kind === undefined ? yield* config : { kind })
  })

  /** The seed in the run's path; of a run of a multi-run trainer, that in its config. */
  const seed = once(function* () {
    if (entry.seed !== undefined || trainerOf(entry.path) === undefined) return entry.seed
    const own = yield* configAt(["runs", Layout.childNameOf(Layout.fileName(entry.path)), "seed"])
    return typeof own === "number" ? own : undefined
  })

  return {
    entry,
    isFinished,
    state,
    failure,
    kind,
    seed,
    steps,
    episodes,
    validation,
    agents,
    bestValidation: Effect.map(curve, (validations) =>
      validations.reduce<number | undefined>((best, { mean }) => Math.max(best ?? -Infinity, mean), undefined),
    ),
    curve,
    metrics,
    configText,
    config,
    configAt,
    places,
    /** Returns the actual path of a file or folder, given its usual path in the run. */
    locate: (path: string) => Effect.map(located(path), at),
    hasCheckpoint: Effect.map(checkpoints, (all) => all.length > 0),
    log,
  }
}

/**
 * Returns the last whole line with a score in the end of a score file. `isDamaged` tells whether whole lines after it
 * are not scores. An incomplete last line is ignored: it is still being written.
 */
const newestIn = (text: string): { readonly line: ScoreLine | undefined; readonly isDamaged: boolean } => {
  const whole = text.split("\n").slice(0, -1)
  for (let at = whole.length - 1; at >= 0; at--) {
    const line = scoreLine(whole[at])
    if (line !== undefined) return { line, isDamaged: at < whole.length - 1 }
  }
  return { line: undefined, isDamaged: whole.length > 0 }
}

/** Returns the path of a run's file. The config may have placed the file at an absolute path. */
const pathIn = (run: string, file: string): string => (file.startsWith("/") ? file : `${run}/${file}`)

/** Returns the whole lines within the last `bytes` bytes of a file; undefined if it is missing. */
const tail = (source: FileSource, file: string, bytes: number): Effect.Effect<string | undefined> =>
  Effect.map(source.part(file, -bytes), (part) => {
    if (part === undefined) return undefined
    const text = utf8.decode(part)
    return part.length < bytes ? text : text.slice(text.indexOf("\n") + 1)
  })

/** Makes an Effect that runs once, at its first use. It needs no lock: facts of one run are read one after another. */
const once = <A>(from: Effect.Effect<A> | (() => Generator<Effect.Effect<unknown>, A, never>)): Effect.Effect<A> => {
  const effect = Effect.isEffect(from) ? from : Effect.gen(from)
  let result: { readonly value: A } | undefined
  return Effect.suspend(() => {
    if (result !== undefined) return Effect.succeed(result.value)
    return Effect.map(effect, (value) => {
      result = { value }
      return value
    })
  })
}

const numberAt = (data: unknown, path: ReadonlyArray<string>): number | undefined => {
  const value = dataAt(data, path)
  return typeof value === "number" ? value : undefined
}
