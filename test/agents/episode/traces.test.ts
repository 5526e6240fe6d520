import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Tracer } from "effect"
import { FetchHttpClient } from "effect/http"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as SingleAgent from "../../../src/agents/episode/protocols/SingleAgent.ts"
import * as RolloutEngine from "../../../src/agents/episode/rollouts/RolloutEngine.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import * as LmConfig from "../../../src/agents/lm/LmConfig.ts"
import * as Lms from "../../../src/agents/lm/Lms.ts"
import { batchOf } from "./rollouts/batch.ts"

const nameOf = (span: Tracer.AnySpan): string => (span._tag === "Span" ? span.name : "external")

describe("the trace of a batch", () => {
  it.effect("has a span for the batch, with the calls of the model in it; episodes have none", () =>
    Effect.gen(function* () {
      const paths: Array<string> = []
      const tracer = Tracer.make({
        span: (options) => {
          const parent = Option.getOrUndefined(options.parent)
          const grandparent = parent?._tag === "Span" ? Option.getOrUndefined(parent.parent) : undefined
          const ancestors = [grandparent, parent].flatMap((span) => (span === undefined ? [] : [nameOf(span)]))
          paths.push([...ancestors, options.name].join(" > "))
          return new Tracer.NativeSpan(options)
        },
      })
      const lm = yield* Lms.open(LmConfig.make({ model: "scripted:echo" }))
      const agent = yield* Effect.provideService(MemorylessAgent.make({ model: "scripted:echo" }), Lm, lm)
      const { requests } = yield* RolloutEngine.each(
        batchOf(2, { protocol: SingleAgent.make(agent, { maxSteps: 1 }) }),
        () => Effect.void,
      ).pipe(Effect.withTracer(tracer))
      const count = (path: string): number => paths.filter((other) => other === path).length
      assert.strictEqual(count("effect-rl.rollouts"), 1)
      assert.strictEqual(count("effect-rl.rollouts > effect-rl.lm"), requests)
      assert.strictEqual(paths.length, 1 + requests)
    }).pipe(Effect.provide(Layer.mergeAll(NodeFileSystem.layer, NodePath.layer, FetchHttpClient.layer))),
  )
})
