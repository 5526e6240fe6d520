/**
 * What a run's files say about it, each read when it is first asked for: a listing of ten thousand runs opens only what
 * its filters, its order and its columns need.
 */
import { Effect, Exit } from "effect"
import { isPlain, type Plain } from "../../config/Config.ts"
import { decodeReturnFile } from "../evaluation.ts"
import type { ScoreLine } from "../record/scoreLine.ts"
import { attempt } from "./attempt.ts"
import { type ConfigReader, parseConfig } from "./configText.ts"
import type { RunEntry } from "./RunEntry.ts"
import type { RunSource } from "./RunSource.ts"
import { dataAt } from "./Value.ts"
import { bestValidation, curveOf, lastValidation, playedIn, scoreLines, type Validation } from "./validations.ts"
import * as Layout from "../Layout.ts"

export type RunState = "finished" | "running" | "stopped"

export interface RunFacts {
  readonly entry: RunEntry
  /** `return.json` is written last. */
  readonly isFinished: Effect.Effect<boolean>
  readonly state: Effect.Effect<RunState>
  readonly steps: Effect.Effect<number | undefined>
  /** The mean return of the last validation, and of the best. */
  readonly validation: Effect.Effect<number | undefined>
  readonly bestValidation: Effect.Effect<number | undefined>
  readonly curve: Effect.Effect<ReadonlyArray<Validation>>
  /** Undefined where there is none, or only a damaged one. */
  readonly metrics: Effect.Effect<Plain | undefined>
  readonly configText: Effect.Effect<string | undefined>
  readonly config: Effect.Effect<unknown>
  readonly configAt: (path: ReadonlyArray<string>) => Effect.Effect<unknown>
}

/** A line of ours is about 300 bytes. */
const tailBytes = 4096

