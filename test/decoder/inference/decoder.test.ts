import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Record } from "effect"
import { Backend, type BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import {
  type StepAdapter,
  Engine,
  type EngineModel,
  type GenerateRequest,
} from "../../../src/decoder/inference/Engine.ts"
import { projections } from "../../../src/decoder/networks/Decoder.ts"
import { backends, config, expected } from "../networks/fixture.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const folder = fileURLToPath(new URL("../../fixtures/hugging-face/llama/", import.meta.url))

const tensorsIn = (file: string, prefix = ""): StepAdapter["tensors"] =>
  Object.fromEntries(
    Object.entries(Safetensors.decode(readFileSync(`${folder}${file}`))).map(([name, { shape, data }]) => [
      name.slice(prefix.length),
      { shape, data: Float32Array.from(data) },
    ]),
  )

const weights = tensorsIn("model.safetensors")
/** The adapter of the fixture: rank 4 and alpha 8. */
const adapter: StepAdapter = {
  rank: 4,
  alpha: 8,
  tensors: tensorsIn("adapter/adapter_model.safetensors", "base_model.model."),
}

/** Decodes each token to its id in brackets. */
const tokenizer = { decoder: () => ({ push: (id: number) => `[${id}]`, end: () => "" }) }

const small: EngineModel = {
  name: "base",
  config,
  weights,
  tokenizer,
  generating: [1, 4],
  reading: [1, 2],
  maxLength: 64,
  pageSize: 8,
  adapters: { slots: 2, shape: { rank: 4, targets: projections } },
}

const withEngine = (
  options: Partial<EngineModel>,
  backend: Layer.Layer<Backend, BackendUnavailable>,
  test: Effect.Effect<void, unknown, Engine>,
) => test.pipe(Effect.provide(Engine.layer({ ...small, ...options })), Effect.provide(backend), Effect.orDie)

const idsOf = ({ tokens }: { readonly tokens: ReadonlyArray<{ readonly id: number }> }) => tokens.map(({ id }) => id)

const best = (logits: ReadonlyArray<number>): number => logits.indexOf(Math.max(...logits))

describe("Engine.layer", () => {
  it.effect("has the backend make its programs faster, until its scope closes", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const improve = Effect.onInterrupt(
        Effect.andThen(
          Effect.sync(() => seen.push("begun")),
          Effect.never,
        ),
        () => Effect.sync(() => seen.push("ended")),
      )
      const backend = Layer.effect(
        Backend,
        Effect.map(Backend, (inner) => ({ ...inner, improve })),
      ).pipe(Layer.provide(backends.wasm))
      yield* withEngine({ generating: [1], reading: [1], adapters: undefined }, backend, Effect.asVoid(Effect.yieldNow))
      assert.deepStrictEqual(seen, ["begun", "ended"])
    }),
  )

  for (const [backend, layer] of Object.entries({ wasm: backends.wasm, cpu: backends.cpu })) {
    it.effect(`generates the greedy tokens of Hugging Face on ${backend}`, () =>
      withEngine(
        {},
        layer,
        Effect.gen(function* () {
          const engine = yield* Engine
          const { prompt, generated } = expected.greedy
          const answers = yield* Effect.forEach(
            prompt,
            (promptIds) => engine.generate({ model: "base", promptIds, sampling: { temperature: 0, maxTokens: 12 } }),
            { concurrency: "unbounded" },
          )
          assert.deepStrictEqual(answers.map(idsOf), generated)
          assert.deepStrictEqual(answers[0].weights, { model: "base", step: 0, baseStep: 0 })
        }),
      ),
    )

    it.effect(`has the log-probabilities of Hugging Face with an adapter, beside the base model, on ${backend}`, () =>
      withEngine(
        {},
        layer,
        Effect.gen(function* () {
          const engine = yield* Engine
          yield* engine.loadAdapter({ name: "tuned", step: 7, adapter })
          const { input_ids: prompts, logits_last: base } = expected.forward
          const { logits_last: tuned } = expected.lora
          const sampling = { temperature: 0, maxTokens: 1, topLogprobs: 20 }
          const ask = (model: string) =>
            Effect.forEach(prompts, (promptIds) => engine.generate({ model, promptIds, sampling }), {
              concurrency: "unbounded",
            })
          const [withBase, withAdapter] = yield* Effect.all([ask("base"), ask("tuned")], { concurrency: "unbounded" })
          for (const [answers, logits] of [
            [withBase, base],
            [withAdapter, tuned],
          ] as const) {
            for (const [row, { tokens }] of answers.entries()) {
              const [token] = tokens
              assert.strictEqual(token.id, best([...logits[row]]))
              const sum = Math.log(logits[row].reduce((sum, logit) => sum + Math.exp(logit), 0))
              assert.closeTo(token.logprob, logits[row][token.id] - sum, 1e-4)
              assert.strictEqual(token.top.length, 20)
              for (const { id, logprob } of token.top) assert.closeTo(logprob, logits[row][id] - sum, 1e-4)
            }
          }
          assert.deepStrictEqual(withAdapter[0].weights, { model: "tuned", step: 7, baseStep: 0 })
        }),
      ),
    )
  }

  it.effect(
    "answers 64 requests at once on wasm with the same bits as each alone, whatever the sizes of its programs",
    () => {
      const random = stream(3, "prompts")
      const requests = Array.from({ length: 64 }, (_, index): GenerateRequest => {
        const length = 1 + random.integer(40)
        return {
          model: index % 3 === 0 ? "tuned" : "base",
          promptIds: Array.from({ length }, (_, at) => (at < 16 && index % 2 === 0 ? at : random.integer(384))),
          sampling: { seed: index, temperature: 1, maxTokens: 1 + random.integer(10), ignoreEos: true },
        }
      })
      const answersOf = (options: Partial<EngineModel>, concurrency: number | "unbounded") =>
        Effect.gen(function* () {
          const engine = yield* Engine
          yield* engine.loadAdapter({ name: "tuned", step: 1, adapter })
          return yield* Effect.forEach(requests, engine.generate, { concurrency })
        }).pipe(Effect.provide(Engine.layer({ ...small, ...options })), Effect.provide(backends.wasm), Effect.orDie)
      return Effect.gen(function* () {
        // A small cache of prompts, for which requests wait, and rows of several segments.
        const sizes = { generating: [1, 8, 16], reading: [1, 4], cacheTokens: 72, firstSegment: 16 }
        const together = yield* answersOf(sizes, "unbounded")
        const alone = yield* answersOf({ generating: [1], reading: [1], firstSegment: 16 }, 1)
        assert.deepStrictEqual(together, alone)
      })
    },
    { tags: "slow" },
  )

  for (const [backend, layer] of Object.entries({ wasm: backends.wasm, cpu: backends.cpu })) {
    it.effect(`keeps the numbers of one adapter out of the answers of all others on ${backend}`, () =>
      withEngine(
        { adapters: { slots: 3, shape: { rank: 4, targets: projections } } },
        layer,
        Effect.gen(function* () {
          const engine = yield* Engine
          const filled = (value: number): StepAdapter => ({
            ...adapter,
            tensors: Record.map(adapter.tensors, ({ data, shape }) => ({
              shape,
              data: new Float32Array(data.length).fill(value),
            })),
          })
          yield* engine.loadAdapter({ name: "tuned", step: 1, adapter })
          yield* engine.loadAdapter({ name: "other", step: 1, adapter: filled(0.01) })
          const sampling = { temperature: 0, maxTokens: 6, ignoreEos: true }
          const ask = (model: string) => engine.generate({ model, promptIds: [5, 7, 11], sampling })
          const before = yield* Effect.forEach(["base", "tuned"], ask, { concurrency: "unbounded" })
          // Its numbers are finite, but no sum of their products is.
          yield* engine.loadAdapter({ name: "other", step: 2, adapter: filled(3e38) })
          const [broken, ...after] = yield* Effect.all([Effect.flip(ask("other")), ask("base"), ask("tuned")], {
            concurrency: "unbounded",
          })
          assert.strictEqual(broken.reason, "notFinite")
          assert.deepStrictEqual(after, before)
          // The rows and pages of the broken answer are used again.
          assert.deepStrictEqual(yield* Effect.forEach(["base", "tuned"], ask, { concurrency: "unbounded" }), before)
        }),
      ),
    )
  }

  it.effect("serves the base model alone, if no room for adapters was asked for", () =>
    withEngine(
      { adapters: undefined },
      backends.wasm,
      Effect.gen(function* () {
        const engine = yield* Engine
        const [promptIds] = expected.greedy.prompt
        const answer = yield* engine.generate({ model: "base", promptIds, sampling: { temperature: 0, maxTokens: 12 } })
        assert.deepStrictEqual(idsOf(answer), expected.greedy.generated[0])
        const error = yield* Effect.flip(engine.loadAdapter({ name: "tuned", step: 1, adapter }))
        assert.strictEqual(error.reason, "full")
      }),
    ),
  )

  it.effect("refuses weights and adapters that don't fit, and names the tensor", () =>
    withEngine(
      {},
      backends.wasm,
      Effect.gen(function* () {
        const engine = yield* Engine
        const name = "model.layers.1.mlp.up_proj.lora_B.weight"
        const { [name]: lost, ...rest } = adapter.tensors
        const wrong: ReadonlyArray<readonly [StepAdapter, string]> = [
          [{ ...adapter, tensors: rest }, `parameter "${name}": it is missing`],
          [
            { ...adapter, tensors: { ...rest, [name]: { shape: [4, 112], data: lost.data } } },
            `parameter "${name}": expected shape [112, 4], found [4, 112]`,
          ],
          [{ ...adapter, rank: 8 }, "expected shape"],
        ]
        for (const [broken, message] of wrong) {
          const error = yield* Effect.flip(engine.loadAdapter({ name: "tuned", step: 1, adapter: broken }))
          assert.strictEqual(error.reason, "wrongWeights")
          assert.include(error.message, message)
        }
        assert.deepStrictEqual((yield* engine.models).length, 1)
        const { "model.norm.weight": norm, ...others } = weights
        const missing = yield* Effect.flip(engine.loadWeights({ step: 1, weights: others }))
        assert.strictEqual(missing.message, 'base: parameter "model.norm.weight": it is missing')
        assert.strictEqual(norm.data.length, 64)
      }),
    ),
  )
})

describe("caches that would fill the memory", () => {
  for (const [options, found] of [
    [{ generating: [4096], maxLength: 64, mostBytes: 2 ** 20 }, "4096 answers in one step and 64 tokens of each"],
    [{ adapters: { slots: 4096, shape: { rank: 4096, targets: projections } } }, "and 4096 adapters of rank 4096"],
  ] as const) {
    it.effect(`are refused before they are made: ${found}`, () =>
      Effect.gen(function* () {
        const [backend] = Object.values(backends)
        const opened = Effect.scoped(Layer.build(Layer.provide(Engine.layer({ ...small, ...options }), backend)))
        const problem = yield* Effect.flip(opened)
        assert.match(problem.message, /^the engine: it has room for [\d.]+ GiB, but would need for the caches/)
        assert.include(problem.message, found)
      }),
    )
  }
})
