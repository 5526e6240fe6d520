/** Calls of OpenAI's protocol to scripted servers. */
import { assert } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient, type HttpClient } from "effect/http"
import { type ChatMessage, LmRequest } from "../../../src/agents/lm/Chat.ts"
import * as OpenAi from "../../../src/agents/lm/providers/openAi.ts"
import { type Fault, type Options, serve, type Server } from "./server.ts"

export const user = (content: string): ChatMessage => ({ role: "user", content })
export const ask = (more: Partial<LmRequest> = {}): LmRequest => ({
  ...LmRequest.defaults,
  model: "m",
  messages: [user("Say hello.")],
  ...more,
})

export const opened = (
  server: Server,
  more: Partial<OpenAi.OpenAiOptions> = {},
  client: Layer.Layer<HttpClient.HttpClient> = FetchHttpClient.layer,
) =>
  Effect.gen(function* () {
    // Build the Layer for the whole test: with `provide`, the Layer's resources would be closed too early.
    const context = yield* Layer.build(client)
    return yield* Effect.provideContext(OpenAi.make({ model: "m", baseUrl: server.url, ...more }), context)
  })

/** A call to a server that does so. */
export const call = (how: Options, request: LmRequest = ask(), more: Partial<OpenAi.OpenAiOptions> = {}) =>
  Effect.gen(function* () {
    const server = yield* serve(how)
    const lm = yield* opened(server, more)
    return { completion: yield* lm.complete(request), asked: server.asked }
  }).pipe(Effect.scoped)

export const failing = (fault: Fault, more: Partial<OpenAi.OpenAiOptions> = {}) =>
  Effect.flip(call({ fault: () => fault }, ask(), more)).pipe(
    Effect.tap((error) =>
      Effect.sync(() => {
        assert.strictEqual(error.attempts, 1)
        assert.match(error.message, /^m: \S.*$/)
      }),
    ),
  )
