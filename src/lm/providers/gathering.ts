/** Makes a provider from the two ways in which a protocol answers: all at once, and streamed. */
import { Effect, Stream } from "effect"
import type { Response } from "effect/ai"
import type { Completion, LmRequest } from "../Chat.ts"
import type { LmError } from "../LmError.ts"
import { finishPart, type JsonFormat, type Provider, toolCallPart } from "./Provider.ts"

interface Gathering<Gathered> {
  readonly model: string
  /** Streams all answers, whether or not the caller wants a stream. */
  readonly streaming: boolean
  readonly empty: () => Gathered
  /** Reads an answer that arrives all at once into `into`. */
  readonly whole: (request: LmRequest, into: Gathered, format?: JsonFormat) => Effect.Effect<void, LmError>
  /** Streams the texts of an answer; at the end, `into` holds the whole answer. */
  readonly texts: (request: LmRequest, into: Gathered, format?: JsonFormat) => Stream.Stream<string, LmError>
  readonly completed: (request: LmRequest, from: Gathered, format?: JsonFormat) => Effect.Effect<Completion, LmError>
}

export const providerOf = <Gathered>(gathering: Gathering<Gathered>): Provider => {
  const { model, streaming, empty, whole, texts, completed } = gathering
  return {
    model,
    complete: (request, format) =>
      Effect.suspend(() => {
        const into = empty()
        return Effect.andThen(
          streaming ? Stream.runDrain(texts(request, into, format)) : whole(request, into, format),
          Effect.suspend(() => completed(request, into, format)),
        )
      }),
    stream: (request) =>
      Stream.suspend(() => {
        const into = empty()
        let begun = false
        const parts = texts(request, into).pipe(
          Stream.filter((text) => text !== ""),
          Stream.map((delta): ReadonlyArray<Response.StreamPartEncoded> => {
            const part = { type: "text-delta", id: "0", delta } as const
            if (begun) return [part]
            begun = true
            return [{ type: "text-start", id: "0" }, part]
          }),
        )
        const end = Effect.map(
          Effect.suspend(() => completed(request, into)),
          (completion): ReadonlyArray<Response.StreamPartEncoded> => [
            ...(begun ? [{ type: "text-end", id: "0" } as const] : []),
            ...completion.toolCalls.map(toolCallPart),
            finishPart(completion),
          ],
        )
        return Stream.flattenIterable(Stream.concat(parts, Stream.fromEffect(end)))
      }),
  }
}
