/**
 * Defines the job that plays episodes of an evaluation on another machine. A chunk is a range of one agent's episodes.
 * `play.ts` asks for chunks; `worker.ts` plays them. Chunks are the same in every process, so that a resumed evaluation
 * asks for the same jobs again and gets answers that already exist.
 */
import { Schema } from "effect"
import { WorkerError } from "../../spread/workers/WorkerError.ts"
import { job } from "../../spread/cluster/Dispatcher.ts"
import { LmError } from "../lm/LmError.ts"
import { CallRecord } from "../lm/middleware/logged.ts"
import { EpisodeToScore } from "./PlayedEpisode.ts"
import { EpisodeRow } from "./rows.ts"
import { AgentError } from "../agent/AgentError.ts"

const ChunkFields = Schema.Struct({
  played: EpisodeToScore,
  row: EpisodeRow,
  /** The calls of models, if they are logged. */
  calls: Schema.Array(CallRecord),
})
export type ChunkEpisode = typeof ChunkFields.Type

/**
 * An episode in the form in which it is sent: JSON that fits the Schema. It is not decoded, because decoding would reorder
 * its keys, and the run's files must have the same text as on one machine.
 */
const ChunkEpisode = Schema.declare(Schema.is(ChunkFields))

/** The job that plays a chunk. Its failures are failures that end the whole evaluation. */
export const chunkJob = job({
  name: "evaluation",
  payload: Schema.Struct({
    /** The id of the run. No two runs have the same id. */
    run: Schema.String,
    /** The whole config of the evaluation, without secrets: each machine reads API keys from its own environment. */
    config: Schema.Record(Schema.String, Schema.Unknown),
    /**
     * The settings on which the episodes depend, with the digest of the data set. A worker with other settings refuses the
     * job.
     */
    identity: Schema.Record(Schema.String, Schema.Unknown),
    agent: Schema.Int,
    from: Schema.Int,
    to: Schema.Int,
  }),
  result: Schema.Array(ChunkEpisode),
  failure: Schema.Union([LmError, AgentError, WorkerError]),
  key: ({ run, agent, from, to }) => `${run} agent ${agent + 1} episodes ${from + 1}-${to}`,
})
export type ChunkPayload = Parameters<(typeof chunkJob)["key"]>[0]
