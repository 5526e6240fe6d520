/** A collector of OpenTelemetry, which checks what the command sends it. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, type Scope } from "effect"
import { conventionNames } from "../../agents/lm/keptSpans.ts"
import { serveHttp } from "../../servers/listen.ts"
import { layer } from "../../../src/command/cli/telemetry/otlp.ts"
import { checkVariables, telemetryVariables } from "../../../src/command/cli/telemetry/variables.ts"
import { effect, resultOf, withFolder, write } from "./effect.ts"
import { withVariables } from "./withVariables.ts"

const AnyValue = Schema.Union([
  Schema.Struct({ stringValue: Schema.String }),
  Schema.Struct({ boolValue: Schema.Boolean }),
  Schema.Struct({ intValue: Schema.Union([Schema.String, Schema.Int]) }),
  Schema.Struct({ doubleValue: Schema.Finite }),
  Schema.Struct({ arrayValue: Schema.Struct({ values: Schema.Array(Schema.Unknown) }) }),
])
const KeyValues = Schema.Array(Schema.Struct({ key: Schema.String, value: AnyValue }))
const hex = (digits: number) => Schema.String.check(Schema.isPattern(new RegExp(`^[0-9a-f]{${digits}}$`)))
const nanos = Schema.String.check(Schema.isPattern(/^\d+$/))
const Span = Schema.Struct({
  traceId: hex(32),
  spanId: hex(16),
  parentSpanId: Schema.optionalKey(hex(16)),
  name: Schema.NonEmptyString,
  kind: Schema.Literals([1, 2, 3]),
  startTimeUnixNano: nanos,
  endTimeUnixNano: nanos,
  attributes: KeyValues,
  events: Schema.Array(Schema.Struct({ name: Schema.NonEmptyString, timeUnixNano: nanos, attributes: KeyValues })),
  links: Schema.Array(Schema.Struct({ traceId: hex(32), spanId: hex(16) })),
  status: Schema.Struct({ code: Schema.Literals([0, 1, 2]) }),
})
type Span = typeof Span.Type
const Traces = Schema.Struct({
  resourceSpans: Schema.Array(
    Schema.Struct({
      resource: Schema.Struct({ attributes: KeyValues }),
      scopeSpans: Schema.Array(
        Schema.Struct({ scope: Schema.Struct({ name: Schema.String }), spans: Schema.Array(Span) }),
      ),
    }),
  ),
})
const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Traces))

/** Starts a collector that keeps the requests that it gets. */
const collector = Effect.gen(function* () {
  const requests: Array<{ readonly path: string; readonly type: string; readonly key: string; readonly text: string }> =
    []
  const { url } = yield* serveHttp((request, response) => {
    let text = ""
    request.on("data", (chunk) => (text += String(chunk)))
    request.on("end", () => {
      const { "content-type": type = "", "x-collector-key": key = "" } = request.headers
      requests.push({ path: request.url ?? "", type, key: String(key), text })
      response.writeHead(200, { "content-type": "application/json" }).end("{}")
    })
  })
  const resources = () =>
    requests.flatMap(({ path, text }) => (path === "/v1/traces" ? decode(text).resourceSpans : []))
  const spans = (): ReadonlyArray<Span> =>
    resources().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))
  return { url, requests, resources, spans }
})

const attributesOf = (attributes: Span["attributes"]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]))

const tasks = `
kind: evaluation
dataset: { type: qa, items: [{ question: What is the capital of Italy?, answer: Rome }, { question: And of France?, answer: Paris }] }
agent: { type: memoryless_agent, lm_config: { model: "scripted:echo" } }
scorers: [exact, score]
`

const evaluating = (folder: string) =>
  Effect.gen(function* () {
    const file = write(folder, "tasks.yaml", tasks)
    const outcome = yield* Effect.promise(() =>
      effect(["eval", file, "--results-dir", join(folder, "results"), "--quiet", "--json"]),
    )
    assert.strictEqual(outcome.code, 0, outcome.stderr)
    return resultOf(outcome)
  })

