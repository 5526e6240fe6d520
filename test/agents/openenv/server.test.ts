import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Queue } from "effect"
import { TestClock } from "effect/testing"
import { CartPole, servedTasks, TaskSet, TextEnv } from "../../../src/index.ts"
import { servedNumbers } from "../../../src/rl/env/openenv/ServedNumbers.ts"
import { connect, echo, post, request, served } from "./support.ts"

const observation = (observed: object, reward: number | null = null, done = false) => ({
  type: "observation",
  data: { observation: observed, reward, done },
})

const refusal = (code: string, message: string, more: object = {}) => ({
  type: "error",
  data: { message, code, ...more },
})

const wrong = (loc: ReadonlyArray<string>, msg: string, type = "value_error") =>
  refusal("VALIDATION_ERROR", "Invalid message", { errors: [{ type, loc, msg }] })

const step = (text: string) => ({ type: "step", data: { text } })

describe("a session of a server of OpenEnv", () => {
  it.effect("plays the task of its seed, from the beginning after each reset", () =>
    Effect.gen(function* () {
      const open = new Set<object>()
      const url = yield* served(yield* echo(open))
      const { ask } = yield* connect(`${url}/ws`)
      const reset = { type: "reset", data: { seed: 7, episode_id: "first" } }
      const first = yield* ask(reset)
      assert.deepStrictEqual(yield* ask(step("on")), observation({ text: "on" }, 0))
      assert.deepStrictEqual(yield* ask({ type: "state" }), {
        type: "state",
        data: { episode_id: "first", step_count: 1 },
      })
      assert.deepStrictEqual(yield* ask(reset), first)
      assert.strictEqual(open.size, 1)
      assert.deepStrictEqual(yield* ask(step("end")), observation({ text: "Over." }, 1, true))
      assert.deepInclude(yield* ask(step("on")), { type: "error" })
      const chosen = yield* ask({ type: "reset", data: { seed: 7, task: 2 } })
      assert.match(JSON.stringify(chosen), /Task 2/)
      for (const last of [false, false, false, true])
        assert.deepStrictEqual(yield* ask(step("on")), observation({ text: "on" }, 0, last))
      const over = refusal("EXECUTION_ERROR", "echo: the episode is over; expected a reset")
      assert.deepStrictEqual(yield* ask(step("on")), over)
    }).pipe(Effect.scoped),
  )

  it.effect("refuses what is no message, and goes on", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* echo())
      const { ask } = yield* connect(`${url}/ws`)
      assert.deepStrictEqual(
        yield* ask(step("on")),
        refusal("EXECUTION_ERROR", "echo: no episode has begun; expected a reset first"),
      )
      assert.deepInclude(yield* ask("{bad"), { type: "error" })
      assert.deepStrictEqual(yield* ask({ type: "fly" }), refusal("UNKNOWN_TYPE", "Unknown message type: fly"))
      assert.deepStrictEqual(yield* ask({}), refusal("UNKNOWN_TYPE", "Unknown message type: undefined"))
      const textless = { toString: 1, valueOf: 1 }
      const shown = JSON.stringify(textless)
      assert.deepStrictEqual(yield* ask({ type: textless }), refusal("UNKNOWN_TYPE", `Unknown message type: ${shown}`))
      assert.deepStrictEqual(yield* ask({ type: "step" }), wrong(["data"], "Field required", "missing"))
      assert.deepStrictEqual(
        yield* ask({ type: "reset", data: [] }),
        wrong(["data"], "Expected an object", "dict_type"),
      )
      assert.deepStrictEqual(
        yield* ask({ type: "state", data: {} }),
        wrong(["data"], "Extra inputs are not permitted", "extra_forbidden"),
      )
      assert.deepInclude(yield* ask({ type: "reset", data: { seed: -1 } }), { type: "error" })
      assert.deepInclude(yield* ask({ type: "reset", data: { episode_id: "x".repeat(256) } }), { type: "error" })
      assert.deepStrictEqual(
        yield* ask({ type: "reset", data: { task: 3 } }),
        refusal("EXECUTION_ERROR", "echo: task: expected a whole number from 0 to 2"),
      )
      yield* ask({ type: "reset" })
      assert.deepStrictEqual(yield* ask({ type: "step", data: {} }), wrong([], 'expected a key "text", found none'))
      assert.deepStrictEqual(
        yield* ask({ type: "step", data: { text: 1 } }),
        wrong([], "text: expected a value of type string, found 1"),
      )
      assert.match(JSON.stringify(yield* ask(step("throw"))), /"env \\"echo-\d\\" threw at step 1: broken"/)
      assert.deepStrictEqual(yield* ask(step("on")), observation({ text: "on" }, 0))
    }).pipe(Effect.scoped),
  )

  it.effect("ends at `close`, at bytes, at JSON that is no object, and at a message that is too large", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* echo(), { maxMessageBytes: 1000 })
      const endOf = (message: unknown) =>
        Effect.gen(function* () {
          const { ask, next } = yield* connect(`${url}/ws`)
          const first = yield* ask(message)
          return first !== null && typeof first === "object" && "closed" in first
            ? [first]
            : [first, yield* Effect.promise(next)]
        }).pipe(Effect.scoped)
      assert.deepStrictEqual(yield* endOf({ type: "close" }), [{ closed: 1000 }])
      const noObject = refusal("SESSION_ERROR", "expected an object of JSON")
      assert.deepStrictEqual(yield* endOf([]), [noObject, { closed: 1000 }])
      const bytes = refusal("SESSION_ERROR", "expected a text, found bytes")
      assert.deepStrictEqual(yield* endOf(new Uint8Array(3)), [bytes, { closed: 1000 }])
      assert.deepStrictEqual(yield* endOf("x".repeat(1001)), [{ closed: 1009 }])
    }).pipe(Effect.scoped),
  )

  it.effect("has a place of its own, which is free again when the client hangs up or does nothing for long", () =>
    Effect.gen(function* () {
      const open = new Set<object>()
      const url = yield* served(yield* echo(open), { most: 2, idleSeconds: 10 })
      const one = yield* connect(`${url}/ws`)
      const other = yield* connect(`${url}/ws`)
      yield* one.ask({ type: "reset" })
      yield* other.ask({ type: "reset" })
      const more = yield* connect(`${url}/ws`)
      const full = "Server at capacity: 2/2 sessions active. Cannot accept new connections."
      assert.deepStrictEqual(
        yield* Effect.promise(more.next),
        refusal("CAPACITY_REACHED", full, { active_sessions: 2, max_sessions: 2 }),
      )
      assert.deepStrictEqual(yield* Effect.promise(more.next), { closed: 1000 })
      assert.deepStrictEqual(yield* post(`${url}/reset`, {}), [503, { detail: full }])
      one.hangUp()
      yield* Effect.promise(async () => {
        while (open.size > 1) await new Promise(setImmediate)
      })
      const third = yield* connect(`${url}/ws`)
      assert.deepInclude(yield* third.ask({ type: "reset" }), { type: "observation" })
      yield* TestClock.adjust("6 seconds")
      yield* third.ask(step("on"))
      yield* TestClock.adjust("6 seconds")
      const idle = refusal("SESSION_ERROR", "the session was not used for 10 seconds")
      assert.deepStrictEqual(yield* Effect.promise(other.next), idle)
      assert.deepStrictEqual(yield* Effect.promise(other.next), { closed: 1000 })
      assert.deepStrictEqual(yield* third.ask(step("on")), observation({ text: "on" }, 0))
    }).pipe(Effect.scoped),
  )

  it.effect("does not end as unused while its requests run or come, in each way", () =>
    Effect.gen(function* () {
      const steps = yield* Queue.unbounded<Deferred.Deferred<void>>()
      const ends = { observation: "on", feedback: { score: 0, target: null, message: "" }, terminated: false }
      const slow = TextEnv.make({
        id: "slow",
        type: "slow",
        begin: () => ({ state: null, observation: "" }),
        step: (state) =>
          Effect.gen(function* () {
            const ended = yield* Deferred.make<void>()
            yield* Queue.offer(steps, ended)
            yield* Deferred.await(ended)
            return { state, ...ends }
          }),
      })
      const url = yield* served(yield* servedTasks(TaskSet.of("slow", [slow])), { idleSeconds: 10 })
      const { ask } = yield* connect(`${url}/ws`)
      yield* ask({ type: "reset" })
      const stepping = yield* Effect.forkChild(ask(step("on")))
      const running = yield* Queue.take(steps)
      yield* TestClock.adjust("1 minute")
      yield* Deferred.succeed(running, undefined)
      assert.deepStrictEqual(yield* Fiber.join(stepping), observation({ text: "on" }, 0))
      yield* TestClock.adjust("6 seconds")
      assert.deepInclude(yield* ask({ type: "state" }), { type: "state" })

      const tools = yield* served(yield* echo(), { idleSeconds: 10 })
      const mcp = yield* connect(`${tools}/mcp`)
      const rpc = (method: string, params: object = {}) => ({ jsonrpc: "2.0", id: 1, method, params })
      const created = JSON.stringify((yield* post(`${tools}/mcp`, rpc("openenv/session/create")))[1])
      const [, session_id = ""] = /"session_id":"([^"]+)"/.exec(created) ?? []
      const counting = { name: "count", session_id }
      for (let at = 0; at < 3; at++) {
        assert.match(JSON.stringify(yield* mcp.ask(rpc("tools/list"))), /"result"/)
        assert.match(JSON.stringify(yield* post(`${tools}/mcp`, rpc("tools/call", counting))), /"result"/)
        yield* TestClock.adjust("6 seconds")
      }
      yield* TestClock.adjust("6 seconds")
      assert.match(JSON.stringify(yield* Effect.promise(mcp.next)), /was not used for 10 seconds/)
      const ended = JSON.stringify(yield* post(`${tools}/mcp`, rpc("tools/call", counting)))
      assert.match(ended, /Unknown session_id/)
    }).pipe(Effect.scoped),
  )

  it.live(
    "waits for a client that does not read",
    () =>
      Effect.gen(function* () {
        let steps = 0
        const long = TextEnv.make({
          id: "long",
          type: "long",
          begin: () => ({ state: null, observation: "" }),
          step: (state) => {
            steps++
            const observation = "x".repeat(2 ** 16)
            return { state, observation, feedback: { score: 0, target: null, message: "" }, terminated: false }
          },
        })
        const url = yield* served(yield* servedTasks(TaskSet.of("long", [long])))
        const { ask, send, pause, resume, next } = yield* connect(`${url}/ws`)
        yield* ask({ type: "reset" })
        pause()
        const all = 600
        for (let at = 0; at < all; at++) send(step("on"))
        const other = yield* connect(`${url}/ws`)
        // Once the first session does nothing during many requests of the other one, it waits.
        for (let still = 0, before = -1; still < 100; still = steps === before ? still + 1 : 0) {
          before = steps
          yield* other.ask({ type: "state" })
        }
        assert.isBelow(steps, all)
        resume()
        for (let at = 0; at < all; at++) yield* Effect.promise(next)
        assert.strictEqual(steps, all)
      }).pipe(Effect.scoped),
    { tags: "slow" },
  )

  it.effect("calls tools, whose rewards come with steps", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* echo())
      const { ask } = yield* connect(`${url}/ws`)
      const listed = yield* ask({ type: "step", data: { type: "list_tools" } })
      assert.match(JSON.stringify(listed), /"name":"echo","description":"Repeats a message.","input_schema":/)
      yield* ask({ type: "reset" })
      const call = (name: string, parameters: object) =>
        ask({ type: "step", data: { type: "call_tool", tool_name: name, arguments: parameters } })
      const result = (text: string, data: unknown, isError = false) => ({
        content: [{ type: "text", text }],
        structured_content: typeof data === "string" ? null : data,
        meta: null,
        data,
        is_error: isError,
      })
      assert.deepStrictEqual(
        yield* call("echo", { message: "hi" }),
        observation({ tool_name: "echo", result: result("hi", "hi"), error: null }),
      )
      assert.deepStrictEqual(
        yield* call("count", {}),
        observation({ tool_name: "count", result: result('{"calls":1}', { calls: 1 }), error: null }),
      )
      assert.match(JSON.stringify(yield* call("fly", {})), /"error_type":"tool_not_found"/)
      assert.match(JSON.stringify(yield* call("echo", {})), /"is_error":true/)
      const rpc = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "count" } }
      assert.deepStrictEqual(yield* ask({ type: "mcp", data: rpc }), {
        type: "mcp",
        data: { jsonrpc: "2.0", id: 1, result: result('{"calls":1}', { calls: 1 }) },
      })
    }).pipe(Effect.scoped),
  )
})

