/**
 * Defines the jobs with which other machines play episodes for the training of an agent: chunks of validation episodes, and
 * chunks of training episodes of an agent without a memory. `client.ts` asks for the jobs; `play.ts` does them.
 *
 * A chunk in which the model gave up, or in which a training episode failed, fails as `EndedEarly`, with the episodes that
 * were played: the run treats them as on one machine, but a resumed run plays the chunk again.
 */
import { Schema } from "effect"
import { WorkerError } from "../../../spread/workers/WorkerError.ts"
import { AgentError } from "../../agent/AgentError.ts"
import { job } from "../../../spread/cluster/Dispatcher.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { ProtocolError } from "../../episode/ProtocolError.ts"
import { Rollout } from "../../episode/Rollout.ts"
import { EpisodeToScore, TimedStep } from "../../evaluate/PlayedEpisode.ts"
import { LmError } from "../../lm/LmError.ts"
import { CallRecord } from "../../lm/middleware/logged.ts"
import { Attachment } from "../../../run/spread/Attachment.ts"
import { trainingFields } from "../../../run/spread/SentTraining.ts"
import { DatasetError } from "../../task/TaskSet.ts"

/**
 * Makes the Schema of JSON that fits another Schema. It is not decoded, because decoding would reorder its keys, and the
 * files of a run must keep the order.
 */
const raw = <A>(schema: Schema.Codec<A, unknown>) => Schema.declare(Schema.is(schema))

/** A validation episode that another machine played. */
export const ValidationEpisode = Schema.Struct({
  played: raw(EpisodeToScore),
  /** The error if the model gave no answer after all retries. */
  unanswered: Schema.NullOr(LmError),
  calls: raw(Schema.Array(CallRecord)),
})
export type ValidationEpisode = typeof ValidationEpisode.Type

/** A training episode that another machine played: its rollout, or the failure that ends the training. */
export const TrainingEpisode = Schema.Struct({
  steps: raw(Schema.Array(TimedStep)),
  rollout: Schema.NullOr(raw(Rollout)),
  failure: Schema.NullOr(Schema.Union([AgentError, LmError, EnvError, ProtocolError, DatasetError])),
  calls: raw(Schema.Array(CallRecord)),
})
export type TrainingEpisode = typeof TrainingEpisode.Type

/**
 * Makes the Schema of a chunk's failure, with the episodes that were played before it. A resumed run plays the chunk again.
 */
const endedEarly = <A>(episode: Schema.Codec<A, unknown>) =>
  Schema.TaggedStruct("EndedEarly", { message: Schema.String, episodes: Schema.Array(episode) })

/** The failure of a chunk of validation episodes in which the model gave no answer. */
export const UnansweredChunk = endedEarly(ValidationEpisode)
export type UnansweredChunk = typeof UnansweredChunk.Type

/** The failure of a chunk of training episodes whose last episode failed. */
export const FailedChunk = endedEarly(TrainingEpisode)
export type FailedChunk = typeof FailedChunk.Type

/** The job that plays validation episodes. */
export const validationJob = job({
  name: "agent-validation",
  payload: Schema.Struct({
    ...trainingFields,
    /** The number of training episodes before the validation. */
    seen: Schema.Int,
    /** The agent's memory at that time, as lines of JSON; null if it has none. */
    memory: Schema.NullOr(Attachment),
    /** The digest of the memory, which identifies it in the key of the job. */
    memoryDigest: Schema.String,
    from: Schema.Int,
    to: Schema.Int,
  }),
  result: Schema.Array(ValidationEpisode),
  failure: Schema.Union([LmError, AgentError, UnansweredChunk, WorkerError]),
  key: ({ run, seen, memoryDigest, from, to }) =>
    `${run} after ${seen} episodes ${memoryDigest} tasks ${from + 1}-${to}`,
})

/** The job that plays training episodes of an agent without a memory. */
export const rolloutJob = job({
  name: "agent-rollouts",
  payload: Schema.Struct({ ...trainingFields, from: Schema.Int, to: Schema.Int }),
  result: Schema.Array(TrainingEpisode),
  failure: Schema.Union([FailedChunk, WorkerError]),
  key: ({ run, from, to }) => `${run} episodes ${from + 1}-${to}`,
})
