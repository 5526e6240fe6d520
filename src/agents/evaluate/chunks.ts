/**
 * The job by which episodes of an evaluation are played on other machines: a chunk is some adjacent episodes of one agent.
 * `execute.ts` asks for chunks; `worker.ts` plays them. Chunks begin at the same episodes in every process, so that a
 * resumed evaluation asks for the same jobs again and gets the answers that are there.
 */
import { Schema } from "effect"
import { DispatchError, job } from "../../spread/cluster/Dispatcher.ts"
import { LmError } from "../lm/LmError.ts"
import { CallRecord } from "../lm/middleware/logged.ts"
import { EpisodeToScore } from "./PlayedEpisode.ts"
import { EpisodeRow } from "./rows.ts"
import { ScorerError } from "./Scorer.ts"

const ChunkFields = Schema.Struct({
  played: EpisodeToScore,
  row: EpisodeRow,
  /** The calls of models, if they are logged. */
  calls: Schema.Array(CallRecord),
})
export type ChunkEpisode = typeof ChunkFields.Type

/**
 * An episode as it travels: JSON that fits the Schema. It is not decoded, because that would reorder its keys, but the
 * files of the run must have the same text as on one machine.
 */
const ChunkEpisode = Schema.declare(Schema.is(ChunkFields))

/** The job that plays a chunk. Its failures are those of the evaluation, which end it. */
export const chunkJob = job({
  name: "evaluation",
  payload: Schema.Struct({
    /** Names the run: no two runs have the same. */
    run: Schema.String,
    /** The whole config of the evaluation, without secrets: each machine takes API keys from its own environment. */
    config: Schema.Record(Schema.String, Schema.Unknown),
    /** The settings on which the episodes depend, with the digest of the data set. A worker refuses to play others. */
    identity: Schema.Record(Schema.String, Schema.Unknown),
    agent: Schema.Int,
    from: Schema.Int,
    to: Schema.Int,
  }),
  result: Schema.Array(ChunkEpisode),
  failure: Schema.Union([LmError, ScorerError, DispatchError]),
  key: ({ run, agent, from, to }) => `${run} agent ${agent + 1} episodes ${from + 1}-${to}`,
})
export type ChunkPayload = Parameters<(typeof chunkJob)["key"]>[0]
