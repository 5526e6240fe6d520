import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as SingleAgent from "../../../src/agents/episode/protocols/SingleAgent.ts"
import * as RolloutEngine from "../../../src/agents/episode/rollouts/RolloutEngine.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import { keptSpans } from "../lm/keptSpans.ts"
import { batchOf } from "./rollouts/batch.ts"

describe("the trace of a batch", () => {
  it.effect("has a span for the batch, one for each episode, with the calls of the model in it", () =>
    Effect.gen(function* () {
      const { tracer, spans } = keptSpans()
      const lm = yield* Lms.open(LmConfig.make({ model: "scripted:echo" }))
      const agent = yield* Effect.provideService(MemorylessAgent.make({ model: "scripted:echo" }), Lm, lm)
      const batch = batchOf(2, { protocol: SingleAgent.make(agent, { maxSteps: 1 }) })
      const { requests } = yield* RolloutEngine.each(batch, () => Effect.void).pipe(Effect.withTracer(tracer))
      const paths = spans.map(({ around, name }) => [...around, name].join(" > "))
      const count = (path: string): number => paths.filter((other) => other === path).length
      const episode = "effect-rl.rollouts > invoke_agent memoryless_agent"
      assert.strictEqual(count("effect-rl.rollouts"), 1)
      assert.strictEqual(count(episode), requests)
      assert.strictEqual(count(`${episode} > chat scripted:echo`), requests)
      assert.strictEqual(paths.length, 1 + 2 * requests)
    }).pipe(Effect.provide(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, FetchHttpClient.layer))),
  )
})