const inFolder = <A>(body: (folder: string) => Effect.Effect<A, unknown, Scope.Scope>): Effect.Effect<A> =>
  Effect.promise(() => withFolder((folder) => Effect.runPromise(Effect.scoped(body(folder)))))

describe("effect eval with OTEL_EXPORTER_OTLP_ENDPOINT", () => {
  it.live("sends spans by the protocol and the conventions, without texts and keys, and the same result", () =>
    inFolder((folder) =>
      Effect.gen(function* () {
        const untraced = yield* evaluating(folder)
        const { url, requests, resources, spans } = yield* collector
        yield* withVariables({
          OTEL_EXPORTER_OTLP_ENDPOINT: url,
          OTEL_EXPORTER_OTLP_HEADERS: "x-collector-key=open%20sesame",
          OTEL_SERVICE_NAME: "my-agents",
          OPENAI_API_KEY: "sk-secret",
        })
        const result = yield* evaluating(folder)
        assert.strictEqual(result.digest, untraced.digest)
        assert.isTrue(requests.every(({ type, key }) => type === "application/json" && key === "open sesame"))
        assert.strictEqual(attributesOf(resources()[0].resource.attributes)["service.name"], "my-agents")
        const named = (name: string) => spans().filter((span) => span.name === name)
        const chats = named("chat scripted:echo")
        assert.strictEqual(chats.length, 2)
        for (const chat of chats) {
          const agent = spans().find(({ spanId }) => spanId === chat.parentSpanId)
          assert.strictEqual(agent?.name, "invoke_agent memoryless_agent")
          const episode = spans().find(({ spanId }) => spanId === agent?.parentSpanId)
          assert.strictEqual(episode?.name, "effect-rl.episode")
          assert.isUndefined(episode?.parentSpanId)
          assert.strictEqual(chat.traceId, episode?.traceId)
          const scores = episode?.events.map(({ name, attributes }) => [name, attributesOf(attributes)])
          const score = (scorer: string) => [
            "gen_ai.evaluation.result",
            { "gen_ai.evaluation.name": scorer, "gen_ai.evaluation.score.value": 0 },
          ]
          assert.deepStrictEqual(scores, [score("exact"), score("score")])
        }
        for (const { key } of spans().flatMap(({ attributes, events }) => [
          ...attributes,
          ...events.flatMap(({ attributes }) => attributes),
        ]))
          assert.isTrue(!key.startsWith("gen_ai.") || conventionNames.has(key), key)
        const sent = requests.map(({ text }) => text).join("\n")
        for (const secret of ["sesame", "sk-secret", "capital of Italy", "Rome"]) assert.notInclude(sent, secret)
      }),
    ),
  )

  it.live("sends texts if the user asks for them, adds its spans to a given trace, and can be switched off", () =>
    inFolder((folder) =>
      Effect.gen(function* () {
        const { url, requests, spans } = yield* collector
        yield* withVariables({
          OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces`,
          OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
          TRACEPARENT: "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01",
        })
        yield* evaluating(folder)
        // Only traces have an endpoint.
        assert.deepStrictEqual([...new Set(requests.map(({ path }) => path))], ["/v1/traces"])
        const chat = spans().find(({ name }) => name === "chat scripted:echo")
        assert.include(String(attributesOf(chat?.attributes ?? [])["gen_ai.input.messages"]), "capital of")
        const run = spans().find(({ name }) => name === "effect-rl.run")
        assert.deepStrictEqual(
          [run?.traceId, run?.parentSpanId],
          ["0123456789abcdef0123456789abcdef", "0123456789abcdef"],
        )
        const episode = spans().find(({ name }) => name === "effect-rl.episode")
        assert.strictEqual(episode?.links[0]?.spanId, run?.spanId)
        requests.length = 0
        yield* withVariables({ OTEL_SDK_DISABLED: "true" })
        yield* evaluating(folder)
        assert.deepStrictEqual(requests, [])
      }),
    ),
  )
})

describe("a failed effect eval with OTEL_EXPORTER_OTLP_ENDPOINT", () => {
  it.live("sends the kind of the failure, but not its message", () =>
    inFolder((folder) =>
      Effect.gen(function* () {
        const { url, requests, spans } = yield* collector
        const model = yield* serveHttp((_, response) => {
          response.writeHead(401).end('{"error":{"message":"You asked for the capital of Italy."}}')
        })
        yield* withVariables({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${url}/v1/traces` })
        const asking = tasks.replace('"scripted:echo"', `m, base_url: "${model.url}", max_retries: 0`)
        const file = write(folder, "tasks.yaml", asking)
        const { code, stderr } = yield* Effect.promise(() =>
          effect(["eval", file, "--results-dir", join(folder, "results"), "--quiet"]),
        )
        assert.strictEqual(code, 1)
        assert.include(stderr, "You asked for the capital of Italy.")
        const failed = spans().filter(({ status }) => status.code === 2)
        assert.includeMembers(
          failed.map(({ name }) => name),
          ["chat m", "invoke_agent memoryless_agent", "effect-rl.episode", "effect-rl.run"],
        )
        const text = requests.map(({ text }) => text).join("\n")
        assert.include(text, "unauthorised")
        assert.notInclude(text, "capital")
      }),
    ),
  )
})

