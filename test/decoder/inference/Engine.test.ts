import { Deferred, Effect, Exit, Fiber, Latch, Stream } from "effect"
import { assert, describe, it } from "@effect/vitest"
import { BackendError } from "../../../src/tensor/backend/Backend.ts"
import type { GenerateEvent, GenerateRequest } from "../../../src/decoder/inference/Engine.ts"
import { makeEngine } from "../../../src/decoder/inference/makeEngine.ts"
import { check, engineOf, eosId, idsOf, promptOf } from "./asking.ts"
import { fakeAdapter, fakeModel, fakeWeights, letters, logitsAfter } from "./fakeModel.ts"

describe("Engine", () => {
  it.effect("generates greedily, token by token, up to the end token or the length", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      for (const length of [1, 2, 3, 4, 5, 8, 9, 30, 47]) {
        const promptIds = promptOf(length, length)
        const answer = yield* check(engine, { model: "base", promptIds, sampling: { temperature: 0 } })
        assert.strictEqual(answer.finishReason, idsOf(answer).at(-1) === eosId ? "stop" : "length")
      }
      assert.strictEqual((yield* engine.status).pages.used, 0)
    }).pipe(Effect.scoped),
  )

  it.effect("draws token i from the stream (seed, token, i), so equal seeds give equal answers", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      const promptIds = [3, 1, 4]
      for (const seed of [0, 1, 2 ** 40])
        yield* check(engine, { model: "base", promptIds, sampling: { seed, maxTokens: 20, temperature: 2 } })
    }).pipe(Effect.scoped),
  )

  it.effect("gives requests without a seed different seeds, the same in each run", () =>
    Effect.gen(function* () {
      const answers = Effect.gen(function* () {
        const engine = yield* engineOf()
        const request = { model: "base", promptIds: [7], sampling: { maxTokens: 12, temperature: 3, ignoreEos: true } }
        return (yield* Effect.all([engine.generate(request), engine.generate(request)])).map(idsOf)
      }).pipe(Effect.scoped)
      const [first, second] = yield* answers
      assert.notDeepEqual(first, second)
      assert.deepStrictEqual(yield* answers, [first, second])
    }),
  )

  it.effect("ends at a stop string, also over tokens, and at stop tokens, and says which", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      const request = { model: "base", promptIds: [5, 6] }
      const sampling = { temperature: 0, maxTokens: 16, ignoreEos: true }
      const free = yield* engine.generate({ ...request, sampling })
      assert.strictEqual(free.finishReason, "length")
      assert.strictEqual(free.stopReason, null)
      const stop = free.text.slice(4, 7)
      const stopped = yield* engine.generate({ ...request, sampling: { ...sampling, stop: ["~", stop] } })
      assert.strictEqual(stopped.text, free.text.slice(0, free.text.indexOf(stop)))
      assert.deepStrictEqual([stopped.finishReason, stopped.stopReason], ["stop", stop])
      assert.isBelow(stopped.tokens.length, free.tokens.length)
      const id = idsOf(free)[3]
      const at = idsOf(free).indexOf(id)
      const ended = yield* engine.generate({ ...request, sampling: { ...sampling, stopTokenIds: [id] } })
      assert.deepStrictEqual(idsOf(ended), idsOf(free).slice(0, at + 1))
      assert.deepStrictEqual([ended.finishReason, ended.stopReason], ["stop", id])
      assert.strictEqual(
        ended.text,
        free.tokens
          .slice(0, at)
          .map(({ id }) => letters.decoder().push(id))
          .join(""),
      )
    }).pipe(Effect.scoped),
  )

  it.effect("computes steps only while its latch is open, but loads weights in any case", () =>
    Effect.gen(function* () {
      const steps = Latch.makeUnsafe(false)
      const model = fakeModel({ adapterSlots: 2 })
      const engine = yield* makeEngine(model, { name: "base", tokenizer: letters, eosIds: [eosId], steps })
      const answering = yield* Effect.forkScoped(engine.generate({ model: "base", promptIds: [1, 2, 3] }))
      yield* engine.loadAdapter({ name: "a", step: 1, adapter: fakeAdapter(1) })
      assert.deepStrictEqual(
        (yield* engine.models).map(({ name }) => name),
        ["base", "a"],
      )
      assert.strictEqual((yield* engine.status).steps, 0)
      yield* steps.open
      assert.isAbove((yield* Fiber.join(answering)).tokens.length, 0)
    }).pipe(Effect.scoped),
  )

  it.effect("finishes requests whose end new weights wait for, also while its latch is closed", () =>
    Effect.gen(function* () {
      const steps = Latch.makeUnsafe(true)
      const begun = yield* Deferred.make<void>()
      // Three places: those of the base, of a and of b, so that a new version of one waits for the old one's requests.
      const model = fakeModel({ adapterSlots: 3, onStep: () => Effect.asVoid(Deferred.succeed(begun, undefined)) })
      const engine = yield* makeEngine(model, { name: "base", tokenizer: letters, eosIds: [], steps })
      for (const [at, name] of ["a", "b"].entries())
        yield* engine.loadAdapter({ name, step: 1, adapter: fakeAdapter(at) })
      const request = { promptIds: [1, 2, 3], sampling: { maxTokens: 40 } }
      const answering = yield* Effect.forEach(["base", "a", "b"], (model) =>
        Effect.forkScoped(engine.generate({ ...request, model })),
      )
      yield* Deferred.await(begun)
      steps.closeUnsafe()
      for (const [at, name] of ["a", "b"].entries())
        yield* engine.loadAdapter({ name, step: 2, adapter: fakeAdapter(at + 5) })
      yield* engine.loadWeights({ step: 2, weights: fakeWeights(3) })
      yield* steps.open
      for (const fiber of answering) assert.strictEqual((yield* Fiber.join(fiber)).tokens.length, 40)
    }).pipe(Effect.scoped),
  )

  it.effect("streams the same tokens and text that it returns", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      for (const stop of [[], ["ab"], ["q", "xyz"]]) {
        const request = {
          model: "base",
          promptIds: [1, 2, 3],
          sampling: { seed: 4, temperature: 1.5, stop, topLogprobs: 2 },
        }
        const events: Array<GenerateEvent> = yield* Stream.runCollect(engine.stream(request))
        const answer = yield* engine.generate(request)
        const last = events[events.length - 1]
        assert.deepStrictEqual(events.map(({ text }) => text).join(""), answer.text)
        assert.deepStrictEqual(last._tag === "Finished" ? last.generated : null, answer)
        assert.deepStrictEqual(
          events.flatMap((event) => (event._tag === "Token" ? [event.token] : [])),
          answer.tokens,
        )
        for (const { top } of answer.tokens) assert.strictEqual(top.length, 2)
      }
      // A stream that is closed early gives its pages back.
      const request = { model: "base", promptIds: [9], sampling: { ignoreEos: true } }
      yield* Stream.runDrain(Stream.take(engine.stream(request), 2))
      const { running, waiting, pages } = yield* engine.status
      assert.deepStrictEqual([running, waiting, pages.used], [0, 0, 0])
    }).pipe(Effect.scoped),
  )

  it.effect("answers 64 requests at once as it answers each alone", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf({ pages: 100 })
      const requests = Array.from({ length: 64 }, (_, index) => ({
        model: "base",
        promptIds: promptOf(index % 16, 1 + ((index * 7) % 30)),
        sampling: { seed: index, temperature: index % 3, topP: 0.9, maxTokens: 1 + (index % 20) },
      }))
      yield* Effect.forEach(requests, (request) => check(engine, request), { concurrency: "unbounded" })
      const { running, waiting, pages, cachedPromptTokens, steps } = yield* engine.status
      assert.deepStrictEqual([running, waiting, pages.used], [0, 0, 0])
      assert.isAbove(cachedPromptTokens, 0)
      assert.isAbove(steps, 0)
    }).pipe(Effect.scoped),
  )

  it.effect("shares the prompt of a group: it is computed once, and copied where it is written", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      const promptIds = promptOf(1, 11)
      const group = Array.from({ length: 8 }, (_, seed) => ({
        model: "base",
        promptIds,
        sampling: { seed, maxTokens: 6, temperature: 1 },
      }))
      yield* Effect.forEach(group, (request) => check(engine, request), { concurrency: "unbounded" })
      // The first request computes 10 tokens of its prompt; the others take them from the cache.
      assert.strictEqual((yield* engine.status).cachedPromptTokens, 70)
    }).pipe(Effect.scoped),
  )

  it.effect("lets prompts wait for each other, when the cache has no room for all of them", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf({ pages: 12 })
      const requests = Array.from({ length: 8 }, (_, index) => ({
        model: "base",
        promptIds: promptOf(index, 15),
        sampling: { seed: index, maxTokens: 20, ignoreEos: true, temperature: 0 },
      }))
      yield* Effect.forEach(
        requests,
        (request) =>
          Effect.map(engine.generate(request), (answer) => {
            assert.strictEqual(answer.tokens.length, 20)
            let ids = [...request.promptIds]
            for (const { id } of answer.tokens) {
              const logits = logitsAfter(ids, 29)
              assert.strictEqual(id, logits.indexOf(Math.max(...logits)))
              ids = [...ids, id]
            }
          }),
        { concurrency: "unbounded" },
      )
      assert.strictEqual((yield* engine.status).pages.used, 0)
    }).pipe(Effect.scoped),
  )

  it.effect("moves requests together when others have ended, with the same answers", () =>
    Effect.gen(function* () {
      const rows: Array<number> = []
      const engine = yield* engineOf({
        generating: [1, 2, 4, 8],
        onStep: (program) => Effect.sync(() => void ("logits" in program && rows.push(program.rows))),
      })
      const requests = Array.from({ length: 8 }, (_, index) => ({
        model: "base",
        promptIds: promptOf(index, 3),
        sampling: { seed: index, maxTokens: 4 + 3 * index, ignoreEos: true },
      }))
      yield* Effect.forEach(requests, (request) => check(engine, request), { concurrency: "unbounded" })
      assert.deepStrictEqual([...new Set(rows.slice(rows.indexOf(8)))], [8, 4, 2, 1])
    }).pipe(Effect.scoped),
  )

  it.effect("frees the place of a request whose caller is interrupted", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const engine = yield* engineOf({ onStep: () => Effect.asVoid(Deferred.succeed(begun, undefined)) })
      const fiber = yield* Effect.forkChild(
        engine.generate({ model: "base", promptIds: [1, 2], sampling: { ignoreEos: true } }),
      )
      yield* Deferred.await(begun)
      assert.strictEqual((yield* engine.status).running, 1)
      yield* Fiber.interrupt(fiber)
      const { running, waiting, pages } = yield* engine.status
      assert.deepStrictEqual([running, waiting, pages.used], [0, 0, 0])
      yield* check(engine, { model: "base", promptIds: [1, 2], sampling: { temperature: 0 } })
    }).pipe(Effect.scoped),
  )

  it.effect("refuses requests that it cannot serve, each with its reason", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      const base = { model: "base", promptIds: [1] }
      const cases: ReadonlyArray<readonly [GenerateRequest, string, string]> = [
        [{ ...base, model: "other" }, "unknownModel", "other: there is no such model; expected one of base"],
        [{ ...base, promptIds: [] }, "invalidRequest", "base: the prompt is empty; expected one token or more"],
        [
          { ...base, promptIds: Array.from({ length: 48 }, () => 1) },
          "promptTooLong",
          "base: the prompt has 48 tokens; expected at most 47, as prompt and answer together have room for 48",
        ],
        [
          { ...base, promptIds: [1, 29] },
          "tokenOutOfRange",
          "base: token 1 of the prompt: expected an id from 0 to 28, found 29",
        ],
        [
          { ...base, promptIds: [1.5] },
          "tokenOutOfRange",
          "base: token 0 of the prompt: expected an id from 0 to 28, found 1.5",
        ],
        [
          { ...base, sampling: { stopTokenIds: [29] } },
          "tokenOutOfRange",
          "base: stopTokenIds: expected ids from 0 to 28, found 29",
        ],
        [{ ...base, sampling: { temperature: -1 } }, "invalidRequest", "temperature"],
        [{ ...base, sampling: { topP: 0 } }, "invalidRequest", "topP"],
        [{ ...base, sampling: { maxTokens: 0 } }, "invalidRequest", "maxTokens"],
        [{ ...base, sampling: { stop: [""] } }, "invalidRequest", "stop"],
      ]
      for (const [request, reason, message] of cases) {
        const error = yield* Effect.flip(engine.generate(request))
        assert.strictEqual(error.reason, reason)
        assert.include(error.message, message)
        assert.deepEqual(yield* Effect.flip(Stream.runDrain(engine.stream(request))), error)
      }
    }).pipe(Effect.scoped),
  )

  it.effect("fails the requests of a step that the device could not run, and goes on", () =>
    Effect.gen(function* () {
      let broken = true
      const model = fakeModel()
      const error = new BackendError({ backend: "fake", program: "decode", message: "out of memory" })
      const generating = model.generating.map((program) => ({
        ...program,
        run: Effect.suspend(() => (broken ? Effect.fail(error) : program.run)),
      }))
      const engine = yield* makeEngine({ ...model, generating }, { name: "base", tokenizer: letters, eosIds: [eosId] })
      const request = { model: "base", promptIds: [1, 2, 3], sampling: { temperature: 0 } }
      const failure = yield* Effect.flip(engine.generate(request))
      assert.strictEqual(failure.reason, "backend")
      assert.strictEqual(failure.message, "base: out of memory")
      broken = false
      yield* check(engine, request)
    }).pipe(Effect.scoped),
  )

  it.effect("ends all requests when it is closed, or when a defect ends its fiber", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const exit = yield* Effect.gen(function* () {
        const engine = yield* engineOf({
          onStep: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never),
        })
        const fiber = yield* Effect.forkDetach(engine.generate({ model: "base", promptIds: [1] }))
        yield* Deferred.await(begun)
        return { engine, fiber }
      }).pipe(Effect.scoped)
      assert.strictEqual((yield* Effect.flip(Fiber.join(exit.fiber))).reason, "closed")
      assert.strictEqual((yield* Effect.flip(exit.engine.generate({ model: "base", promptIds: [1] }))).reason, "closed")
      yield* Effect.gen(function* () {
        const engine = yield* engineOf({ onStep: () => Effect.die("a bug") })
        const died = yield* Effect.exit(engine.generate({ model: "base", promptIds: [1] }))
        assert.isTrue(Exit.hasDies(died))
        assert.isTrue(Exit.hasDies(yield* Effect.exit(engine.loadWeights({ step: 1, weights: fakeWeights(1) }))))
      }).pipe(Effect.scoped)
    }),
  )

  it.effect("fails only the requests whose logits are not numbers", () =>
    Effect.gen(function* () {
      const engine = yield* engineOf()
      yield* engine.loadAdapter({ name: "broken", step: 1, adapter: fakeAdapter(NaN) })
      const sampling = { temperature: 0, maxTokens: 8 }
      const [wrong] = yield* Effect.all(
        [
          Effect.flip(engine.generate({ model: "broken", promptIds: [1, 2], sampling })),
          check(engine, { model: "base", promptIds: [1, 2], sampling }),
        ],
        { concurrency: "unbounded" },
      )
      assert.strictEqual(wrong.reason, "notFinite")
      yield* check(engine, { model: "base", promptIds: [1, 2], sampling })
    }).pipe(Effect.scoped),
  )
})
