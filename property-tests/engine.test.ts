import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch } from "effect"
import * as fc from "fast-check"
import type { Generated } from "../src/decoder/inference/Engine.ts"
import type { EngineError } from "../src/decoder/inference/EngineError.ts"
import { makeEngine } from "../src/decoder/inference/makeEngine.ts"
import { checkAnswer, eosId, promptOf } from "../test/decoder/inference/asking.ts"
import { fakeAdapter, fakeModel, fakeWeights, letters } from "../test/decoder/inference/fakeModel.ts"
import { tries } from "../test/house/tries.ts"

const maxLength = 32
const names = ["base", "a", "b", "c"] as const
const adapterName = fc.constantFrom("a", "b", "c")

const command = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("ask" as const),
      model: fc.constantFrom(...names),
      prompt: fc.record({ seed: fc.nat(2), length: fc.integer({ min: 1, max: 20 }) }),
      maxTokens: fc.integer({ min: 1, max: 12 }),
    }),
  },
  // A number of turns of the event loop, in which the engine computes that many steps or fewer.
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("wait" as const), turns: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("interrupt" as const), at: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("loadAdapter" as const), model: adapterName }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("unloadAdapter" as const), model: adapterName }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("loadWeights" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("open" as const, "close" as const) }) },
)

const world = fc.record({
  pageSize: fc.integer({ min: 1, max: 5 }),
  /** The tokens that the cache of prompts has room for: those of one request, or of some. */
  cacheTokens: fc.integer({ min: maxLength, max: 2 * maxLength }),
  reading: fc.constantFrom([1], [1, 3], [2]),
  generating: fc.constantFrom([1], [1, 2, 4], [3], [2, 5]),
  adapterSlots: fc.integer({ min: 1, max: 3 }),
  mostRunning: fc.constantFrom(Infinity, 1, 2),
})

describe("an engine", () => {
  it("never sleeps while a request or a change can go on, whatever begins, ends, is interrupted or is replaced", () =>
    fc.assert(
      fc.asyncProperty(world, fc.array(command, { minLength: 20, maxLength: 60 }), (sizes, commands) =>
        Effect.runPromise(Effect.scoped(check(sizes, commands))),
      ),
      { numRuns: tries(200) },
    ))
})

type Sizes = typeof world extends fc.Arbitrary<infer A> ? A : never
type Command = typeof command extends fc.Arbitrary<infer A> ? A : never

const check = Effect.fnUntraced(function* (
  { mostRunning, cacheTokens, ...sizes }: Sizes,
  commands: ReadonlyArray<Command>,
) {
  const steps = Latch.makeUnsafe(true)
  let computed = 0
  const model = fakeModel({
    ...sizes,
    maxLength,
    pages: Math.ceil(cacheTokens / sizes.pageSize),
    // Others run while the step is computed: some of them are interrupted then.
    onStep: () =>
      Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => void computed++),
      ),
  })
  const engine = yield* makeEngine(model, { name: "base", tokenizer: letters, eosIds: [eosId], mostRunning, steps })
  const fibers: Array<Fiber.Fiber<unknown, EngineError>> = []
  const changes: typeof fibers = []
  const begin = (effect: Effect.Effect<unknown, EngineError>) =>
    Effect.tap(Effect.forkScoped(effect, { startImmediately: true }), (fiber) =>
      Effect.sync(() => void fibers.push(fiber)),
    )
  const change = (effect: Effect.Effect<unknown, EngineError>) =>
    Effect.map(begin(effect), (fiber) => void changes.push(fiber))
  let version = 0
  for (const one of commands) {
    switch (one.kind) {
      case "ask": {
        const promptIds = promptOf(one.prompt.seed, one.prompt.length)
        const { maxTokens } = one
        const request = { model: one.model, promptIds, sampling: { seed: fibers.length, maxTokens } }
        yield* begin(
          Effect.map(engine.generate(request), (answer: Generated) => {
            const { model, step, baseStep } = answer.weights
            checkAnswer(answer, request, 7 * baseStep + (model === "base" ? 0 : 1000 * step))
          }),
        )
        break
      }
      case "wait":
        for (let turn = 0; turn < one.turns; turn++) yield* Effect.yieldNow
        break
      case "interrupt":
        if (fibers.length > 0) yield* Fiber.interrupt(fibers[one.at % fibers.length])
        break
      case "loadAdapter":
        version++
        yield* change(engine.loadAdapter({ name: one.model, step: version, adapter: fakeAdapter(version) }))
        break
      case "unloadAdapter":
        yield* change(engine.unloadAdapter(one.model))
        break
      case "loadWeights":
        version++
        yield* change(engine.loadWeights({ step: version, weights: fakeWeights(7 * version) }))
        break
      default:
        if (one.kind === "open") steps.openUnsafe()
        else steps.closeUnsafe()
    }
  }
  const expectEnds = Effect.fnUntraced(function* (all: typeof fibers, what: string) {
    const open = () => all.filter((fiber) => fiber.pollUnsafe() === undefined).length
    // No commands need more turns than this. An engine that sleeps computes nothing in them.
    for (let turn = 0; turn < 20_000 && open() > 0; turn++) yield* Effect.yieldNow
    assert.strictEqual(open(), 0, `the number of ${what} that wait for ever, after ${computed} steps`)
  })
  yield* expectEnds(changes, "changes, which do not wait for the latch,")
  yield* steps.open
  yield* expectEnds(fibers, "requests")
  for (const fiber of fibers) {
    const exit = fiber.pollUnsafe()
    // An adapter may be missing, and there may be no room for one. Nothing else is an error, nor is an answer wrong.
    if (exit !== undefined && Exit.isFailure(exit) && !Exit.hasInterrupts(exit)) {
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.include(["unknownModel", "full"], error.reason, error.message)
    }
  }
  const { running, waiting, pages } = yield* engine.status
  assert.deepStrictEqual([running, waiting, pages.used], [0, 0, 0])
})
