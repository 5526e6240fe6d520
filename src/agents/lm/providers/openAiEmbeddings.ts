/**
 * Embeds texts with a server that has OpenAI's protocol (OpenAI itself, vLLM, llama.cpp, Ollama). Requests are repeated after
 * temporary failures.
 *
 * @example
 * ```ts
 * const embeddings = yield* OpenAiEmbeddings.make({ model: "bge-small", baseUrl: "http://127.0.0.1:8000/v1" })
 * const memory = EmbeddingMemory.make({ embeddings })
 * ```
 */
import { Array as Arr, Effect, Schema } from "effect"
import type * as HttpClient from "effect/http/HttpClient"
import type { Plain } from "../../../base/config/plain.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { inEmbeddingSpan } from "../genAi.ts"
import { failure, read, requestText } from "./http.ts"
import type { LmError } from "../LmError.ts"
import { protocol } from "./openAi.ts"
import { persistently, type Retries } from "../middleware/retrying.ts"
import { serverOf, type LmServerOptions } from "./Server.ts"

export interface OpenAiEmbeddingsOptions extends LmServerOptions, Partial<Retries> {
  /** The number of texts in one request to the server, 256 by default. */
  readonly batch?: number
}

export interface OpenAiEmbeddings {
  /** Passes on the body of another program, and returns the text of the answer. */
  readonly pass: (body: Plain) => Effect.Effect<string, LmError>
  /** Returns a vector for each text, in order. */
  readonly embed: (texts: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Float32Array>, LmError>
}

const Answer = Schema.Struct({
  data: Schema.Array(Schema.Struct({ index: Schema.Int, embedding: Schema.Array(Schema.Finite) })),
})

export const make = Effect.fnUntraced(function* (
  options: OpenAiEmbeddingsOptions,
): Effect.fn.Return<OpenAiEmbeddings, LmError, HttpClient.HttpClient> {
  const { model, batch = 256 } = options
  const { maxRetries = 5, startingDelay = 1, backoffFactor = 2, maxDelay = 10, jitter = 0.25 } = options
  const retries: Retries = { maxRetries, startingDelay, backoffFactor, maxDelay, jitter }
  const server = yield* serverOf(options, protocol)
  const retrying = <A>(once: Effect.Effect<A, LmError>, path: string): Effect.Effect<A, LmError> =>
    Effect.map(
      persistently(retries, model, once, (retry) =>
        Effect.sync(() => stream(0, "retry", "embeddings", path).uniformAt(retry)),
      ),
      ([value]) => value,
    )
  const readAnswer = read(server, Answer)

  const once = (input: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Float32Array>, LmError> =>
    requestText(server, "embeddings", { model, input }).pipe(
      Effect.flatMap(readAnswer),
      Effect.flatMap(({ data }) => {
        const vectors = data.toSorted((a, b) => a.index - b.index).map(({ embedding }) => Float32Array.from(embedding))
        const isWhole = data.length === input.length && new Set(data.map(({ index }) => index)).size === input.length
        if (isWhole) return Effect.succeed(vectors)
        const problem = `expected ${input.length} embeddings, one for each text, found ${data.length}`
        return Effect.fail(failure(server, "malformed", problem))
      }),
    )

  const embedBatch = (input: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<Float32Array>, LmError> =>
    inEmbeddingSpan(model, retrying(once(input), input[0]))

  return {
    pass: (body) => retrying(requestText(server, "embeddings", body), String(body["input"]).slice(0, 100)),
    embed: (texts) => Effect.map(Effect.forEach(Arr.chunksOf(texts, batch), embedBatch), Arr.flatten),
  }
})
