/**
 * Reads the folder of a run. A `RunReader` reads each file only once, when it is first needed: a listing of ten thousand runs
 * opens only the files that its filters, its order and its columns need. It changes no files. `effect runs` and the page of
 * `effect ui` use it.
 *
 * @example
 * ```ts
 * const read = RunReader.over(fileSource)
 * const run = read(unplacedEntry("results/2026-01-31_12-00-00/no-hash_tune_algorithm/ppo/0007"))
 * yield* run.state // "finished"
 * yield* run.configAt(["algorithm", "learning_rate"]) // 0.001
 * ```
 */
import { Effect } from "effect"
import { type RunEntry, trainerOf } from "./find/RunEntry.ts"
import * as Layout from "./Layout.ts"
import { configReader } from "./read/configText.ts"
import type { FileSource } from "./read/FileSource.ts"
import { failureIn, folderFacts, type FolderFacts, type Listed, type SharedReading } from "./read/folderFacts.ts"
import { once } from "./read/once.ts"
import { progressFacts } from "./read/progressFacts.ts"
import { countLines, type ReadPosition, readOn, start } from "./read/readOn.ts"
import { scoreFacts } from "./read/scoreFacts.ts"
import { kindOf } from "./RunSpec.ts"

export type { Listed }

/** The state of a run. `stopped` means that it was interrupted or killed. */
type RunState = "waiting" | "running" | "finished" | "stopped" | "failed"

/** Reads the facts about one run. Most facts are Effects that read files at their first use and keep the result. */
export type RunReader = ReturnType<typeof reader>

/** The number of bytes to read from the end of a log; enough for its last entry, which may have the stack of an error. */
const logBytes = 16_384

/**
 * Makes the function that returns a `RunReader` for a run whose files `source` reads. The readers that it returns share
 * what they parsed of configs. A caller that has already listed the run's folder passes the names as `listed`.
 */
export const over = (source: FileSource) => {
  const configs = configReader()
  const counts = new Map<string, { readonly position: ReadPosition; readonly lines: number }>()

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

/** Makes the reader of one run. */
const reader = (entry: RunEntry, shared: SharedReading, listed?: Listed) => {
  const folder = folderFacts(entry, shared, listed)
  const scores = scoreFacts(folder, shared)
  const { checkpoints, steps, episodes } = progressFacts(folder, scores, shared)
  const { curve, bestCandidate, validation, agents } = scores
  const { isFinished, metrics, labels, configText, config, configAt, places, at, located } = folder
  return {
    entry,
    isFinished,
    ...stateFacts(entry, folder, shared),
    steps,
    episodes,
    validation,
    bestCandidate,
    agents,
    bestValidation: Effect.map(curve, (validations) =>
      validations.reduce<number | undefined>((best, { mean }) => Math.max(best ?? -Infinity, mean), undefined),
    ),
    curve,
    metrics,
    labels,
    configText,
    config,
    configAt,
    places,
    /** Returns the actual path of a file or folder, given its usual path in the run. */
    locate: (path: string) => Effect.map(located(path), at),
    hasCheckpoint: Effect.map(checkpoints, (all) => all.length > 0),
  }
}

/** Reads the kind, the seed, the state and the log of a run. */
const stateFacts = (
  entry: RunEntry,
  { has, textOf, tailOf, isFinished, configText, configAt, config }: FolderFacts,
  { source }: SharedReading,
) => {
  /** Returns the whole lines within the last `bytes` bytes of run.log. */
  const log = Effect.fnUntraced(function* (bytes: number) {
    const text = (yield* tailOf(Layout.log, bytes)) ?? ""
    return text.trimEnd() === "" ? [] : text.trimEnd().split("\n")
  })

  const state = once<RunState>(function* () {
    // A run writes return.json last.
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

  /** The reason why the run failed when it was last started; undefined if it did not fail. */
  const failure = once(Effect.suspend(() => Effect.map(log(logBytes), failureIn)))

  /** The kind of the run; undefined if it has no config.yaml. */
  const kind = once(function* () {
    if ((yield* configText) === undefined) return undefined
    // For speed, read only the key `kind` at first; this does not parse the whole config.
    const kind = yield* configAt(["kind"])
    return kindOf(kind === undefined ? yield* config : { kind })
  })

  /** The seed in the run's path. For a run of a multi-run trainer, the seed in its config. */
  const seed = once(function* () {
    if (entry.seed !== undefined || trainerOf(entry.path) === undefined) return entry.seed
    const own = yield* configAt(["runs", Layout.childNameOf(Layout.fileName(entry.path)), "seed"])
    return typeof own === "number" ? own : undefined
  })

  return { state, failure, kind, seed, log }
}
