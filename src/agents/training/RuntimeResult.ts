/**
 * The Schema of the result of a training of language-model agents, which is the content of its `metrics.json`. It also
 * converts this result to the form of other trainings, and reads the training episodes from the run's scores.
 */
import { Effect, Schema } from "effect"
import { isPlain } from "../../base/config/Config.ts"
import { parsedJson } from "../../base/text/text.ts"
import type { RunFiles } from "../../run/store/RunFiles.ts"
import { trainScores } from "../../run/Layout.ts"
import { RunResult, ValidationSummary } from "../../run/RunResult.ts"
import { LmUsage } from "../lm/Chat.ts"

/** A step of a training episode. */
const Moment = Schema.Struct({
  /** The observation after the step; null if the episode ended without one. */
  obs: Schema.NullOr(Schema.String),
  action: Schema.NullOr(Schema.String),
  feedback: Schema.NullOr(Schema.Unknown),
  done: Schema.Boolean,
})
type Moment = typeof Moment.Type

/** The result of a training of language-model agents, and the content of its `metrics.json`. */
export const RuntimeResult = Schema.Struct({
  runDir: Schema.String,
  /** The mean score of all training steps; null if there are none. */
  meanScore: Schema.NullOr(Schema.Finite),
  trainSteps: Schema.Int,
  trainEpisodes: Schema.Int,
  /** All training episodes; null if `scores.jsonl` has no observations or is larger than 8 MB. */
  episodes: Schema.NullOr(Schema.Array(Schema.Array(Moment))),
  /** The mean total score of the last 100 training episodes; null if there are none. */
  meanReturn: Schema.NullOr(Schema.Finite),
  /** The summary of the last validation; null if there was none. */
  validation: Schema.NullOr(ValidationSummary),
  failedValidationEpisodes: Schema.Int,
  usage: LmUsage,
  /** The SHA-256 over all scores and the final memory; equal digests mean equal runs. */
  digest: Schema.String,
  wallSeconds: Schema.Finite,
  stepsPerSecond: Schema.Finite,
})
export type RuntimeResult = typeof RuntimeResult.Type

/** The content of `metrics.json` of any training. */
export const AnyResult = Schema.Union([RunResult, RuntimeResult])

/** Converts a result to the form that `effect run --json` prints for every kind of training. */
export const toRunResult = (result: RunResult | RuntimeResult): RunResult => {
  if (!("trainEpisodes" in result)) return result
  const { runDir, trainSteps, trainEpisodes, meanScore, meanReturn, validation, digest } = result
  const { wallSeconds, stepsPerSecond } = result
  return {
    runDir,
    steps: trainSteps,
    episodes: trainEpisodes,
    meanScore,
    meanReturn,
    validation,
    failedValidations: 0,
    digest,
    wallSeconds,
    stepsPerSecond,
  }
}

/** The largest size in bytes of `scores.jsonl` for which its episodes are copied into the result. */
const largestCopied = 8_000_000

/**
 * Reads the training episodes from the run's `scores.jsonl`; null if the file is too large or has no observations, an
 * empty list if there is no file.
 */
export const episodesOf = Effect.fnUntraced(function* (run: RunFiles) {
  if (!(yield* run.exists(trainScores))) return []
  if ((yield* run.size(trainScores)) > largestCopied) return null
  const episodes = new Map<number, Array<Moment>>()
  for (const line of (yield* run.readText(trainScores)).split("\n")) {
    if (line === "") continue
    const record = parsedJson(line)
    if (!isPlain(record) || typeof record.observation !== "string") return null
    const { next_observation: obs, action, feedback, episode_index: episode, terminated, truncated } = record
    const moment = {
      obs: typeof obs === "string" ? obs : null,
      action: typeof action === "string" ? action : null,
      feedback: feedback ?? null,
      done: terminated === true || truncated === true,
    }
    const moments = episodes.get(Number(episode))
    if (moments === undefined) episodes.set(Number(episode), [moment])
    else moments.push(moment)
  }
  return [...episodes.values()]
})
