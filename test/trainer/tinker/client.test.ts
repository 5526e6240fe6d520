import { ConfigProvider, Deferred, Effect, Fiber, Redacted } from "effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import { assert, describe, it } from "vitest"
import { TinkerDelays } from "../../../src/trainer/tinker/client/connection.ts"
import { type TinkerAddress, TinkerClient, type TinkerModel } from "../../../src/trainer/tinker/client/TinkerClient.ts"
import { type TinkerError } from "../../../src/trainer/tinker/client/TinkerError.ts"
import {
  decodeLossOutput,
  decodeLossRequest,
  decodeSequences,
  encodeLossOutput,
  encodeLossRequest,
  encodeSampleOutput,
} from "../../../src/trainer/tinker/wire/protobuf.ts"

interface Sent {
  readonly path: string
  readonly key: string | undefined
  readonly body: ReturnType<typeof JSON.parse>
}

/** Answers a request, leaves it unanswered (`silence`), or leaves it to the usual answers. */
type Answer = (sent: Sent, count: number) => Response | "silence" | undefined

const secret = "tml-0123456789"

/** The answers of a server that is never asked twice for the same. */
const usual = ({ path, body }: Sent): Response => {
  if (path === "create_session") return Response.json({ session_id: "s" })
  if (path === "create_model") return Response.json({ request_id: "m/0" })
  if (path === "retrieve_future" && body.request_id === "m/0") return Response.json({ model_id: "m" })
  if (path === "retrieve_future") return Response.json({ metrics: { "grad_norm:mean": 2 } })
  return Response.json({ request_id: `m/${body.seq_id ?? "unload"}` })
}

/** Uses a model on a server that answers by `answer`, or as usual. Fails with the client's error. */
const using = async <A>(
  answer: Answer,
  use: (model: TinkerModel, client: TinkerClient["Service"]) => Effect.Effect<A, TinkerError>,
  address: Partial<TinkerAddress> = {},
) => {
  const sent: Array<Sent> = []
  const client = HttpClient.make((request, url) => {
    const text = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "null"
    const body = text.startsWith("{") ? JSON.parse(text) : text
    const one = { path: url.pathname.replace("/api/v1/", ""), key: request.headers["x-api-key"], body }
    sent.push(one)
    const count = sent.filter(({ path }) => path === one.path).length
    const found = answer(one, count) ?? usual(one)
    return found === "silence" ? Effect.never : Effect.succeed(HttpClientResponse.fromWeb(request, found))
  })
  const result = await Effect.flatMap(TinkerClient, (tinker) =>
    Effect.flatMap(tinker.createModel({ baseModel: "b", rank: 2 }), (model) => use(model, tinker)),
  ).pipe(
    Effect.scoped,
    Effect.provide(TinkerClient.layer({ baseUrl: "http://localhost:1", ...address })),
    Effect.match({
      onFailure: (error) => ({ error, value: undefined }),
      onSuccess: (value) => ({ error: undefined, value }),
    }),
    Effect.provideService(HttpClient.HttpClient, client),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromUnknown({ KEY: secret })),
    Effect.provideService(TinkerDelays, [0, 0, 0]),
    Effect.runPromise,
  )
  return { sent, ...result }
}

const step = (model: TinkerModel) => model.optimStep({ learningRate: 0.1 })
const only =
  (path: string, status: number, body: unknown = { error: "no" }, upTo = Infinity): Answer =>
  (sent, count) =>
    sent.path === path && count <= upTo ? Response.json(body, { status }) : undefined

