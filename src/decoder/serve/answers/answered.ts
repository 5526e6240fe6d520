/** Generates the answers of a request and makes the response to it, whole or streamed. All routes that generate text use it. */
import { Effect, Stream } from "effect"
import type { EngineError, Generated, GenerateRequest } from "../../inference/Engine.ts"
import type { ApiError } from "../ApiError.ts"
import { type ChunkWriter, json, streamed } from "../responses.ts"
import { timedAnswer } from "../serveMetrics.ts"
import type { ServerState } from "../ServerState.ts"
import { generateAll, streamAll } from "./choices.ts"

interface AnswerForm {
  readonly isStreamed: boolean
  /** Whether each event of a stream has a name (see `streamed`). */
  readonly named?: boolean
  /** Converts a refusal of the engine, so that it names the key of the request. */
  readonly refused: (error: EngineError) => EngineError | ApiError
  /** Makes the body of a whole answer. */
  readonly whole: (generated: ReadonlyArray<Generated>) => unknown
  /** Makes the writer of a stream. */
  readonly chunks: () => ChunkWriter
}

/** Enters the requests, which fails if the server has too many, and answers them. */
export const answered = Effect.fnUntraced(function* (
  { engine, gate, metrics }: ServerState,
  requests: ReadonlyArray<GenerateRequest>,
  { isStreamed, named = false, refused, whole, chunks }: AnswerForm,
) {
  yield* gate.enter(requests.length)
  yield* timedAnswer(metrics)
  if (!isStreamed) return json(whole(yield* Effect.mapError(generateAll(engine, requests), refused)))
  const events = yield* Effect.mapError(streamAll(engine, requests), refused)
  return streamed(Stream.mapError(events, refused), chunks(), { named })
})
