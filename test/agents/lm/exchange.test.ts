import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Redacted } from "effect"
import { TestClock } from "effect/testing"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import { sendRun } from "../../../src/command/trackers/mlflow.ts"
import { exchange, type ExchangeOptions, ServerRetries, type Site } from "../../../src/agents/lm/exchange.ts"

type Request = HttpClientRequest.HttpClientRequest

const clientOf = (answer: (request: Request) => Response | undefined) => {
  const sent: Array<Request> = []
  const client = HttpClient.make((request) =>
    Effect.suspend(() => {
      sent.push(request)
      const response = answer(request)
      return response === undefined ? Effect.never : Effect.succeed(HttpClientResponse.fromWeb(request, response))
    }),
  )
  return { client, sent }
}

const get = HttpClientRequest.get("http://site/a?signature=secret")
const post = HttpClientRequest.post("http://site/a")

const ask = (client: HttpClient.HttpClient, request: Request, options: ExchangeOptions = {}) => {
  const site: Site = {
    name: "it",
    client,
    origin: "http://site",
    authorization: Redacted.make("Basic YWRhOnMzY3IzdA=="),
    secrets: ["YWRhOnMzY3IzdA==", "s3cr3t"].map((secret) => Redacted.make(secret)),
    hint: "check the key",
  }
  return exchange(site, request, options, Effect.succeed).pipe(
    Effect.provideService(ServerRetries, { maxRetries: 2, startingDelay: 0, backoffFactor: 1, maxDelay: 0, jitter: 0 }),
  )
}

describe("exchange", () => {
  it.effect("hides secrets, also in JSON, and gives the hint for its own server only", () =>
    Effect.gen(function* () {
      const refuse = (request: Request) =>
        new Response(JSON.stringify({ message: `bad ${request.headers["authorization"]} for s3cr3t` }), { status: 401 })
      const { client } = clientOf(refuse)
      const own = yield* Effect.flip(ask(client, get))
      assert.strictEqual(own.message, "it: http://site/a answered 401: bad <redacted> for <redacted>; check the key")
      const other = yield* Effect.flip(ask(client, HttpClientRequest.get("http://other/a")))
      assert.strictEqual(other.message, "it: http://other/a answered 401: bad undefined for <redacted>")
    }),
  )

  it.effect("repeats what may be sent twice after a temporary failure, and nothing else", () =>
    Effect.gen(function* () {
      const { client, sent } = clientOf(() => new Response("busy", { status: 503 }))
      const repeated = yield* Effect.flip(ask(client, get))
      assert.deepStrictEqual(
        [repeated.message, sent.length],
        ["it: no answer after 3 attempts; last failure: http://site/a answered 503: busy", 3],
      )
      yield* Effect.flip(ask(client, post))
      assert.strictEqual(sent.length, 4)
      yield* Effect.flip(ask(client, post, { isRepeatable: true }))
      assert.strictEqual(sent.length, 7)
    }),
  )

  it.effect("ends an answer that is too long, or does not come", () =>
    Effect.gen(function* () {
      const long = clientOf(() => new Response("x".repeat(100)))
      const error = yield* Effect.flip(ask(long.client, get, { mostBytes: 10 }))
      assert.strictEqual(error.message, "it: http://site/a is longer than 10 bytes")
      const silent = clientOf(() => undefined)
      const waiting = yield* Effect.forkChild(Effect.flip(ask(silent.client, post)))
      yield* TestClock.adjust("61 seconds")
      assert.strictEqual((yield* Fiber.join(waiting)).message, "it: http://site/a did not answer within 60 s")
    }),
  )

  it.effect("sends nothing to another origin if redirections stay at their own", () =>
    Effect.gen(function* () {
      const { client, sent } = clientOf(({ url }) => {
        if (url.endsWith("/c")) return new Response("right")
        const location = url.endsWith("/b") ? "/c" : "http://other/b"
        return new Response(null, { status: 308, headers: { location } })
      })
      const options = { redirections: "sameOrigin" } as const
      const error = yield* Effect.flip(ask(client, get, options))
      const place = "http://site/a redirects to http://other"
      assert.strictEqual(error.message, `it: ${place}, where nothing was sent; expected its own answer`)
      assert.lengthOf(sent, 1)
      yield* ask(client, HttpClientRequest.post("http://site/b"), options)
      assert.deepStrictEqual(
        sent.map(({ url }) => new URL(url).pathname),
        ["/a", "/b", "/c"],
      )
    }),
  )

  it.effect("keeps a request's own authorization, and sends none to another host", () =>
    Effect.gen(function* () {
      const { client, sent } = clientOf(({ url }) =>
        url.startsWith("http://site")
          ? new Response(null, { status: 302, headers: { location: "http://other/b" } })
          : new Response("right"),
      )
      yield* ask(client, HttpClientRequest.setHeader(get, "authorization", "RemoteAuth 1"))
      yield* ask(client, get)
      assert.deepStrictEqual(
        sent.map(({ headers }) => headers["authorization"]),
        ["RemoteAuth 1", undefined, "Basic YWRhOnMzY3IzdA==", undefined],
      )
    }),
  )
})

describe("Mlflow.sendRun", () => {
  it.live("marks a run as killed if the export is interrupted", () =>
    Effect.gen(function* () {
      const reached = yield* Deferred.make<void>()
      const { client, sent } = clientOf(({ url }) => {
        if (url.endsWith("runs/log-batch")) return void Deferred.doneUnsafe(reached, Effect.void)
        const answer = url.endsWith("runs/create")
          ? { run: { info: { run_id: "1" } } }
          : { experiment: { experiment_id: "1" } }
        return new Response(JSON.stringify(answer))
      })
      const run = {
        experiment: "e",
        name: "r",
        status: "FINISHED" as const,
        startedAtMillis: 1,
        endedAtMillis: 2,
        params: { a: "1" },
        tags: {},
        metrics: [],
        artifacts: {},
      }
      const server = { url: new URL("http://site"), authorization: undefined }
      const sending = yield* Effect.forkChild(
        Effect.provideService(sendRun(server, run), HttpClient.HttpClient, client),
      )
      yield* Deferred.await(reached)
      yield* Fiber.interrupt(sending)
      const { body, url } = sent[sent.length - 1]
      assert.isTrue(url.endsWith("runs/update"))
      assert.include(body._tag === "Uint8Array" ? new TextDecoder().decode(body.body) : "", '"status":"KILLED"')
    }),
  )
})
