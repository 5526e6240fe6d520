/**
 * Defines the events of a run. The loop of a run emits them in the order in which they happen. Sinks (receivers of events)
 * write them to files, to the terminal or to metrics.
 *
 * An event is a plain object, so that a loop can emit a hundred thousand per second. The Schemas are for programs that
 * receive events from elsewhere.
 *
 * @example
 * ```ts
 * const event: RunEvent = { _tag: "Warning", message: "no validation: everySteps is 0" }
 * ```
 */
import * as Schema from "effect/Schema"
import { FailureCounts } from "../../base/statistics/failureCounts.ts"
import { LogLevel } from "./logLevel.ts"

/** The number of env steps of the run so far; for runs that are counted in episodes, the number of episodes. */
const Step = Schema.Int

export const RunStarted = Schema.TaggedStruct("RunStarted", {
  name: Schema.String,
  /** The unit of the run's steps: env steps (the default), or whole episodes of language-model agents. */
  unit: Schema.optionalKey(Schema.Literals(["steps", "episodes"])),
  /** Whether language-model agents play the episodes, so that each step has a score; true if the unit is episodes. */
  agents: Schema.optionalKey(Schema.Boolean),
  /** Whether the terminal shows no progress and no warnings of this run; false if left out. */
  quiet: Schema.optionalKey(Schema.Boolean),
  /** The level of `run.log` and of the terminal; `INFO` if left out. */
  logLevel: Schema.optionalKey(LogLevel),
  env: Schema.String,
  algorithm: Schema.String,
  /** Maps each compiled program, e.g. `update`, to the device that runs it; for agents, each agent to its model. */
  devices: Schema.Record(Schema.String, Schema.String),
  seed: Schema.Int,
  totalSteps: Schema.Int,
  numEnvs: Schema.Int,
  /** The step from which a resumed run continues; null for a new run. */
  resumedFromStep: Schema.NullOr(Step),
  config: Schema.Record(Schema.String, Schema.Unknown),
})
export type RunStarted = typeof RunStarted.Type

export const EpisodeEnded = Schema.TaggedStruct("EpisodeEnded", {
  step: Step,
  /** The number of the episode in the run, from 0. */
  episode: Schema.Int,
  /** The index of the env among the envs that the run steps in parallel, from 0. */
  env: Schema.Int,
  return: Schema.Number,
  length: Schema.Int,
  terminated: Schema.Boolean,
  truncated: Schema.Boolean,
  truncationReason: Schema.NullOr(Schema.Literals(["env", "max_steps", "diverged"])),
  /** The reward of the last step. */
  lastReward: Schema.optionalKey(Schema.Number),
})
export type EpisodeEnded = typeof EpisodeEnded.Type

/**
 * One step of a language-model agent. In training it is emitted at once. In a validation, whose episodes are played in
 * parallel, it is emitted after all steps of earlier episodes.
 */
export const StepScored = Schema.TaggedStruct("StepScored", {
  mode: Schema.Literals(["train", "validation"]),
  /** The number of training episodes that had ended before this episode; in a validation, before the validation. */
  seenEpisodes: Schema.Int,
  /** The number of the episode, counted from 1. */
  episode: Schema.Int,
  stepIndex: Schema.Int,
  /** The env's score; null if the episode failed at this step. */
  score: Schema.NullOr(Schema.Number),
  episodeScore: Schema.Number,
  envId: Schema.String,
  envType: Schema.String,
  /** The observation, the action and more about the step; left out if the run records only scores. */
  details: Schema.optionalKey(
    Schema.Struct({
      observation: Schema.String,
      /** The action; null if the model's answer contained no action. */
      action: Schema.NullOr(Schema.String),
      feedback: Schema.NullOr(Schema.Unknown),
      /** The score plus a bonus or penalty for the form of the model's answer; left out if there is neither. */
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
  /** The message of the error, if the episode failed at this step. */
  error: Schema.optionalKey(Schema.String),
})
export type StepScored = typeof StepScored.Type

/** Reports that an agent's episode or validation was stopped early. Sinks remove its steps: it will be repeated. */
const Abandoned = Schema.TaggedStruct("Abandoned", {
  mode: Schema.Literals(["train", "validation"]),
  seenEpisodes: Schema.Int,
})

export const UpdateApplied = Schema.TaggedStruct("UpdateApplied", {
  step: Step,
  /** The number of the update, counted from 1. */
  update: Schema.Int,
  /** The metrics, with CleanRL's names: `losses/policy_loss`, `charts/learning_rate`. */
  metrics: Schema.Record(Schema.String, Schema.Number),
})
export type UpdateApplied = typeof UpdateApplied.Type

/** The metric with the mean score of the last validations of a multi-run trainer. The terminal shows it. */
export const validationOfTrainer = "trainer/validation_score"

/** Describes the end of an episode in a validation. */
export const PlayedEpisode = Schema.Struct({
  /** The id of the env in which the episode was played; left out for the run's own env. */
  env: Schema.optionalKey(Schema.String),
  /** The agent that got the return, in a game of several agents. */
  agent: Schema.optionalKey(Schema.String),
  /** False if the episode does not count for the score, because its agent is not named in `validation.agents`. */
  counts: Schema.optionalKey(Schema.Boolean),
  return: Schema.Number,
  length: Schema.Int,
  terminated: Schema.Boolean,
  truncated: Schema.Boolean,
})
export type PlayedEpisode = typeof PlayedEpisode.Type

export const ValidationEnded = Schema.TaggedStruct("ValidationEnded", {
  step: Step,
  /** The number of training episodes that had ended before the validation. */
  seenEpisodes: Schema.Int,
  episodes: Schema.Array(PlayedEpisode),
  /** The mean return of the episodes that count, which is the score of the validation. */
  meanReturn: Schema.Number,
  /** The population standard deviation of these returns (the divisor is n). */
  stdReturn: Schema.Number,
  /** The number of episodes that failed. The list, the mean and the deviation above leave them out. */
  failed: Schema.optionalKey(Schema.Int),
  /** The failed episodes by their reason; left out if there are none. */
  failures: Schema.optionalKey(FailureCounts),
})
export type ValidationEnded = typeof ValidationEnded.Type

const CheckpointSaved = Schema.TaggedStruct("CheckpointSaved", { step: Step, path: Schema.String })

/** A message for `run.log` that is neither a warning nor an error. */
const Note = Schema.TaggedStruct("Note", { message: Schema.String })

export const Warning = Schema.TaggedStruct("Warning", {
  message: Schema.String,
  /** Whether this reports a failure that does not end the run. */
  isError: Schema.optionalKey(Schema.Boolean),
})
export type Warning = typeof Warning.Type

export const RunEnded = Schema.TaggedStruct("RunEnded", {
  step: Step,
  episodes: Schema.Int,
  reason: Schema.Literals(["finished", "interrupted", "stopped", "failed"]),
  /** The message of the error or the interruption, or the reason of an early end; null if the run did all its work. */
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
