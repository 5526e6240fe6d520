/** Makes the responses of the server: JSON, errors in the protocol's form, and streams of events. */
import { Effect, Stream } from "effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { EngineError } from "../inference/Engine.ts"
import { type ApiError, errorBody, fromEngine, internalError } from "./ApiError.ts"
import type { ChoiceEvent } from "./answers/choices.ts"

/** Makes a response whose body is JSON. */
export const json = (value: unknown, status = 200): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify(value), { status, contentType: "application/json" })

/** Makes the response to a request that was refused or failed. */
export const failure = (error: ApiError): HttpServerResponse.HttpServerResponse => {
  const response = json(errorBody(error), error.status)
  // Clients such as OpenAI's wait for this time before they try again.
  return error.status === 429 || error.status === 503
    ? HttpServerResponse.setHeader(response, "retry-after", "1")
    : response
}

/** Converts an error for the client, and logs it if the server is at fault. */
export const reported = (error: ApiError | EngineError): Effect.Effect<ApiError> => {
  if (error._tag === "ApiError") return Effect.succeed(error)
  const shown = fromEngine(error)
  return shown === internalError ? Effect.as(Effect.logError(error.message), shown) : Effect.succeed(shown)
}

const event = (data: string): string => `data: ${data}\n\n`

/** Converts the events of an answer to the chunks of a stream. */
export interface ChunkWriter {
  readonly push: (event: ChoiceEvent) => ReadonlyArray<object>
  readonly end: () => ReadonlyArray<object>
  /** Returns the event of a failure, if it has another form than a response. */
  readonly failed?: (error: ApiError) => object
}

/**
 * Streams the events of an answer. A failure after the beginning becomes an event, because the status has already been sent.
 */
export const streamed = (
  events: Stream.Stream<ChoiceEvent, EngineError | ApiError>,
  chunks: ChunkWriter,
  /** Whether each event has the name that its key `type` has. Then the last event ends the stream, without `[DONE]`. */
  { named = false }: { readonly named?: boolean } = {},
) => {
  const nameOf = (chunk: object): string => (named && "type" in chunk ? `event: ${String(chunk.type)}\n` : "")
  const written = (all: ReadonlyArray<object>): string =>
    all.map((chunk) => nameOf(chunk) + event(JSON.stringify(chunk))).join("")
  const failed = (error: ApiError): string =>
    written([chunks.failed === undefined ? errorBody(error) : chunks.failed(error)])
  const parts = events.pipe(
    Stream.map((one) => written(chunks.push(one))),
    Stream.concat(Stream.suspend(() => Stream.succeed(written(chunks.end())))),
    Stream.catch((error) => Stream.fromEffect(Effect.map(reported(error), failed))),
    Stream.concat(Stream.succeed(named ? "" : event("[DONE]"))),
    Stream.filter((text) => text !== ""),
  )
  return HttpServerResponse.stream(Stream.encodeText(parts), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-cache" },
  })
}
