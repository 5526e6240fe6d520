import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { type EngineError, engineError } from "../../../src/decoder/inference/EngineError.ts"
import { makeGathering } from "../../../src/trainer/engine/gathering.ts"
import { makeWeightLoads } from "../../../src/trainer/engine/weightLoads.ts"
import type { RunSlot } from "../../../src/trainer/runs/RunSlot.ts"
import { slotOf } from "../optimisers/fakeRuns.ts"

/** Makes the loads of an engine in another thread, whose adapters are loaded by `loadAdapter`. */
const open = Effect.fnUntraced(function* (loadAdapter: (name: string) => Effect.Effect<void, EngineError>) {
  const slots: Array<RunSlot> = [0, 1].map((index) => slotOf(index))
  const evicted: Array<readonly [index: number, reason: string]> = []
  const loaded: Array<string> = []
  const load = yield* makeWeightLoads({
    trainerEngine: {
      engine: { loadAdapter: ({ name }) => loadAdapter(name), loadWeights: () => Effect.void },
      gathering: makeGathering(),
    },
    model: { adapterOf: () => ({ rank: 1, alpha: 1 }), stateDictOf: () => ({}) },
    runs: {
      slot: (index) => slots[index],
      evict: (index, reason) => Effect.sync(() => void evicted.push([index, reason])),
    },
    loaded: ({ id }) => void loaded.push(id),
  })
  return { load, slots, evicted, loaded }
})

const full = (name: string) => engineError(name, "full", "there is no room")

describe("the weights for an engine in another thread", () => {
  it.effect("that cannot be loaded evict their run, also by a defect, and the next ones are loaded", () =>
    Effect.gen(function* () {
      const answers = [Effect.fail(full("run_0")), Effect.die(new Error("a bug")), Effect.void]
      const { load, slots, evicted, loaded } = yield* open(() => Effect.suspend(() => answers.shift() ?? Effect.void))
      for (const index of [0, 1, 0]) yield* load(slots[index])
      for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
      assert.deepStrictEqual(evicted, [
        [0, "run_0: there is no room"],
        [1, "a bug"],
      ])
      assert.deepStrictEqual(loaded, ["run_0"])
    }).pipe(Effect.scoped),
  )

  it.effect("of a run that leaves meanwhile do not evict the run that gets its index", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const asked: Array<string> = []
      const { load, slots, evicted } = yield* open((name) =>
        Effect.gen(function* () {
          asked.push(name)
          yield* Deferred.succeed(begun, undefined)
          yield* Deferred.await(goOn)
          return yield* full(name)
        }),
      )
      for (const run of slots) yield* load(run)
      yield* Deferred.await(begun)
      slots.splice(0, 2, slotOf(0), slotOf(1))
      yield* Deferred.succeed(goOn, undefined)
      for (let turn = 0; turn < 20; turn++) yield* Effect.yieldNow
      assert.deepStrictEqual(evicted, [])
      // The run that left before its turn is not loaded at all.
      assert.deepStrictEqual(asked, ["run_0"])
    }).pipe(Effect.scoped),
  )
})
