/** Every way in which a server goes wrong: the agent gets a typed error, and other sessions are untouched. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { isPlain } from "../../../src/base/config/plain.ts"
import { parsedJson } from "../../../src/base/text/text.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import * as Node from "../../../src/node.ts"
import { disk } from "../../run/store/disk.ts"
import { type Fault, serve } from "../lm/server.ts"
import { behind, opened, send } from "./opened.ts"

const machine = Layer.mergeAll(disk, Node.httpClient, Node.gateway)

const status = (code: number, body = `{"error":{"message":"It is ${code}."}}`): readonly [string, Fault] => [
  `status ${code}`,
  { kind: "status", status: code, body },
]
const body = (name: string, content: string | Uint8Array, headers = {}): readonly [string, Fault] => [
  name,
  { kind: "body", body: content, headers },
]

const faults: ReadonlyArray<readonly [string, Fault]> = [
  ...[301, 400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 529].map((code) => status(code)),
  status(500, "<html><body>It broke</body></html>"),
  status(400, ""),
  ["a reset", { kind: "reset" }],
  ["an answer that breaks off", { kind: "dropped" }],
  ["half an answer", { kind: "garbled" }],
  ["an endless refusal", { kind: "endless", status: 500, chunk: "no ".repeat(1000) }],
  ["an endless answer", { kind: "endless", status: 200, chunk: "yes ".repeat(10_000) }],
  body("nothing", ""),
  body("no object", "[]"),
  body("null", "null"),
  body("no choices", '{"choices":[]}'),
  body("a page", "<html></html>"),
  body("no text", Uint8Array.of(0xff, 0xfe, 0x00)),
  body("an error with status 200", '{"error":{"message":"Not now.","code":503}}'),
  body("what is not compressed", "{}", { "content-encoding": "gzip" }),
]

const messages = [{ role: "user", content: "Hi" }]

/** Returns the code of the error in an answer or at the end of a stream; undefined if there is none. */
const codeIn = (text: string): string | undefined => {
  const last =
    text
      .trim()
      .split("\n\n")
      .at(-1)
      ?.replace(/^data: /, "") ?? ""
  const value = parsedJson(last)
  const error = isPlain(value) && isPlain(value["error"]) ? value["error"] : undefined
  return error === undefined ? undefined : String(error["code"] ?? error["message"])
}

describe("a server that goes wrong", () => {
  it.live.each(faults.flatMap(([name, fault]) => [false, true].map((stream) => ({ name, fault, stream }))))(
    "by $name is reported to the agent, also in a stream: $stream",
    ({ fault, stream }) =>
      Effect.gen(function* () {
        const server = yield* serve({ say: () => "Hello you there", fault: () => fault })
        const lm = yield* behind(server.url, { maxRetries: 1, maxAnswerMb: 0.05 })
        const { baseUrl, key, calls } = yield* opened(lm)
        const other = yield* opened(Scripted.make(Scripted.echo), { id: "other" })
        const ask = send(`${baseUrl}/chat/completions`, { key, body: JSON.stringify({ model: "m", messages, stream }) })
        const [answer, untouched] = yield* Effect.all(
          [
            ask,
            Effect.promise(() =>
              other.client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
            ),
          ],
          { concurrency: 2 },
        )
        assert.strictEqual(untouched.choices[0].message.content, "Hi")
        // A stream whose first bytes were passed on has its status already.
        const hasBegun = answer.status === 200
        assert.isTrue(hasBegun ? stream : answer.status >= 400)
        if (answer.text !== "" && fault.kind !== "status") assert.isDefined(codeIn(answer.text), answer.text)
        for (const { incomplete } of calls()) assert.isTrue(incomplete)
        assert.strictEqual(calls().length, hasBegun ? 1 : 0)
        assert.isAtMost(server.asked.length, hasBegun ? 1 : 2)
      }).pipe(Effect.provide(machine)),
  )
})

/** Tells whether an answer, or the last event of a stream, is an error in the form of any protocol. */
const isError = (text: string): boolean => {
  const last = text.trim().split("\n\n").at(-1) ?? ""
  const value = parsedJson(last.replace(/^event: .*\n/, "").replace(/^data: /, ""))
  return isPlain(value) && (isPlain(value["error"]) || value["type"] === "error")
}

describe("a server of another protocol that goes wrong", () => {
  const passed = [
    { path: "responses", body: { model: "m", input: "Hi" }, more: {}, options: { responses: "passed" as const } },
    {
      path: "messages",
      body: { model: "m", max_tokens: 5, messages },
      more: { protocol: "anthropic" as const },
      options: {},
    },
    // The server gets chat completions.
    { path: "responses", body: { model: "m", input: "Hi" }, more: {}, options: {} },
    { path: "messages", body: { model: "m", max_tokens: 5, messages }, more: {}, options: {} },
  ]
  const some = faults.filter(([name]) =>
    /^(status (400|500)|a reset|an answer that breaks off|half an answer|an endless answer|a page)$/.test(name),
  )
  it.live.each(passed.flatMap((protocol, at) => some.map(([name, fault]) => ({ name, fault, protocol, at }))))(
    "by $name is reported to the agent, whole and streamed ($at)",
    ({ fault, protocol: { path, body, more, options } }) =>
      Effect.gen(function* () {
        const server = yield* serve({ say: () => "Hello you there", fault: () => fault })
        const lm = yield* behind(server.url, { maxRetries: 1, maxAnswerMb: 0.05, ...more }, options)
        const { baseUrl, key, calls } = yield* opened(lm)
        for (const stream of [false, true]) {
          const answer = yield* send(`${baseUrl}/${path}`, { key, body: JSON.stringify({ ...body, stream }) })
          assert.isTrue(answer.status === 200 ? stream : answer.status >= 400)
          const isPassed = fault.kind === "status" && answer.text === fault.body
          assert.isTrue(isPassed || isError(answer.text), answer.text)
        }
        for (const { incomplete } of calls()) assert.isTrue(incomplete)
      }).pipe(Effect.provide(machine)),
  )
})
