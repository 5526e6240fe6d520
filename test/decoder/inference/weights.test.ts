import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { EngineService, GenerateRequest } from "../../../src/decoder/inference/Engine.ts"
import { BackendError } from "../../../src/tensor/backend/Backend.ts"
import { makeEngine } from "../../../src/decoder/inference/makeEngine.ts"
import { checkAnswer, engineOf, promptOf } from "./asking.ts"
import { fakeAdapter, fakeModel, fakeWeights, letters } from "./fakeModel.ts"

/** The number that the fake model computes with, of a step of the base model and one of an adapter. */
const numberOf = (baseStep: number, adapterStep: number): number => 7 * baseStep + 1000 * adapterStep

const adapterAt = (name: string, step: number) => ({ name, step, adapter: fakeAdapter(step) })
const weightsAt = (step: number) => ({ step, weights: fakeWeights(7 * step) })

/** Asks, and checks that one version of the weights made the whole answer: the one that it names. */
const checkVersion = (engine: EngineService, request: GenerateRequest) =>
  Effect.map(engine.generate(request), (answer) => {
    const { model, step, baseStep } = answer.weights
    assert.strictEqual(model, request.model)
    checkAnswer(answer, request, numberOf(baseStep, model === "base" ? 0 : step))
    return answer
  })

