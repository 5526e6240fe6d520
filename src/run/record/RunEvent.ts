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
import { LogLevel } from "./logLevel.ts"

/** Env steps of the run so far; episodes, where the run is counted in these. */
const Step = Schema.Int

export const RunStarted = Schema.TaggedStruct("RunStarted", {
  name: Schema.String,
  /** What the run is counted in: env steps, or whole episodes of agents that talk. */
  unit: Schema.optionalKey(Schema.Literals(["steps", "episodes"])),
  /** Nothing is to be seen of it in a terminal. */
  quiet: Schema.optionalKey(Schema.Boolean),
  /** How much `run.log` and the terminal are told; `INFO` unless given. */
  logLevel: Schema.optionalKey(LogLevel),
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

/** One step of an agent that talks, as soon as it was made; of validations when all before it are there. */
export const StepScored = Schema.TaggedStruct("StepScored", {
  mode: Schema.Literals(["train", "validation"]),
  /** Training episodes that had ended when it was made. */
  seenEpisodes: Schema.Int,
  /** Both are counted from 1. */
  episode: Schema.Int,
  stepIndex: Schema.Int,
  /** Null where the episode failed here. */
  score: Schema.NullOr(Schema.Number),
  episodeScore: Schema.Number,
  envId: Schema.String,
  envType: Schema.String,
  /** What was seen and done; left out where only scores are wanted. */
  details: Schema.optionalKey(
    Schema.Struct({
      observation: Schema.String,
      /** Null where the model's words held none. */
      action: Schema.NullOr(Schema.String),
      feedback: Schema.NullOr(Schema.Unknown),
      /** The score with what the parser gave or took; left out where that is nothing. */
      reward: Schema.optionalKey(Schema.Number),
      nextObservation: Schema.NullOr(Schema.String),
      terminated: Schema.Boolean,
      truncated: Schema.Boolean,
      truncationReason: Schema.NullOr(Schema.String),
      info: Schema.Record(Schema.String, Schema.Unknown),
      model: Schema.NullOr(Schema.String),
      agent: Schema.String,
      startedAtMillis: Schema.Number,
      endedAtMillis: Schema.Number,
    }),
  ),
  /** What failed. */
  error: Schema.optionalKey(Schema.String),
})
export type StepScored = typeof StepScored.Type

/** An episode, or a whole validation, that was stopped before its end and will be played again: it leaves nothing. */
export const Abandoned = Schema.TaggedStruct("Abandoned", {
  mode: Schema.Literals(["train", "validation"]),
  seenEpisodes: Schema.Int,
})
export type Abandoned = typeof Abandoned.Type

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
  /** Episodes that failed, and are in none of these. */
  failed: Schema.optionalKey(Schema.Int),
})
export type ValidationEnded = typeof ValidationEnded.Type

export const CheckpointSaved = Schema.TaggedStruct("CheckpointSaved", { step: Step, path: Schema.String })
export type CheckpointSaved = typeof CheckpointSaved.Type

/** Something worth a line in the log. */
export const Note = Schema.TaggedStruct("Note", { message: Schema.String })
export type Note = typeof Note.Type

export const Warning = Schema.TaggedStruct("Warning", {
  message: Schema.String,
  /** Something failed, and the run goes on. */
  isError: Schema.optionalKey(Schema.Boolean),
})
export type Warning = typeof Warning.Type

export const RunEnded = Schema.TaggedStruct("RunEnded", {
  step: Step,
  episodes: Schema.Int,
  reason: Schema.Literals(["finished", "interrupted", "stopped", "failed"]),
  /** What failed, or stopped it. */
  message: Schema.NullOr(Schema.String),
})
export type RunEnded = typeof RunEnded.Type

export const RunEvent = Schema.Union([
  RunStarted,
  EpisodeEnded,
  StepScored,
  Abandoned,
  UpdateApplied,
  ValidationEnded,
  CheckpointSaved,
  Note,
  Warning,
  RunEnded,
])
export type RunEvent = typeof RunEvent.Type
