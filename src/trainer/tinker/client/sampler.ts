/** Samples from the weights of a sampling session. */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { SampleOutput } from "../wire/outcomes.ts"
import { decodeSequences } from "../wire/protobuf.ts"
import type * as Requests from "../wire/requests.ts"
import { type Connection, decodeJson, jsonRequest, malformed } from "./connection.ts"
import { type Outcome, perform } from "./futures.ts"
import type { TinkerError } from "./TinkerError.ts"
import { Schema } from "effect"

/** A request to sample. */
export interface SampleRequest {
  readonly promptIds: ArrayLike<number>
  /** @default 1 */
  readonly samples?: number
  /** The same seed gives the same tokens. Without it, the server chooses one. */
  readonly seed?: number | null
  readonly temperature?: number
  readonly topP?: number
  /** The number of likeliest tokens to draw from; without it, all. */
  readonly topK?: number
  readonly maxTokens?: number | null
  /** The texts and tokens that end a sample. */
  readonly stop?: ReadonlyArray<string | number>
}

/** A sampled sequence: its tokens with the end token, and their log-probabilities. */
type Sequence = SampleOutput["sequences"][number]

export interface TinkerSampler {
  readonly sample: (request: SampleRequest) => Effect.Effect<ReadonlyArray<Sequence>, TinkerError>
}

const path = "asample"
const Sequences = Schema.Struct({ sequences: SampleOutput.fields.sequences })

const sequencesIn = (connection: Connection, outcome: Outcome) =>
  outcome._tag === "Json"
    ? Effect.map(decodeJson(connection, path, Sequences, outcome.value), ({ sequences }) => sequences)
    : Effect.mapError(
        attempt(() => decodeSequences(outcome.bytes), RangeError),
        ({ message }) => malformed(connection, path, message),
      )

/** Returns what is wrong with sampled sequences; undefined if nothing is. */
const problemIn = (sequences: ReadonlyArray<Sequence>, { samples = 1, maxTokens = null }: SampleRequest) => {
  if (sequences.length !== samples) return `expected ${samples} sequences, found ${sequences.length}`
  for (const { tokens, logprobs } of sequences) {
    if (tokens.length !== logprobs.length) return `expected ${tokens.length} logprobs, found ${logprobs.length}`
    if (maxTokens !== null && tokens.length > maxTokens)
      return `expected at most ${maxTokens} tokens, found ${tokens.length}`
    if (tokens.some((id) => !Number.isInteger(id) || id < 0)) return "expected token ids from 0 on"
    if (!logprobs.every((one) => one <= 0 && Number.isFinite(one)))
      return "expected finite log-probabilities, which are at most 0"
  }
  return undefined
}

/** Makes the sampler of a sampling session. */
export const makeSampler = (connection: Connection, session: string): TinkerSampler => {
  let requests = 0
  return {
    sample: Effect.fnUntraced(function* (request) {
      const {
        promptIds,
        samples = 1,
        seed = null,
        temperature = 1,
        topP = 1,
        topK,
        maxTokens = null,
        stop = [],
      } = request
      const body: typeof Requests.Sample.Type = {
        sampling_session_id: session,
        seq_id: requests++,
        num_samples: samples,
        prompt: { chunks: [{ type: "encoded_text", tokens: Array.from(promptIds) }] },
        sampling_params: {
          temperature,
          top_p: topP,
          top_k: topK ?? -1,
          ...(seed === null ? {} : { seed }),
          ...(maxTokens === null ? {} : { max_tokens: maxTokens }),
          ...(stop.length === 0 ? {} : { stop }),
        },
      }
      const sequences = yield* perform(connection, {
        request: jsonRequest(path, { type: "sample", ...body }),
        protobuf: true,
        // Each sample has tokens and log-probabilities.
        numbers: samples * 2 * (maxTokens ?? Infinity),
        decode: (outcome) => sequencesIn(connection, outcome),
      })
      const problem = problemIn(sequences, request)
      return problem === undefined ? sequences : yield* malformed(connection, path, problem)
    }),
  }
}
