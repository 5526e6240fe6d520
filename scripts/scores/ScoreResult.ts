/**
 * Declares the small files in which docs/scores/results keeps what a training reached, and makes one from what the training
 * wrote. The page and its pictures are made from these files alone.
 */
import { existsSync, globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Schema } from "effect"
import { jsonText } from "../../src/base/text/jsonText.ts"
import { meanOf } from "../../src/base/statistics/resampling.ts"
import type { Row } from "./rows.ts"

const CurvePoint = Schema.Struct({ step: Schema.Int, value: Schema.Finite })

/** The library that trained: this one, or the one that it is compared with. */
const Trainer = Schema.Literals(["effect-rl", "stable-baselines3"])
type Trainer = typeof Trainer.Type

/** A text that a page in Markdown shows as it is: a result by somebody else adds no HTML, links or cells. */
const plainWords = Schema.String.check(Schema.isPattern(/^[^\p{C}<>|`[\]]*$/u))

/** The result of one training: its settings, its scores and its curve. */
export const ScoreResult = Schema.Struct({
  trainer: Trainer,
  algorithm: Schema.NonEmptyString,
  env: Schema.NonEmptyString,
  seed: Schema.Int,
  steps: Schema.Int,
  /** The number of training episodes. */
  episodes: Schema.Int,
  /** The returns of the episodes after the training, with the best actions and frozen normalisation. */
  evaluation: Schema.Array(Schema.Finite),
  /** The mean return of the last 100 training episodes. */
  training: Schema.Finite,
  /** The mean returns of training episodes by their end, in at most `mostPoints` equal parts of the training. */
  curve: Schema.Array(CurvePoint),
  /** The seconds of the training on the clock. */
  seconds: Schema.Finite,
  /** The CPU seconds of the process that trained. */
  cpu_seconds: Schema.Finite,
  /** The processor, and the number of its cores. */
  machine: plainWords,
  command: plainWords,
  /** The commit of this project; for another library its version. */
  version: plainWords,
  /** The digest of the run's weights and scores, with which `effect replay` compares; another library has none. */
  digest: Schema.NullOr(plainWords),
})
export type ScoreResult = typeof ScoreResult.Type

/** The return of a training episode, and the step at which it ended. */
export interface EndedEpisode {
  readonly step: number
  readonly value: number
}

/** The number of episodes of the evaluation after a training. */
export const evaluationEpisodes = 20
/** The largest number of points in a curve. */
const mostPoints = 100
/** The number of the last training episodes whose mean return counts as a score. */
const lastEpisodes = 100

/** Rounds a return to six digits, so that files stay small. */
const rounded = (value: number): number => Number(value.toPrecision(6))

/** Divides a training into `mostPoints` equal parts, and returns the mean return of the episodes that ended in each. */
export const curveOf = (episodes: ReadonlyArray<EndedEpisode>, steps: number): ScoreResult["curve"] => {
  const partOf = ({ step }: EndedEpisode): number =>
    Math.min(mostPoints, Math.max(1, Math.ceil((step * mostPoints) / steps)))
  return [...Map.groupBy(episodes, partOf)]
    .sort(([one], [other]) => one - other)
    .map(([part, ended]) => ({
      step: Math.round((part * steps) / mostPoints),
      value: rounded(meanOf(ended.map(({ value }) => value))),
    }))
}

/** Makes a result from the episodes of a training and of its evaluation. Throws if one of them has none. */
export const resultOf = (
  facts: Omit<ScoreResult, "evaluation" | "training" | "curve" | "episodes">,
  episodes: ReadonlyArray<EndedEpisode>,
  evaluation: ReadonlyArray<number>,
): ScoreResult => {
  if (episodes.length === 0 || evaluation.length === 0)
    throw new Error(`${facts.command}: expected episodes of the training and of its evaluation, found none`)
  return {
    ...facts,
    episodes: episodes.length,
    evaluation: evaluation.map(rounded),
    training: rounded(meanOf(episodes.slice(-lastEpisodes).map(({ value }) => value))),
    curve: curveOf(episodes, facts.steps),
  }
}

/** Returns the mean return of the evaluation episodes, which is the score of a training. */
export const scoreOf = ({ evaluation }: ScoreResult): number => meanOf(evaluation)

type RowName = Pick<Row, "algorithm" | "env">

const rowFolder = (results: string, trainer: Trainer, { algorithm, env }: RowName): string =>
  join(results, trainer, algorithm, env)

export const resultFile = (results: string, trainer: Trainer, row: RowName, seed: number): string =>
  join(rowFolder(results, trainer, row), `${seed}.json`)

/** The file with all settings of a row, which all of its trainings share. */
const settingsFile = (results: string, row: RowName): string =>
  join(rowFolder(results, "effect-rl", row), "settings.json")

/** Writes a file by renaming a finished one, so that an interrupted process leaves no half of it. */
const writeWhole = (file: string, value: unknown): void => {
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(`${file}.tmp`, `${JSON.stringify(value)}\n`)
  renameSync(`${file}.tmp`, file)
}

export const writeResult = (results: string, result: ScoreResult): void =>
  writeWhole(resultFile(results, result.trainer, result, result.seed), result)

/** Returns the settings of a row as its first training had them; undefined if it has none. */
export const readSettings = (results: string, row: RowName): unknown => {
  const file = settingsFile(results, row)
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined
}

export const writeSettings = (results: string, row: RowName, settings: unknown): void =>
  writeWhole(settingsFile(results, row), settings)

const decodeResult = Schema.decodeUnknownSync(jsonText(ScoreResult))

/** Reads a result. Throws if the file holds none, with its name. */
export const readResult = (file: string): ScoreResult => {
  try {
    return decodeResult(readFileSync(file, "utf8"))
  } catch (error) {
    throw new Error(`${file}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}

/** Reads all results, in the order of their files. The names of some envs are paths of several folders. */
export const readResults = (results: string): ReadonlyArray<ScoreResult> =>
  globSync(join(results, "**/*.json"))
    .filter((file) => /[/\\]\d+\.json$/.test(file))
    .sort()
    .map(readResult)
