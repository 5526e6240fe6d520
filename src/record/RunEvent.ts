/**
 * What trainers and runtimes tell of a run, in the order in which it happened. Sinks turn it into files, a progress
 * line, metrics; who emits it knows none of them.
 *
 * An event is a plain object, so a loop that emits a hundred thousand a second pays for a literal and nothing else; the
 * Schemas are for whoever reads events that came over a wire.
 *
 * @example
 * ```ts
 * const event: RunEvent = { _tag: "Warning", message: "no validation: everySteps is 0" }
 * ```
 */
import { Schema } from "effect"

/** Env steps of the run so far. */
const Step = Schema.Int

export const RunStarted = Schema.TaggedStruct("RunStarted", {
  name: Schema.String,
  env: Schema.String,
  algorithm: Schema.String,
  /** Program → the device that runs it. */
  devices: Schema.Record(Schema.String, Schema.String),
  seed: Schema.Int,
  totalSteps: Schema.Int,
  numEnvs: Schema.Int,
  /** The step that a resumed run goes on from. */
  resumedFromStep: Schema.NullOr(Step),
  config: Schema.Record(Schema.String, Schema.Unknown),
})
export type RunStarted = typeof RunStarted.Type

export const EpisodeEnded = Schema.TaggedStruct("EpisodeEnded", {
  step: Step,
  /** Counted over the run, from 0. */
  episode: Schema.Int,
  /** Which of the envs. */
  env: Schema.Int,
  return: Schema.Number,
  length: Schema.Int,
  terminated: Schema.Boolean,
  truncated: Schema.Boolean,
  truncationReason: Schema.NullOr(Schema.Literals(["env", "max_steps"])),
  /** The reward of its last step. */
  lastReward: Schema.optionalKey(Schema.Number),
})
export type EpisodeEnded = typeof EpisodeEnded.Type

export const UpdateApplied = Schema.TaggedStruct("UpdateApplied", {
  step: Step,
  /** Counted from 1. */
  update: Schema.Int,
  /** By the names that CleanRL made common: `losses/policy_loss`, `charts/learning_rate`. */
  metrics: Schema.Record(Schema.String, Schema.Number),
})
export type UpdateApplied = typeof UpdateApplied.Type

export const ValidationEnded = Schema.TaggedStruct("ValidationEnded", {
  step: Step,
  /** Training episodes that had ended. */
  seenEpisodes: Schema.Int,
  episodes: Schema.Array(
    Schema.Struct({
      return: Schema.Number,
      length: Schema.Int,
      terminated: Schema.Boolean,
      truncated: Schema.Boolean,
    }),
  ),
  meanReturn: Schema.Number,
  /** Population deviation. */
  stdReturn: Schema.Number,
})
export type ValidationEnded = typeof ValidationEnded.Type

export const CheckpointSaved = Schema.TaggedStruct("CheckpointSaved", { step: Step, path: Schema.String })
export type CheckpointSaved = typeof CheckpointSaved.Type

/** Something worth a line in the log. */
export const Note = Schema.TaggedStruct("Note", { message: Schema.String })
export type Note = typeof Note.Type

export const Warning = Schema.TaggedStruct("Warning", { message: Schema.String })
export type Warning = typeof Warning.Type

export const RunEnded = Schema.TaggedStruct("RunEnded", {
  step: Step,
  episodes: Schema.Int,
  reason: Schema.Literals(["finished", "interrupted", "failed"]),
  /** What failed. */
  message: Schema.NullOr(Schema.String),
})
export type RunEnded = typeof RunEnded.Type

export const RunEvent = Schema.Union([
  RunStarted,
  EpisodeEnded,
  UpdateApplied,
  ValidationEnded,
  CheckpointSaved,
  Note,
  Warning,
  RunEnded,
])
export type RunEvent = typeof RunEvent.Type
