import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Schema, Stream } from "effect"
import * as Node from "../../../src/node.ts"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import { Engine, type EngineService, type GenerateRequest } from "../../../src/decoder/inference/Engine.ts"
import { openBaseModel } from "../../../src/trainer/baseModel.ts"
import { MultiRunConfig } from "../../../src/trainer/config/MultiRunConfig.ts"
import { engineModel } from "../../../src/trainer/engine/engineModel.ts"
import { EngineThreads } from "../../../src/trainer/engine/EngineThreads.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"

const folder = fileURLToPath(new URL("../../fixtures/hugging-face/llama", import.meta.url))

const settings = Schema.decodeUnknownSync(MultiRunConfig)({
  kind: "multirun",
  model: { type: "folder", path: folder },
  trainer: { width: 64, max_runs: 2, lora: { rank: 4, alpha: 8 } },
  inference: { generating: [1, 4], reading: [1, 2], page_size: 8 },
  runs: {},
})

const adapter = {
  rank: 4,
  alpha: 8,
  tensors: Object.fromEntries(
    Object.entries(Safetensors.decode(readFileSync(`${folder}/adapter/adapter_model.safetensors`))).map(
      ([name, { shape, data }]) => [name.slice("base_model.model.".length), { shape, data: Float32Array.from(data) }],
    ),
  ),
}

const base = Effect.provide(openBaseModel(settings.model, { baseDir: ".", seed: 0 }), Node.platform)

/** An engine in this thread. */
const inside = Effect.gen(function* () {
  const opened = yield* base
  const services = yield* Layer.build(Engine.layer(engineModel(settings, { ...opened, name: "base" })))
  return Context.get(services, Engine)
})

/** An engine in a thread, on the same backend. */
const inThread = Effect.gen(function* () {
  const { model, trainer, inference, seed } = settings
  const threads = yield* EngineThreads
  return yield* threads.start({ model, trainer, inference, seed, baseDir: ".", name: "base" })
}).pipe(Effect.provide(Node.trainerThreads({ backend: "wasm" })))

const requests = Array.from({ length: 12 }, (_, seed): GenerateRequest => ({
  model: seed % 2 === 0 ? "base" : "tuned",
  promptIds: Int32Array.from({ length: 1 + seed }, (_, at) => (at * 31 + seed) % 384),
  sampling: { seed, maxTokens: 1 + seed, topLogprobs: seed % 3, ignoreEos: true },
}))

/** Everything that the two engines are compared by. */
const told = (engine: EngineService) =>
  Effect.gen(function* () {
    yield* engine.loadAdapter({ name: "tuned", step: 3, adapter })
    yield* engine.awaitStep("tuned", 3)
    const answers = yield* Effect.forEach(requests, engine.generate, { concurrency: "unbounded" })
    const events = yield* Effect.forEach(requests, (request) => Stream.runCollect(engine.stream(request)))
    const refused = yield* Effect.forEach(
      [
        { model: "base", promptIds: [] },
        { model: "base", promptIds: [0.5] },
        { model: "base", promptIds: new Int32Array(64) },
        { model: "nobody", promptIds: [1] },
        { model: "base", promptIds: [1], sampling: { temperature: -1 } },
      ],
      (request) => Effect.flip(engine.generate(request)),
    )
    const { rank, alpha } = adapter
    const wrong = yield* Effect.flip(
      engine.loadAdapter({ name: "bad", step: 1, adapter: { rank, alpha, tensors: {} } }),
    )
    const models = yield* engine.models
    yield* engine.unloadAdapter("tuned")
    const { promptTokens, generatedTokens, running } = yield* engine.status
    return { answers, events, refused, wrong, models, promptTokens, generatedTokens, running }
  })

describe("an engine in a thread", () => {
  it.effect("answers, streams and refuses as one in this thread does, to the bit", () =>
    Effect.gen(function* () {
      const { engine } = yield* inThread
      const there = yield* told(engine)
      assert.deepStrictEqual(there, yield* told(yield* inside))
      assert.isAbove(there.answers[11].tokens.length, 5)
      // The arrays of the caller are copied, not taken away.
      assert.isAbove(Object.values(adapter.tensors)[0].data.length, 0)
    }).pipe(Effect.provide(Wasm.layer)),
  )

  it.effect("gives up requests whose caller is interrupted, and streams that are closed", () =>
    Effect.gen(function* () {
      const { engine } = yield* inThread
      // Four are answered at a time, so all of them take far longer than a message needs to reach the thread.
      const many = Array.from({ length: 500 }, (_, seed) => ({
        model: "base",
        promptIds: [1],
        sampling: { seed, maxTokens: 60, ignoreEos: true },
      }))
      const idle = Effect.repeat(engine.status, {
        until: ({ running, waiting, pages }) => running === 0 && waiting === 0 && pages.used === 0,
      })
      yield* Stream.mergeAll(many.map(engine.stream), { concurrency: "unbounded" }).pipe(
        Stream.take(1),
        Stream.runDrain,
      )
      const closed = yield* idle
      assert.isBelow(closed.generatedTokens, (500 * 60) / 2)
      const asking = yield* Effect.forkChild(Effect.forEach(many, engine.generate, { concurrency: "unbounded" }))
      yield* Effect.repeat(engine.status, { until: ({ running }) => running > 0 })
      yield* Fiber.interrupt(asking)
      const interrupted = yield* idle
      assert.isBelow(interrupted.generatedTokens - closed.generatedTokens, (500 * 60) / 2)
    }),
  )

  it.effect("tells why it cannot be made", () =>
    Effect.gen(function* () {
      const { trainer, inference } = settings
      const model = { type: "folder", path: "/nowhere/model", quantization: null } as const
      const threads = yield* EngineThreads
      const error = yield* Effect.flip(
        threads.start({ model, trainer, inference, seed: 0, baseDir: ".", name: "base" }),
      )
      assert.strictEqual(error._tag, "TrainerError")
      assert.include(error.message, "/nowhere/model")
    }).pipe(Effect.provide(Node.trainerThreads({ backend: "wasm" }))),
  )
})