describe("requests to a server of OpenEnv", () => {
  it.effect("are answered as by other servers", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* echo(), { maxMessageBytes: 1000 })
      assert.deepStrictEqual(yield* request(`${url}/health`), [200, { status: "healthy" }])
      assert.deepStrictEqual(yield* request(`${url}/state`), [200, { episode_id: null, step_count: 0 }])
      const [, schema] = yield* request(`${url}/schema`)
      assert.hasAllKeys(schema, ["action", "observation", "state"])
      const [, metadata] = yield* request(`${url}/metadata`)
      assert.deepInclude(metadata, { name: "echo", version: "1.0.0", author: null })
      const [, openApi] = yield* request(`${url}/openapi.json`)
      assert.match(JSON.stringify(openApi), /"\/reset":\{"post"/)
      assert.deepStrictEqual(yield* request(`${url}/fly`), [404, { detail: "Not Found" }])
      assert.deepStrictEqual(yield* request(`${url}/reset`), [405, { detail: "Method Not Allowed" }])
      const [status, first] = yield* post(`${url}/reset`, { seed: 7 })
      assert.strictEqual(status, 200)
      assert.deepStrictEqual((yield* post(`${url}/reset`, { seed: 7 }))[1], first)
      assert.deepStrictEqual(yield* request(`${url}/reset`, { method: "POST" }).pipe(Effect.map(([code]) => code)), 200)
      assert.deepStrictEqual(yield* post(`${url}/step`, { action: { text: "end" } }), [
        200,
        { observation: { text: "Over." }, reward: 1, done: true },
      ])
      const problem = (type: string, loc: ReadonlyArray<string>, msg: string): readonly [number, unknown] => [
        422,
        { detail: [{ type, msg, loc }] },
      ]
      assert.deepStrictEqual(yield* post(`${url}/step`, {}), problem("missing", ["body", "action"], "Field required"))
      assert.deepStrictEqual(
        yield* post(`${url}/step`, { action: {} }),
        problem("value_error", ["body", "action"], 'expected a key "text", found none'),
      )
      assert.deepStrictEqual(
        yield* post(`${url}/reset`, { seed: -1 }),
        problem("greater_than_equal", ["body", "seed"], "Expected a number of at least 0"),
      )
      assert.strictEqual((yield* post(`${url}/reset`, "{bad"))[0], 422)
      assert.strictEqual((yield* post(`${url}/reset`, "[]"))[0], 422)
      assert.deepStrictEqual(yield* post(`${url}/step`, { action: { text: "x".repeat(1000) } }), [
        413,
        { detail: "expected a body of at most 1000 bytes" },
      ])
      assert.strictEqual((yield* post(`${url}/step`, { action: { text: "throw" } }))[0], 500)
    }).pipe(Effect.scoped),
  )

  it.effect("call tools by JSON-RPC, in a session that lasts", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* echo(), { most: 1 })
      const call = (method: string, params: object = {}) =>
        Effect.map(post(`${url}/mcp`, { jsonrpc: "2.0", id: 1, method, params }), ([, answer]) => answer)
      const failed = (code: number, message: string, id: number | null = 1) => ({
        jsonrpc: "2.0",
        id,
        error: { code, message, data: null },
      })
      assert.match(JSON.stringify(yield* call("tools/list")), /"name":"count".*"inputSchema"/)
      assert.match(JSON.stringify(yield* call("tools/call", { name: "count" })), /"data":\{"calls":0\}/)
      assert.deepStrictEqual(yield* call("fly"), failed(-32601, "Method not found: fly"))
      assert.deepStrictEqual(yield* call("tools/call"), failed(-32602, "Missing 'name' in params"))
      const created = yield* call("openenv/session/create")
      const [, id = ""] = /"session_id":"([^"]+)"/.exec(JSON.stringify(created)) ?? []
      const session = { session_id: id }
      yield* call("tools/call", { name: "echo", arguments: { message: "x" }, ...session })
      assert.match(JSON.stringify(yield* call("tools/call", { name: "count", ...session })), /"data":\{"calls":1\}/)
      assert.match(JSON.stringify(yield* call("openenv/session/create")), /"code":-32000.*"max_sessions":1/)
      assert.deepStrictEqual(yield* call("openenv/session/close", session), {
        jsonrpc: "2.0",
        id: 1,
        result: { ...session, closed: true },
      })
      const unknown = failed(-32602, `Unknown session_id: ${id}`)
      assert.deepStrictEqual(yield* call("tools/call", { name: "count", ...session }), unknown)
      assert.deepStrictEqual((yield* post(`${url}/mcp`, "{"))[1], failed(-32700, "Parse error", null))
      assert.match(JSON.stringify((yield* post(`${url}/mcp`, { jsonrpc: "1.0" }))[1]), /-32600/)
      const { ask } = yield* connect(`${url}/mcp`)
      assert.match(JSON.stringify(yield* ask({ jsonrpc: "2.0", id: 2, method: "tools/list" })), /"id":2,"result"/)
      // The session of a WebSocket keeps its place until the connection ends.
      const own = JSON.stringify(yield* ask({ jsonrpc: "2.0", id: 3, method: "openenv/session/create" }))
      const [, socket = ""] = /"session_id":"([^"]+)"/.exec(own) ?? []
      assert.deepStrictEqual(
        yield* call("openenv/session/close", { session_id: socket }),
        failed(-32600, "Cannot close active WebSocket-managed session via MCP method"),
      )
      const without = yield* served(yield* echo(new Set(), false))
      const [, answer] = yield* post(`${without}/mcp`, { jsonrpc: "2.0", id: 1, method: "tools/list" })
      assert.deepStrictEqual(answer, failed(-32603, "Environment does not support MCP"))
    }).pipe(Effect.scoped),
  )

  it.effect("need the right host, and the key if there is one", () =>
    Effect.gen(function* () {
      const key = "a-secret-key"
      const url = yield* served(yield* echo(), { key })
      const statusOf = (path: string, headers: Readonly<Record<string, string>> = {}) =>
        Effect.map(request(`${url}${path}`, { headers }), ([status]) => status)
      assert.strictEqual(yield* statusOf("/health"), 401)
      assert.strictEqual(yield* statusOf("/wrong-key-12/health"), 401)
      assert.strictEqual(yield* statusOf(`/${key}/health`), 200)
      assert.strictEqual(yield* statusOf("/health", { authorization: `Bearer ${key}` }), 200)
      assert.strictEqual(yield* statusOf(`/${key}/health`, { origin: "http://example.org" }), 403)
      const refused = yield* Effect.flip(connect(`${url}/ws`))
      assert.include(refused.message, "401")
      const site = yield* Effect.flip(connect(`${url}/${key}/ws`, { origin: "http://example.org" }))
      assert.include(site.message, "403")
      const { ask } = yield* connect(`${url}/${key}/ws`)
      assert.deepInclude(yield* ask({ type: "reset" }), { type: "observation" })
      const withHeader = yield* connect(`${url}/ws`, { authorization: `Bearer ${key}` })
      assert.deepInclude(yield* withHeader.ask({ type: "reset" }), { type: "observation" })
    }).pipe(Effect.scoped),
  )
})

describe("an env with numbers that is served", () => {
  it.effect("gives the same episode for the same seed, and checks actions", () =>
    Effect.gen(function* () {
      const url = yield* served(yield* servedNumbers(CartPole.env))
      const { ask } = yield* connect(`${url}/ws`)
      const play = Effect.gen(function* () {
        const seen = [yield* ask({ type: "reset", data: { seed: 3 } })]
        for (let at = 0; !JSON.stringify(seen.at(-1)).includes('"done":true'); at++)
          seen.push(yield* ask({ type: "step", data: { action: at % 2 } }))
        return seen
      })
      const first = yield* play
      assert.isAbove(first.length, 9)
      assert.deepStrictEqual(yield* play, first)
      assert.deepStrictEqual(
        yield* ask({ type: "step", data: { action: 0 } }),
        refusal("EXECUTION_ERROR", "CartPole-v1: the episode is over; expected a reset"),
      )
      yield* ask({ type: "reset" })
      assert.deepStrictEqual(
        yield* ask({ type: "step", data: { action: 2 } }),
        wrong([], "action: expected at most 1, found 2"),
      )
    }).pipe(Effect.scoped),
  )
})