export const runFacts = (entry: RunEntry, source: RunSource, configs: ConfigReader): RunFacts => {
  const at = (file: string): string => (file.startsWith("/") ? file : `${entry.path}/${file}`)
  const damaged = new Set<string>()
  const warn = (file: string, what: string): Effect.Effect<undefined> =>
    Effect.suspend(() => {
      if (damaged.has(file)) return Effect.succeed(undefined)
      damaged.add(file)
      return Effect.as(source.warn(`${at(file)}: ${what}`), undefined)
    })

  const names = once(Effect.map(source.list(entry.path), (found) => new Set(found)))
  const has = (file: string): Effect.Effect<boolean> => Effect.map(names, (found) => found.has(file))
  const textOf = (file: string): Effect.Effect<string | undefined> =>
    Effect.flatMap(has(file), (there) => (there ? source.text(at(file)) : Effect.succeed(undefined)))
  const isFinished = has(Layout.returns)

  const metrics = once(
    Effect.flatMap(textOf(Layout.metrics), (text): Effect.Effect<Plain | undefined> => {
      if (text === undefined) return Effect.succeed(undefined)
      const data = attempt((): unknown => JSON.parse(text))
      if ("problem" in data) return warn(Layout.metrics, `not valid JSON: ${data.problem}`)
      return isPlain(data.value) ? Effect.succeed(data.value) : warn(Layout.metrics, "expected keys and values")
    }),
  )

  const evaluations = once(
    Effect.gen(function* () {
      const text = yield* textOf(Layout.returns)
      if (text === undefined) return undefined
      const read = yield* Effect.exit(decodeReturnFile(text))
      if (Exit.isFailure(read)) return yield* warn(Layout.returns, "not a list of evaluations")
      return read.value.map(({ step, returns_mean: mean, returns_std: std, returns }): Validation => ({
        step,
        mean,
        std,
        episodes: returns.length,
      }))
    }),
  )

  const configText = once(textOf(Layout.config))
  const reading = (read: (text: string) => unknown): Effect.Effect<unknown> =>
    Effect.flatMap(configText, (text): Effect.Effect<unknown> => {
      if (text === undefined) return Effect.succeed(undefined)
      const found = attempt(() => read(text))
      return "problem" in found ? warn(Layout.config, `not a config: ${found.problem}`) : Effect.succeed(found.value)
    })
  const settingAt = (...path: ReadonlyArray<string>): Effect.Effect<unknown> =>
    reading((text) => configs.at(text, path))

  /** The places of the run's scores; undefined where it has none. */
  const scoresPlaces = once(
    Effect.gen(function* () {
      if (yield* has(Layout.scores)) return {}
      const configured = yield* settingAt("runtime", "scores_path")
      return typeof configured === "string" ? Layout.places({ scores: configured }) : undefined
    }),
  )

  const validationFiles = once(
    Effect.gen(function* () {
      const places = yield* scoresPlaces
      if (places === undefined) return []
      const folder = Layout.locate(places, Layout.validationScoresFolder)
      return Layout.validationFilesIn(yield* source.list(at(folder))).map((name) => `${folder}/${name}`)
    }),
  )

  const linesOf = (file: string, text: string | undefined): Effect.Effect<ReadonlyArray<ScoreLine>> => {
    const read = scoreLines(text ?? "")
    const lines = Effect.succeed(read.lines)
    return read.damaged ? Effect.andThen(warn(file, "it has lines that are no scores"), lines) : lines
  }

  const scored = (files: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Validation>> =>
    Effect.gen(function* () {
      const played = yield* Effect.forEach(files, (file) =>
        Effect.flatMap(source.text(at(file)), (text) =>
          Effect.map(linesOf(file, text), (lines) => playedIn(Layout.fileName(file), lines)),
        ),
      )
      return curveOf(played.flat())
    })

  const curve = once(
    Effect.gen(function* () {
      return (yield* evaluations) ?? (yield* scored(yield* validationFiles))
    }),
  )

  /** Of a run that goes on only the newest file is read, and the one before it where that is still empty. */
  const lastScored = once(
    Effect.gen(function* () {
      const [newest = [], before] = (yield* validationFiles)
        .slice(-2)
        .reverse()
        .map((name) => [name])
      const found = yield* scored(newest)
      return found.length > 0 || before === undefined ? found : yield* scored(before)
    }),
  )

  const validation = once(
    Effect.gen(function* () {
      const last = yield* metrics
      const known = numberAt(last, ["validation", "mean_return"])
      if (known !== undefined) return known
      // It ended, and had none.
      if (last !== undefined && dataAt(last, ["validation"]) === null) return undefined
      if (yield* isFinished) return lastValidation(yield* curve)
      return lastValidation(yield* lastScored)
    }),
  )

  const checkpointSteps = once(
    Effect.gen(function* () {
      const dir = yield* settingAt("checkpoint", "dir")
      const folder = Layout.locate(Layout.placesIn({ checkpoint: { dir } }), Layout.checkpoints)
      const names = yield* source.list(at(folder))
      return names.flatMap((name) => {
        const checkpoint = Layout.checkpointOf(name)
        return checkpoint?.unit === "step" ? checkpoint.count : []
      })
    }),
  )

  /** Steps that a run's training scores tell of. */
  const trainedSteps = Effect.gen(function* () {
    const places = yield* scoresPlaces
    if (places === undefined) return undefined
    const file = Layout.locate(places, Layout.trainScores)
    const newest = (yield* linesOf(file, yield* source.tail(at(file), tailBytes))).at(-1)
    if (newest?.of === "episode") return newest.step
    // A line a step: all of them count. One may be longer than what was looked at.
    const { length } = yield* linesOf(file, yield* source.text(at(file)))
    return length === 0 ? undefined : length
  })

  /** How far one came that has not ended: its newest line or checkpoint, of whichever kind. */
  const stepsSoFar = Effect.gen(function* () {
    const trained = yield* trainedSteps
    // A runtime's validations are counted in episodes.
    const talks = (yield* settingAt("agent")) !== undefined
    const validated = talks ? undefined : (yield* lastScored).at(-1)?.step
    const looked = (yield* has(Layout.steps)) ? yield* source.list(at(Layout.steps)) : []
    const kept = looked.flatMap((name) => Layout.stepOf(name) ?? [])
    const reached = [...(yield* checkpointSteps), ...kept, trained, validated].filter((step) => step !== undefined)
    return reached.length === 0 ? undefined : Math.max(...reached)
  })

  const steps = once(
    Effect.gen(function* () {
      const known = numberAt(yield* metrics, ["steps"]) ?? numberAt(yield* metrics, ["train_steps"])
      if (known !== undefined) return known
      return (yield* isFinished) ? ((yield* curve).at(-1)?.step ?? (yield* stepsSoFar)) : yield* stepsSoFar
    }),
  )

  const state = once(
    Effect.gen(function* () {
      if (yield* isFinished) return "finished"
      const owner = yield* textOf(Layout.lock)
      // A lock without a name is one whose writer was killed before it wrote it.
      return owner !== undefined && owner !== "" && (yield* source.isAlive(owner)) ? "running" : "stopped"
    }),
  )

  return {
    entry,
    isFinished,
    state,
    steps,
    validation,
    bestValidation: once(Effect.map(curve, bestValidation)),
    curve,
    metrics,
    configText,
    config: once(reading(parseConfig)),
    configAt: (path) => reading((text) => configs.at(text, path)),
  }
}

/** What an Effect gave the first time. Only one asks at a time: the facts of a run are asked for one after another. */
const once = <A>(effect: Effect.Effect<A>): Effect.Effect<A> => {
  let known: { readonly value: A } | undefined
  return Effect.suspend(() => {
    if (known !== undefined) return Effect.succeed(known.value)
    return Effect.map(effect, (value) => {
      known = { value }
      return value
    })
  })
}

const numberAt = (data: unknown, path: ReadonlyArray<string>): number | undefined => {
  const found = dataAt(data, path)
  return typeof found === "number" ? found : undefined
}
