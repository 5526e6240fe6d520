import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Agents from "../../../src/agents/agent/Agents.ts"
import { AgentPrograms } from "../../../src/agents/agent/outside/AgentPrograms.ts"
import { inAgentSpan } from "../../../src/agents/lm/genAi.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { serveHttp } from "../../servers/listen.ts"
import { keptSpans } from "../lm/keptSpans.ts"

/** Takes a turn in a span of the agent, as an episode does. */
const acts = (config: object) =>
  Effect.gen(function* () {
    const { make } = yield* Agents.decode(config)
    const agent = yield* Effect.provideService(make, Lm, Scripted.make(Scripted.echo))
    yield* inAgentSpan(agent, "task-1", agent.act({ _tag: "Observation", text: "2 + 2?" }))
  }).pipe(Effect.provide(Layer.merge(NodeFileSystem.layer, NodePath.layer)))

describe("the trace of an agent with code of its own", () => {
  it.effect("is told to a program by TRACEPARENT, if there is one", () =>
    Effect.gen(function* () {
      const { tracer, only } = keptSpans()
      const told: Array<string | undefined> = []
      const run = Effect.provideService(acts({ type: "command", command: ["./agent"] }), AgentPrograms, {
        run: ({ environment }) => Effect.sync(() => `${told.push(environment["TRACEPARENT"])}`),
      })
      yield* run
      yield* Effect.withTracer(run, tracer)
      const { traceId, spanId } = only("invoke_agent command").span
      assert.deepStrictEqual(told, [undefined, `00-${traceId}-${spanId}-01`])
    }),
  )

  it.live("is told to a server by traceparent, if there is one", () =>
    Effect.gen(function* () {
      const { tracer, only } = keptSpans()
      const told: Array<unknown> = []
      const { url } = yield* serveHttp((request, response) => {
        told.push(request.headers["traceparent"])
        response.end("4")
      })
      yield* acts({ type: "http", url })
      yield* Effect.withTracer(acts({ type: "http", url }), tracer)
      const { traceId, spanId } = only("invoke_agent http").span
      assert.deepStrictEqual(told, [undefined, `00-${traceId}-${spanId}-01`])
    }),
  )
})