describe("weights of an engine", () => {
  it.effect("are replaced under load: no request fails, and each answer is of the one version that it names", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf({ pages: 30 })
      yield* engine.loadAdapter(adapterAt("a", 1))
      yield* engine.loadAdapter(adapterAt("b", 1))
      const requests = Array.from({ length: 147 }, (_, index) => ({
        model: ["base", "a", "b"][index % 3],
        // Few prompts, so that versions meet each other's pages in the cache.
        promptIds: promptOf(index % 4, 3 + 3 * (index % 4)),
        sampling: { seed: index, temperature: 1, maxTokens: 1 + (index % 9), ignoreEos: true },
      }))
      // One request in seven first replaces weights, while others run.
      const change = (index: number) => {
        const step = 2 + Math.floor(index / 21)
        if (index % 21 === 0) return engine.loadAdapter(adapterAt("a", step))
        if (index % 21 === 7) return engine.loadWeights(weightsAt(step))
        return index % 21 === 14 ? engine.loadAdapter(adapterAt("b", step)) : Effect.void
      }
      const answers = yield* Effect.forEach(
        requests,
        (request, index) => Effect.andThen(change(index), checkVersion(engine, request)),
        { concurrency: 12 },
      )
      for (const model of ["base", "a", "b"]) {
        const steps = answers.filter(({ weights }) => weights.model === model).map(({ weights }) => weights.step)
        assert.isAbove(new Set(steps).size, 2, model)
      }
      const { pages, running } = yield* engine.status
      assert.deepStrictEqual([pages.used, running], [0, 0])
      assert.deepStrictEqual(
        (yield* engine.models).map(({ name, base, step }) => ({ name, base, step })),
        [
          { name: "base", base: null, step: 8 },
          { name: "a", base: "base", step: 8 },
          { name: "b", base: "base", step: 8 },
        ],
      )
    }).pipe(Effect.scoped),
  )

  /** An engine that waits before each step until it may go on, and a request that has begun. */
  const begun = (model: string, adapters: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const inStep = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const engine = yield* engineOf({
        onStep: () => Effect.andThen(Deferred.succeed(inStep, undefined), Deferred.await(goOn)),
      })
      for (const name of adapters) yield* engine.loadAdapter(adapterAt(name, 1))
      const request = { model, promptIds: [1, 2, 3], sampling: { temperature: 0, maxTokens: 6, ignoreEos: true } }
      const first = yield* Effect.forkChild(checkVersion(engine, request))
      yield* Deferred.await(inStep)
      return { engine, request, first, goOn: Deferred.succeed(goOn, undefined) }
    })

  it.effect("of the base are replaced when the requests that have begun are done; later ones take the new ones", () =>
    Effect.gen(function* () {
      const { engine, request, first, goOn } = yield* begun("base", [])
      const load = yield* Effect.forkChild(engine.loadWeights(weightsAt(5)), { startImmediately: true })
      const second = yield* Effect.forkChild(checkVersion(engine, request), { startImmediately: true })
      yield* goOn
      yield* Fiber.join(load)
      assert.strictEqual((yield* Fiber.join(first)).weights.step, 0)
      assert.strictEqual((yield* Fiber.join(second)).weights.step, 5)
    }).pipe(Effect.scoped),
  )

  it.effect("of an adapter are loaded beside the old ones, without waiting for the requests that use those", () =>
    Effect.gen(function* () {
      const { engine, request, first, goOn } = yield* begun("a", ["a"])
      const load = yield* Effect.forkChild(engine.loadAdapter(adapterAt("a", 2)), { startImmediately: true })
      yield* goOn
      yield* Fiber.join(load)
      const { running } = yield* engine.status
      assert.strictEqual(running, 1)
      assert.strictEqual((yield* Fiber.join(first)).weights.step, 1)
      assert.strictEqual((yield* checkVersion(engine, request)).weights.step, 2)
    }).pipe(Effect.scoped),
  )

  it.effect("of an adapter wait for a place, and then for the requests of that adapter only", () =>
    Effect.gen(function* () {
      // Both places are taken, so the new numbers of "a" need the place of the old ones.
      const { engine, request, first, goOn } = yield* begun("a", ["a", "b"])
      const load = yield* Effect.forkChild(engine.loadAdapter(adapterAt("a", 2)), { startImmediately: true })
      const second = yield* Effect.forkChild(checkVersion(engine, request), { startImmediately: true })
      const other = yield* Effect.forkChild(checkVersion(engine, { ...request, model: "b" }), {
        startImmediately: true,
      })
      const third = yield* Effect.forkChild(Effect.flip(engine.loadAdapter(adapterAt("c", 1))), {
        startImmediately: true,
      })
      yield* goOn
      yield* Fiber.join(load)
      const steps = yield* Effect.forEach([first, second, other], Fiber.join)
      assert.deepStrictEqual(
        steps.map(({ weights }) => weights.step),
        [1, 2, 1],
      )
      const full = yield* Fiber.join(third)
      assert.strictEqual(full.reason, "full")
      assert.strictEqual(full.message, "c: there is room for 2 adapters; unload one, or make the engine with more")
    }).pipe(Effect.scoped),
  )

  it.effect("of an adapter that is unloaded serve the requests that have begun, and no others", () =>
    Effect.gen(function* () {
      const { engine, request, first, goOn } = yield* begun("a", ["a"])
      const waiting = yield* Effect.forkChild(
        Effect.flip(engine.loadWeights(weightsAt(1)).pipe(Effect.andThen(engine.generate(request)))),
        {
          startImmediately: true,
        },
      )
      const unload = yield* Effect.forkChild(engine.unloadAdapter("a"), { startImmediately: true })
      yield* goOn
      yield* Fiber.join(unload)
      assert.strictEqual((yield* Fiber.join(first)).weights.step, 1)
      const late = yield* Fiber.join(waiting)
      assert.strictEqual(late.reason, "unknownModel")
      assert.strictEqual((yield* Effect.flip(engine.unloadAdapter("a"))).reason, "unknownModel")
      assert.strictEqual((yield* Effect.flip(engine.generate(request))).reason, "unknownModel")
    }).pipe(Effect.scoped),
  )

  it.effect("cannot be loaded under the base model's name, or if they don't fit", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      const base = yield* Effect.flip(engine.loadAdapter(adapterAt("base", 1)))
      assert.strictEqual(base.reason, "invalidRequest")
      const wrong = yield* Effect.flip(engine.loadWeights({ step: 1, weights: {} }))
      assert.strictEqual(wrong.message, "base: value: the tensor is missing")
      assert.strictEqual((yield* engine.models)[0].step, 0)
    }).pipe(Effect.scoped),
  )

  it.effect(
    "that could not be written are never used: the adapter is gone, and without the base's the engine closes",
    () =>
      Effect.gen(function* () {
        const model = fakeModel()
        const error = new BackendError({ backend: "fake", program: "decode", message: "the device is lost" })
        let broken = false
        const guarded = (write: Effect.Effect<void, BackendError>) =>
          Effect.suspend(() => (broken ? Effect.fail(error) : write))
        const engine = yield* makeEngine(
          {
            ...model,
            writeAdapter: (slot, adapter) => guarded(model.writeAdapter(slot, adapter)),
            writeWeights: (weights) => guarded(model.writeWeights(weights)),
          },
          { name: "base", tokenizer: letters },
        )
        yield* engine.loadAdapter(adapterAt("a", 1))
        yield* engine.loadAdapter(adapterAt("b", 1))
        broken = true
        assert.strictEqual((yield* Effect.flip(engine.loadAdapter(adapterAt("a", 2)))).message, "a: the device is lost")
        assert.deepStrictEqual(
          (yield* engine.models).map(({ name }) => name),
          ["base", "b"],
        )
        assert.strictEqual((yield* Effect.flip(engine.loadWeights(weightsAt(1)))).reason, "backend")
        const late = yield* Effect.flip(engine.generate({ model: "b", promptIds: [1] }))
        assert.strictEqual(late.message, "base: the device is lost")
      }).pipe(Effect.scoped),
  )

  it.effect("are not replaced if the caller is interrupted before its turn", () =>
    Effect.gen(function* () {
      const { engine, first, goOn } = yield* begun("base", [])
      const load = yield* Effect.forkChild(engine.loadWeights(weightsAt(5)), { startImmediately: true })
      yield* Fiber.interrupt(load)
      yield* goOn
      yield* Fiber.join(first)
      assert.strictEqual((yield* engine.models)[0].step, 0)
    }).pipe(Effect.scoped),
  )
})
