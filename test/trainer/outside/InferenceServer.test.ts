import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Effect, Exit, Fiber, type Layer, Redacted, Schema, Scope } from "effect"
import { assert, describe, it } from "vitest"
import { Engine } from "../../../src/decoder/inference/Engine.ts"
import { LmRequest } from "../../../src/agents/lm/Chat.ts"
import { OrchestratorConfig } from "../../../src/trainer/config/OrchestratorConfig.ts"
import { connect, type ServerEvent } from "../../../src/trainer/outside/InferenceServer.ts"
import { serve } from "../../../src/decoder/serve/server-node.ts"
import { serveHttp } from "../../servers/listen.ts"
import { chat, type FakeEngine, fakeEngine } from "../../decoder/serve/fakeEngine.ts"

const { sampling } = Schema.decodeUnknownSync(OrchestratorConfig)({})

const adapter = (step: number) => ({ name: "run_a", step, adapter: { rank: 1, alpha: 1, tensors: {} } })

const request: LmRequest = {
  ...LmRequest.defaults,
  model: "run_a",
  messages: [{ role: "user", content: "Hello" }],
  seed: 1,
  traceTokens: true,
}

/** A server that can be stopped and started again at the same port. */
const restartable = (engine: FakeEngine, apiKey?: Redacted.Redacted) => {
  let scope: Scope.Closeable | undefined
  let port = 0
  return {
    start: Effect.gen(function* () {
      scope = yield* Scope.make()
      const serving = serve({ chat, host: "127.0.0.1", port, apiKey })
      port = (yield* serving.pipe(Effect.provideService(Engine, engine), Scope.provide(scope))).port
    }),
    stop: Effect.suspend(() => (scope === undefined ? Effect.void : Scope.close(scope, Exit.void))),
    url: () => `http://127.0.0.1:${port}`,
  }
}

const run = <A, E>(test: Effect.Effect<A, E, Layer.Success<typeof NodeHttpClient.layerUndici>>): Promise<A> =>
  Effect.runPromise(Effect.provide(test, NodeHttpClient.layerUndici))

const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (condition() ? Effect.void : Effect.andThen(Effect.sleep(2), until(condition))))

/** A web server that knows no path at all. */
const answeringNotFound = serveHttp((_, response) => void response.writeHead(404).end("not found"))

const open = Effect.fnUntraced(function* (url: string, apiKey: Redacted.Redacted | null = null) {
  const events: Array<ServerEvent> = []
  const report = (event: ServerEvent) => Effect.sync(() => void events.push(event))
  const server = yield* connect({ url, apiKey, report })
  const model = yield* server.modelOf("run_a", sampling)
  return { ...model, refused: server.refused, tags: () => events.map(({ _tag }) => _tag) }
})

describe("the client of an inference server", () => {
  it("waits for the weights of a step, and gets answers with their tokens", () =>
    run(
      Effect.gen(function* () {
        const engine = fakeEngine()
        const server = restartable(engine)
        yield* server.start
        const { policy, awaitWeights, tags } = yield* open(server.url())
        const waiting = yield* Effect.forkChild(awaitWeights(2))
        yield* engine.loadAdapter(adapter(1))
        yield* Effect.sleep(50)
        assert.isUndefined(waiting.pollUnsafe())
        yield* engine.loadAdapter(adapter(2))
        yield* Fiber.join(waiting)
        const { tokens, content } = yield* policy.complete(request)
        assert.deepStrictEqual(tokens?.weights, { model: "run_a", step: 2 })
        assert.lengthOf(tokens?.completionIds ?? [], content.length + 1)
        assert.deepStrictEqual(new Set(tokens?.logprobs), new Set([-3]))
        assert.deepStrictEqual(tags(), [])
        yield* server.stop
      }),
    ))

  it("waits for a server that is down, and does not take an answer from older weights", () =>
    run(
      Effect.gen(function* () {
        const engine = fakeEngine()
        const server = restartable(engine)
        yield* server.start
        yield* engine.loadAdapter(adapter(5))
        const { policy, awaitWeights, tags } = yield* open(server.url())
        yield* awaitWeights(5)
        yield* server.stop
        // The server begins again without the adapter, then has an old one, and last the one that is needed.
        yield* engine.unloadAdapter("run_a")
        const answering = yield* Effect.forkChild(policy.complete(request))
        yield* until(() => tags().includes("Failing"))
        yield* server.start
        yield* until(() => tags().includes("Answering"))
        yield* engine.loadAdapter(adapter(3))
        yield* Effect.sleep(50)
        assert.isUndefined(answering.pollUnsafe())
        yield* engine.loadAdapter(adapter(5))
        const { tokens } = yield* Fiber.join(answering)
        assert.strictEqual(tokens?.weights?.step, 5)
        assert.deepStrictEqual(tags(), ["Failing", "Answering"])
        yield* server.stop
      }),
    ))

  it("asks again if the server loads the model just after it answered that it lacks it", () =>
    run(
      Effect.gen(function* () {
        const engine = fakeEngine()
        const models = Effect.tap(engine.models, () => Effect.orDie(engine.loadAdapter(adapter(5))))
        const server = restartable({ ...engine, models })
        yield* server.start
        const { policy } = yield* open(server.url())
        const { tokens } = yield* policy.complete(request)
        assert.strictEqual(tokens?.weights?.step, 5)
        yield* server.stop
      }),
    ))

  it("blames no run if the server refuses its key", () =>
    run(
      Effect.gen(function* () {
        const engine = fakeEngine()
        const server = restartable(engine, Redacted.make("right"))
        yield* server.start
        yield* engine.loadAdapter(adapter(1))
        const wrong = yield* open(server.url(), Redacted.make("wrong"))
        const waiting = yield* Effect.forkChild(wrong.awaitWeights(1))
        const { message, reason } = yield* Effect.flip(wrong.refused)
        assert.strictEqual(reason, "unauthorised")
        assert.include(message, "answered 401")
        assert.isUndefined(waiting.pollUnsafe())
        yield* Fiber.interrupt(waiting)
        const right = yield* open(server.url(), Redacted.make("right"))
        yield* right.awaitWeights(1)
        yield* server.stop
      }),
    ))

  it("blames no run if something else answers 404 to everything", () =>
    run(
      Effect.gen(function* () {
        const { url } = yield* answeringNotFound
        const { awaitWeights, policy, refused, tags } = yield* open(url)
        const waiting = yield* Effect.forkChild(awaitWeights(1))
        const asking = yield* Effect.forkChild(Effect.asVoid(policy.complete(request)))
        const { message, reason } = yield* Effect.flip(refused)
        assert.strictEqual(reason, "rejected")
        assert.match(message, /answered 404.*; expected an inference server: start one with effect serve TRAINER$/)
        for (const fiber of [waiting, asking]) {
          assert.isUndefined(fiber.pollUnsafe())
          yield* Fiber.interrupt(fiber)
        }
        assert.deepStrictEqual(tags(), [])
      }).pipe(Effect.scoped),
    ))
})
