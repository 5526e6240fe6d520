/** The settings of a gateway: its limits, recorded answers, and how it passes responses on. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Node from "../../../../src/node.ts"
import { disk } from "../../../run/store/disk.ts"
import { serve } from "../../lm/server.ts"
import { send } from "../opened.ts"
import { rolloutsIn, running } from "./running.ts"

const machine = Layer.mergeAll(disk, Node.httpClient)

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "gateway-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true })),
)

const post = (url: string, path: string, body: object) => send(`${url}${path}`, { body: JSON.stringify(body) })

const codeIn = (text: string): unknown => JSON.parse(text).error.code

describe("the limits of a gateway", () => {
  it.live("are settings: on calls, on sizes and on bodies", () =>
    Effect.gen(function* () {
      const asking = (content: string) => ({ model: "m", messages: [{ role: "user", content }] })
      /** Sends bodies to one session after another, and returns the statuses and codes of the answers. */
      const answers = (config: object, bodies: ReadonlyArray<readonly [string, object]>) =>
        running({ config }, (url) =>
          Effect.forEach(bodies, ([id, body]) =>
            Effect.map(post(url, `/sessions/${id}/v1/chat/completions`, body), ({ status, text }) =>
              status === 200 ? status : codeIn(text),
            ),
          ),
        )
      const small = asking("x")
      const large = asking("x".repeat(2000))
      const calls = yield* answers(
        { maxCalls: 2 },
        ["a", "a", "a", "b"].map((id) => [id, small] as const),
      )
      assert.deepStrictEqual(calls.used, [200, 200, "too_many_calls", 200])
      const sizes = yield* answers({ maxSessionMb: 0.001 }, [
        ["a", small],
        ["a", large],
        ["b", small],
      ])
      assert.deepStrictEqual(sizes.used, [200, "session_too_large", 200])
      const all = yield* answers({ maxMemoryMb: 0.005 }, [
        ["a", large],
        ["b", large],
      ])
      assert.deepStrictEqual(all.used, [200, "sessions_too_large"])
      const bodies = yield* answers({ maxBodyMb: 0.0010000001, maxReadingMb: 0.0001 }, [
        ["a", small],
        ["a", large],
      ])
      assert.deepStrictEqual(bodies.used, [200, "invalid_body"])
    }).pipe(Effect.provide(machine)),
  )

  it.live("end a session without a call, also after the smallest time", () =>
    Effect.gen(function* () {
      const { files } = yield* running({ config: { idleSeconds: 1e-7 } }, (url) =>
        Effect.gen(function* () {
          yield* send(`${url}/sessions`, { body: '{"id":"a"}' })
          const health = Effect.map(send(`${url}/health`, { method: "GET" }), ({ text }) => JSON.parse(text).sessions)
          while ((yield* health) > 0) yield* Effect.yieldNow
        }),
      )
      assert.deepStrictEqual(
        rolloutsIn(files).map(({ id, ending }) => [id, ending.truncated]),
        [["a", true]],
      )
    }).pipe(Effect.provide(machine)),
  )

  it.live("hold for the conversations that an id continues", () =>
    Effect.gen(function* () {
      const { used } = yield* running({ config: { maxContinuableMb: 0.0005 } }, (url) =>
        Effect.gen(function* () {
          const respond = (body: object) => post(url, "/sessions/a/v1/responses", { model: "m", ...body })
          const first: { readonly id: string } = JSON.parse((yield* respond({ input: "x".repeat(100) })).text)
          const next = yield* respond({ input: "x", previous_response_id: first.id })
          const long: { readonly id: string } = JSON.parse((yield* respond({ input: "x".repeat(300) })).text)
          const late = yield* respond({ input: "x", previous_response_id: long.id })
          return [next.status, late.status, codeIn(late.text)]
        }),
      )
      assert.deepStrictEqual(used, [200, 404, "previous_response_not_found"])
    }).pipe(Effect.provide(machine)),
  )
})

describe("recorded answers", () => {
  it.live("answer the same sessions again without the server, whole, streamed and continued", () =>
    Effect.gen(function* () {
      const cacheDir = yield* folder
      let asked = 0
      const server = yield* serve({ say: () => `answer ${++asked}` })
      const lmConfig = { model: "m", protocol: "openai", baseUrl: server.url, cacheDir, maxRetries: 0 }
      const talk = (url: string) =>
        Effect.gen(function* () {
          const chat = { model: "m", messages: [{ role: "user", content: "Hi" }] }
          const path = "/sessions/a/v1/chat/completions"
          const whole = yield* post(url, path, chat)
          const again = yield* post(url, path, chat)
          const streamed = yield* post(url, path, { ...chat, stream: true, temperature: 0.5 })
          const first = yield* post(url, "/sessions/a/v1/responses", { model: "m", input: "One" })
          const { id }: { readonly id: string } = JSON.parse(first.text)
          const next = { model: "m", input: "Two", previous_response_id: id }
          const second = yield* post(url, "/sessions/a/v1/responses", next)
          return [whole, again, streamed, first, second].map(({ status, text }) => {
            const words = [...text.matchAll(/answer| \d+(?=["\\])/g)].map(([word]) => word)
            return `${status} ${[...new Set(words)].join("")}`
          })
        })
      const config = { responses: "passed" }
      const recording = yield* running({ config: { ...config, lmConfig: { ...lmConfig, cache: "record" } } }, talk)
      assert.deepStrictEqual(
        recording.used,
        [1, 2, 3, 4, 5].map((nth) => `200 answer ${nth}`),
      )
      const before = server.asked.length
      const replay = { ...config, lmConfig: { ...lmConfig, cache: "replay" } }
      const fresh = yield* running({ config: replay }, (url) =>
        Effect.gen(function* () {
          const answers = yield* talk(url)
          const other = yield* post(url, "/sessions/b/v1/chat/completions", {
            model: "m",
            messages: [{ role: "user", content: "Hi" }],
          })
          return { answers, other }
        }),
      )
      assert.deepStrictEqual(fresh.used.answers, recording.used)
      assert.deepStrictEqual([fresh.used.other.status, codeIn(fresh.used.other.text)], [424, "not_recorded"])
      assert.strictEqual(server.asked.length, before)
      const contents = (files: ReadonlyMap<string, Uint8Array>) =>
        rolloutsIn(files)[0].steps.map((step) => (step._tag === "AgentStep" ? step.call.completion.content : ""))
      assert.deepStrictEqual(contents(fresh.files), contents(recording.files))
    }).pipe(Effect.scoped, Effect.provide(machine)),
  )
})
