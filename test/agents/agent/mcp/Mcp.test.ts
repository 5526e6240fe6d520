import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as Mcp from "../../../../src/agents/agent/Mcp.ts"
import { refuseAll, Trust } from "../../../../src/base/trust/Trust.ts"
import { serveHttp } from "../../../servers/listen.ts"
import { answerEndlessly } from "./endless.ts"
import { answer } from "./server.ts"
import { call, platform, problem, variables } from "./support.ts"

/** Serves the tools of the tests over HTTP, to those who have the token, and returns the address. */
const overHttp = Effect.map(
  serveHttp(async (request, response) => {
    const chunks: Array<Uint8Array> = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.url === "/from") return response.writeHead(307, { location: "/mcp" }).end()
    if (request.headers.authorization !== "Bearer secret") return response.writeHead(401).end()
    if (request.method !== "POST") return response.writeHead(200).end()
    const message = answer(Buffer.concat(chunks).toString())
    if (message === undefined) return response.writeHead(202).end()
    return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(message))
  }),
  ({ url }) => `${url}/mcp`,
)

describe("tools of MCP servers", () => {
  it.live("of an address are called over HTTP, with a token that messages do not show", () =>
    Effect.gen(function* () {
      const url = yield* overHttp
      const tools = yield* Mcp.tools({ url, tokenVariable: "TOKEN" })
      assert.deepStrictEqual(yield* call(tools, "sum", { first_one: 1, b: 2 }), ["3", false])
      assert.strictEqual(yield* problem({ url }), `mcp: ${url} cannot be used: MCP HTTP status 401`)
      const wrong = yield* problem({ url, tokenVariable: "WRONG" })
      assert.notInclude(wrong, "another-secret")
    }).pipe(Effect.scoped, Effect.provide(platform), variables({ TOKEN: "secret", WRONG: "another-secret" })),
  )

  it.live("of an address that redirects are used within its origin, and nothing is sent to another", () =>
    Effect.gen(function* () {
      let reached = 0
      const other = yield* serveHttp((_, response) => {
        reached++
        response.writeHead(202).end()
      })
      const { url } = yield* serveHttp((request, response) => {
        const location = request.url === "/loop" ? "/loop" : `${other.url}/mcp`
        response.writeHead(307, { location }).end()
      })
      assert.strictEqual(
        yield* problem({ url: `${url}/mcp`, tokenVariable: "TOKEN" }),
        `mcp: ${url}/mcp cannot be used: MCP HTTP request failed: ${url}/mcp redirects to ${other.url}, where nothing was sent`,
      )
      assert.include(yield* problem({ url: `${url}/loop` }), "/loop redirects too often")
      assert.strictEqual(reached, 0)
      const tools = yield* Mcp.tools({ url: (yield* overHttp).replace("/mcp", "/from"), tokenVariable: "TOKEN" })
      assert.deepStrictEqual(yield* call(tools, "sum", { first_one: 1, b: 2 }), ["3", false])
    }).pipe(Effect.scoped, Effect.provide(platform), variables({ TOKEN: "secret" })),
  )

  it.live("of an address whose answer never ends are refused, before it takes the memory", () =>
    Effect.gen(function* () {
      const { url } = yield* serveHttp(async (request, response) => {
        const chunks: Array<Uint8Array> = []
        for await (const chunk of request) chunks.push(chunk)
        const message = Buffer.concat(chunks).toString()
        if (request.method !== "POST" || JSON.parse(message).id === undefined) return response.writeHead(202).end()
        response.writeHead(200, { "content-type": "application/json" })
        answerEndlessly(message, response)
        if (JSON.parse(message).method !== "tools/list") response.end()
      })
      assert.match(yield* problem({ url }), /^mcp: http:.* cannot be used: MCP response exceeds maxMessageBytes$/)
    }).pipe(Effect.scoped, Effect.provide(platform)),
  )

  it.effect("of an address in a config are asked about, also on this computer", () =>
    Effect.gen(function* () {
      for (const url of ["http://127.0.0.1:9/mcp", "https://example.org/mcp"]) {
        const mcp = yield* Schema.decodeUnknownEffect(Mcp.McpConfig)({ url })
        const asking = Mcp.permitTools([{ mcp }], { source: "config.yaml" })
        const { message } = yield* Effect.flip(Effect.provideService(asking, Trust, refuseAll))
        assert.include(message, `send texts to "${url}"`)
      }
    }),
  )

  it.live("need a platform", () =>
    Effect.map(problem({ url: "http://127.0.0.1:1" }), (message) =>
      assert.match(message, /^mcp: servers need a place to run; provide/),
    ),
  )
})
