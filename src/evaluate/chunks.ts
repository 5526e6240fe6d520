/**
 * The job by which episodes of an evaluation are played on other machines: a chunk is some adjacent episodes of one agent.
 * `execute.ts` asks for chunks; `worker.ts` plays them. Chunks begin at the same episodes in every process, so that a
 * resumed evaluation asks for the same jobs again and gets the answers that are there.
 */
import { Effect, Schema } from "effect"
import { isPlain, type Plain, toSnakeCase } from "../config/Config.ts"
import { sha256 } from "../config/sha256.ts"
import { utf8 } from "../config/utf8.ts"
import { asSaved } from "../config/yaml.ts"
import { DispatchError, job } from "../cluster/Dispatcher.ts"
import { LmError } from "../lm/LmError.ts"
import { CallRecord } from "../lm/middleware/logged.ts"
import { PlayedEpisode } from "./PlayedEpisode.ts"
import { EpisodeRow } from "./rows.ts"
import { ScorerError } from "./Scorer.ts"

/** Some adjacent episodes of one agent, by their indices: `from` is in the chunk, `to` is not. */
export interface Chunk {
  readonly from: number
  readonly to: number
}

/** The most episodes of a chunk, and the number of chunks that an evaluation has at least, if it has so many episodes. */
const largest = 64
const fewest = 256

/** Returns the number of episodes of a chunk, from the number of all episodes alone. */
export const chunkSize = (total: number): number => Math.min(largest, Math.max(1, Math.ceil(total / fewest)))

/** Lists the chunks of so many episodes. */
export const chunksOf = (total: number, size: number): ReadonlyArray<Chunk> =>
  Array.from({ length: Math.ceil(total / size) }, (_, at) => ({
    from: at * size,
    to: Math.min(total, (at + 1) * size),
  }))

export const indicesOf = ({ from, to }: Chunk): ReadonlyArray<number> =>
  Array.from({ length: to - from }, (_, at) => from + at)

const ChunkFields = Schema.Struct({
  played: PlayedEpisode,
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

/** Names a run by its folder and by the settings on which its episodes depend. */
export const runIdOf = (directory: string, identity: Plain): Effect.Effect<string> =>
  Effect.map(sha256(utf8.encode(JSON.stringify([directory, identity]))), (digest) => digest.slice(0, 16))

/** Returns a config as it is saved in the run's folder, which has no secrets, to be sent to other machines. */
export const asSent = (config: Plain): Plain => {
  const saved = asSaved(toSnakeCase(config))
  return isPlain(saved) ? saved : {}
}
