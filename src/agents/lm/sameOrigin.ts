/** Keeps the requests of a client at their origin: no redirection leads a text or a key to another server. */
import { Effect, Option } from "effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import { HttpClientError, TransportError } from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import { redirected } from "./exchange.ts"

/** A server that redirects more often than this is no server that answers. */
const mostRedirections = 10

/** Returns a client that follows redirections within their origin, and fails at one that leads to another. */
export const keptAtOrigin = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(client, (first, request) =>
    Effect.gen(function* () {
      const init = Option.getOrUndefined(yield* Effect.serviceOption(FetchHttpClient.RequestInit))
      const manually = Effect.provideService(FetchHttpClient.RequestInit, { ...init, redirect: "manual" })
      let response = yield* manually(first)
      let asked: HttpClientRequest.HttpClientRequest = request
      for (let followed = 0; ; followed++) {
        const from = URL.parse(asked.url)
        const next = from === null ? undefined : redirected(asked, from, response)
        if (from === null || next === undefined) return response
        const { origin } = new URL(next.url)
        const problem =
          origin === from.origin ? "redirects too often" : `redirects to ${origin}, where nothing was sent`
        if (origin !== from.origin || followed === mostRedirections)
          return yield* new HttpClientError({
            reason: new TransportError({
              request: asked,
              cause: new Error(`${from.origin}${from.pathname} ${problem}`),
            }),
          })
        asked = next
        response = yield* manually(client.execute(next))
      }
    }),
  )