describe("the variables of OpenTelemetry", () => {
  it.effect("are off without a collector, and wrong ones are named without their value", () =>
    Effect.gen(function* () {
      const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }
      for (const off of [
        {},
        { OTEL_EXPORTER_OTLP_ENDPOINT: " " },
        { OTEL_SERVICE_NAME: "a" },
        { ...endpoint, OTEL_SDK_DISABLED: "TRUE" },
      ])
        assert.isUndefined(telemetryVariables(off))
      assert.notProperty(telemetryVariables({ ...endpoint, OTEL_SDK_DISABLED: "maybe" }), "OTEL_SDK_DISABLED")
      const problemOf = (more: Readonly<Record<string, string>>) =>
        Effect.flip(checkVariables({ ...endpoint, ...more })).pipe(Effect.map(({ message }) => message))
      assert.strictEqual(
        yield* problemOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4317" }),
        "OTEL_EXPORTER_OTLP_ENDPOINT: expected an address that begins with http:// or https://, found another text",
      )
      assert.strictEqual(
        yield* problemOf({ OTEL_EXPORTER_OTLP_TRACES_HEADERS: "secret" }),
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS: expected NAME=VALUE, several separated by commas, found another text",
      )
      assert.strictEqual(
        yield* problemOf({ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }),
        "OTEL_EXPORTER_OTLP_PROTOCOL: expected http/json or http/protobuf, found grpc",
      )
      const json = { OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" }
      assert.strictEqual(
        yield* problemOf({ ...json, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf" }),
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: expected http/json, as all signals have the same protocol, found http/protobuf",
      )
      yield* checkVariables({ ...endpoint, ...json, OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: "http/json" })
      yield* checkVariables({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: "a=b,c=d=e" })
    }),
  )

  it.effect("that the exporter cannot read are named without their value", () =>
    Effect.gen(function* () {
      const problemOf = (name: string, value: string) =>
        Effect.gen(function* () {
          const variables = {
            OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:1",
            OTEL_TRACES_EXPORTER: "otlp",
            [name]: value,
          }
          return (yield* Effect.flip(Layer.build(layer(variables)))).message
        }).pipe(Effect.scoped)
      for (const [name, value, expected] of [
        ["OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", '"gzip" | "none"'],
        ["OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "a string representing a finite number"],
        ["OTEL_EXPORTER_OTLP_HEADERS", "key=%zz", "a valid URI component"],
      ])
        assert.strictEqual(yield* problemOf(name, value), `${name}: expected ${expected}`)
    }),
  )
})
