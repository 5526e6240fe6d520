import { Effect, Schema } from "effect"
import { isPlain } from "../config/Config.ts"
import type { RunFiles } from "./store/RunFiles.ts"
import type { RunStoreError } from "./store/RunStoreError.ts"
import { trainScores } from "./Layout.ts"
import { RunResult, ValidationSummary } from "./RunResult.ts"
import { LmUsage } from "../lm/Chat.ts"

/** A step of a training episode. */
export const Moment = Schema.Struct({
  /** What was seen after the step; null where there was nothing more to see. */
  obs: Schema.NullOr(Schema.String),
  action: Schema.NullOr(Schema.String),
  feedback: Schema.NullOr(Schema.Unknown),
  done: Schema.Boolean,
})
export type Moment = typeof Moment.Type

/** What a run of agents that talk gives back, and what its `metrics.json` holds. */
export const RuntimeResult = Schema.Struct({
  runDir: Schema.String,
  /** Over training steps; null where there are none. */
  meanScore: Schema.NullOr(Schema.Finite),
  trainSteps: Schema.Int,
  trainEpisodes: Schema.Int,
  /** Every training episode; null where `scores.jsonl` has no observations in it, or is too long to repeat. */
  episodes: Schema.NullOr(Schema.Array(Schema.Array(Moment))),
  /** Mean score of the last 100 training episodes. */
  meanReturn: Schema.NullOr(Schema.Finite),
  /** The last validation. */
  validation: Schema.NullOr(ValidationSummary),
  failedValidationEpisodes: Schema.Int,
  usage: LmUsage,
  /** SHA-256 over all scores and the final memory. */
  digest: Schema.String,
  wallSeconds: Schema.Finite,
  stepsPerSecond: Schema.Finite,
})
export type RuntimeResult = typeof RuntimeResult.Type

/** What any run's `metrics.json` holds. */
export const AnyResult = Schema.Union([RunResult, RuntimeResult])

/** The same in the words of every run, which `--json` prints. */
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

/** Past so many bytes of scores their episodes are not told again. */
const repeatable = 8_000_000

/** The episodes that the run's scores tell of. */
export const episodesOf = Effect.fnUntraced(function* (
  run: RunFiles,
): Effect.fn.Return<RuntimeResult["episodes"], RunStoreError> {
  if (!(yield* run.exists(trainScores))) return []
  if ((yield* run.size(trainScores)) > repeatable) return null
  const episodes = new Map<number, Array<Moment>>()
  for (const line of (yield* run.readText(trainScores)).split("\n")) {
    if (line === "") continue
    const record: unknown = JSON.parse(line)
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