describe("the client of Tinker's protocol", () => {
  it("sends a request again with the same number until it is accepted, and asks for its outcome until it is there", async () => {
    const outcomes = [408, 500, 410, 429, 408]
    const { sent, value } = await using(
      (one, count) => {
        if (one.path === "optim_step" && count <= 3) return Response.json({}, { status: [408, 429, 503][count - 1] })
        if (one.path !== "retrieve_future" || one.body.request_id === "m/0") return undefined
        const status = outcomes.shift()
        if (status === undefined) return count === 7 ? Response.json({ type: "try_again" }) : undefined
        return Response.json({}, { status })
      },
      step,
      { apiKey: Redacted.make("${KEY}") },
    )
    assert.deepStrictEqual(value, { "grad_norm:mean": 2 })
    const steps = sent.filter(({ path }) => path === "optim_step")
    // Three refusals, the accepted one, and one more because the outcome was gone.
    assert.strictEqual(steps.length, 5)
    for (const { body, key } of steps) {
      assert.deepInclude(body, { model_id: "m", seq_id: 1, adam_params: { learning_rate: 0.1 } })
      assert.strictEqual(key, secret)
    }
    assert.strictEqual(sent.at(-1)?.path, "retrieve_future")
    assert.strictEqual(sent.at(-2)?.path, "unload_model")
  })

  it("gives each request of a model the next number; a refused one has not used its number", async () => {
    const { sent } = await using(only("save_weights", 400, { error: "bad", param: "path" }), (model) =>
      Effect.gen(function* () {
        yield* step(model)
        const refused = yield* Effect.match(model.saveWeights("a/b"), {
          onFailure: ({ reason, param, message }) => [reason, param, message],
          onSuccess: () => [],
        })
        const place = "http://localhost:1/api/v1/save_weights"
        assert.deepStrictEqual(refused, ["rejected", "path", `${place} answered 400: bad`])
        yield* step(model)
      }),
    )
    const numbers = sent.flatMap(({ path, body }) => (path === "optim_step" ? [body.seq_id] : []))
    assert.deepStrictEqual(numbers, [1, 2])
  })

  it("sends nothing more if nobody knows whether a request was accepted", async () => {
    const { error } = await using(only("optim_step", 500), (model) =>
      Effect.andThen(Effect.ignore(step(model)), step(model)),
    )
    assert.strictEqual(error?.reason, "uncertain")
    assert.include(error?.message, "answered 500")
  })

  it("gives up on requests that the server leaves unanswered, also on those that are not interrupted", async () => {
    const arrived = Deferred.makeUnsafe<void>()
    const { sent, value } = await using(
      ({ path }) => {
        if (path !== "optim_step") return undefined
        Deferred.doneUnsafe(arrived, Effect.void)
        return "silence"
      },
      (model, { giveUp }) =>
        Effect.gen(function* () {
          const fiber = yield* Effect.forkChild(step(model))
          yield* Deferred.await(arrived)
          const interrupting = yield* Effect.forkChild(Fiber.interrupt(fiber))
          yield* giveUp
          yield* Fiber.await(interrupting)
          return yield* Effect.match(step(model), {
            onFailure: ({ reason, message }) => [reason, message],
            onSuccess: () => [],
          })
        }),
    )
    const problem = "http://localhost:1 left a request unanswered for too long"
    assert.deepStrictEqual(value, ["uncertain", `the model m takes no more requests: ${problem}`])
    // The model is not unloaded either: that would take just as long.
    assert.strictEqual(sent.at(-1)?.path, "optim_step")
  })

  it("has typed errors without the key", async () => {
    const cases: ReadonlyArray<readonly [Answer, TinkerError["reason"], RegExp]> = [
      [only("create_session", 401, { error: `wrong key ${secret}` }), "unauthorised", /the key came from KEY$/],
      [only("create_model", 404, { error: "no b", param: "base_model" }), "notFound", /no b/],
      [only("optim_step", 422, { detail: "used" }), "rejected", /used/],
      [only("optim_step", 200, { id: 1 }), "malformed", /request_id/],
      [only("optim_step", 200, "x".repeat(300_000)), "malformed", /more than 0\.1 MB/],
      [only("retrieve_future", 200, { error: "NaN", category: "user" }), "rejected", /NaN/],
      [only("retrieve_future", 200, { error: "oops", category: "server" }), "failed", /oops/],
      [only("retrieve_future", 410), "unavailable", /answered 410/],
      [only("create_model", 200, { request_id: { key: secret } }), "malformed", /request_id/],
      [only("create_model", 200, { request_id: `m/${secret}` }), "malformed", /repeats the API key/],
      [only("create_session", 200, { session_id: "s", error_message: secret }), "malformed", /repeats the API key/],
      [only("create_model", 200, { request_id: "m".repeat(2000) }), "malformed", /^.{1,700}$/],
    ]
    for (const [answer, reason, message] of cases) {
      const { error } = await using(answer, step, { apiKey: Redacted.make("${KEY}"), maxAnswerMb: 0.1 })
      assert.strictEqual(error?.reason, reason, String(message))
      assert.match(error?.message ?? "", message)
      assert.notInclude(error?.message, secret)
    }
  })

  it("refuses answers whose numbers do not belong to the request", async () => {
    const outputOf = (number: number, dtype = "float32") => [{ logprobs: { data: [number], dtype, shape: [1] } }]
    const outputs = [[], outputOf(Infinity), outputOf(-1, "x".repeat(2 ** 21))]
    const messages = [
      "expected logprobs of 1 examples, found 0",
      "example 0: expected finite logprobs",
      "sent more than",
    ]
    for (const [at, loss_fn_outputs] of outputs.entries()) {
      const output = { loss_fn_output_type: "ArrayRecord", metrics: {}, loss_fn_outputs }
      const text = JSON.stringify(output).replace("null", "1e999")
      const { error } = await using(
        (one) => (one.path === "retrieve_future" && one.body.request_id !== "m/0" ? new Response(text) : undefined),
        (model) => {
          const datum = { tokens: Int32Array.of(1), targets: Int32Array.of(2), columns: {} }
          return model.forward({ data: [datum], loss: "cross_entropy" })
        },
      )
      assert.strictEqual(error?.reason, "malformed")
      assert.include(error?.message, messages[at])
    }
  })
})

describe("the protobuf messages", () => {
  const data = [
    { tokens: Int32Array.of(1, 2), targets: Int32Array.of(2, 70_000), columns: { weights: Float32Array.of(0.1, -3) } },
    { tokens: Int32Array.of(5), targets: Int32Array.of(6), columns: { weights: Float32Array.of(1) } },
  ]

  it("of a loss are decoded by the server as the client encoded them", () => {
    const request = { modelId: "m", seqId: 300, forwardOnly: true, loss: "ppo", lossConfig: { clip: 0.5 }, data }
    const decoded = decodeLossRequest(encodeLossRequest(request))
    assert.deepInclude(decoded, { modelId: "m", seqId: 300, forwardOnly: true })
    assert.strictEqual(decoded.request.loss, "ppo")
    assert.deepStrictEqual([...decoded.request.lossConfig], [["clip", 0.5]])
    const found = decoded.request.data.map(({ tokens, inputs }) => [
      "unsupported" in tokens ? [] : Array.from(tokens),
      Array.from(inputs.get("target_tokens")?.data ?? [], Number),
      Array.from(inputs.get("weights")?.data ?? [], Number),
    ])
    const expected = data.map(({ tokens, targets, columns }) => [[...tokens], [...targets], [...columns.weights]])
    assert.deepStrictEqual(found, expected)
  })

  it("of outcomes are decoded by the client as the server encoded them, and others are refused", () => {
    const logprobs = [[-0.5, -1.25], [-3]]
    const tensors = logprobs.map((data) => ({ logprobs: { data, dtype: "float32" as const, shape: [data.length] } }))
    const metrics = { "loss:sum": 0.1 }
    const bytes = encodeLossOutput({ loss_fn_output_type: "ArrayRecord", loss_fn_outputs: tensors, metrics })
    const decoded = decodeLossOutput(bytes)
    assert.deepStrictEqual(
      decoded.logProbabilities.map((one) => [...one]),
      logprobs,
    )
    assert.deepStrictEqual(decoded.metrics, metrics)
    const sequences = [
      { stop_reason: "stop" as const, tokens: [1, 2], logprobs: [-0.5, -0.25] },
      { stop_reason: "length" as const, tokens: [], logprobs: [] },
    ]
    const sampled = encodeSampleOutput({ type: "sample", sequences, prompt_logprobs: null, topk_prompt_logprobs: null })
    assert.deepStrictEqual(decodeSequences(sampled), sequences)
    for (let length = 1; length < bytes.length; length += 7) {
      try {
        decodeLossOutput(bytes.subarray(0, length))
      } catch (error) {
        assert.instanceOf(error, RangeError)
      }
    }
  })
})
