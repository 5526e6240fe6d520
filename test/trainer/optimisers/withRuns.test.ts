import { Effect, Logger } from "effect"
import { assert, describe, it } from "vitest"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Decoder from "../../../src/decoder/networks/Decoder.ts"
import * as MultiLoRAOptimizer from "../../../src/trainer/optimisers/MultiLoRAOptimizer.ts"
import * as MultiLoRAScheduler from "../../../src/trainer/optimisers/MultiLoRAScheduler.ts"
import type { Runs } from "../../../src/trainer/runs/Runs.ts"
import * as Rng from "../../../src/base/rng/Rng.ts"
import { config } from "../../decoder/networks/fixture.ts"
import { startRanks } from "../ranks.ts"

/** The part of a trainer that holds adapters and their optimisers, on one rank. */
const partOf = Effect.fnUntraced(function* (runs: Runs["Service"]) {
  const adapters = new Decoder.MultiLoRA(config, { rank: 2, targets: ["q_proj"] }, runs.maxRuns)
  yield* runs.register({
    creation: ({ index, id }) =>
      Effect.sync(() => adapters.reset(index, { rank: 2, alpha: 4 }, Rng.stream(1, "adapter", id))),
    deletion: ({ index }) => Effect.sync(() => adapters.clear(index)),
  })
  const optimizer = yield* MultiLoRAOptimizer.make({
    runs,
    parametersOf: ({ index }) => adapters.namedParametersOf(index),
  })
  const scheduler = MultiLoRAScheduler.make(optimizer)
  optimizer.registerPostCreationCallback((_, { id }) =>
    id === "run_b" ? Effect.fail({ message: "there is no memory left" }) : Effect.void,
  )
  return { runs, adapters, optimizer, scheduler }
})

const orch = `max_steps = 8\n[optimiser]\ntype = "muon"\nlr = 0.5\n[schedule]\ntype = "linear"\nwarmup_steps = 4`

describe("optimisers with the service Runs", () => {
  it("a run whose optimiser cannot be made is evicted on all ranks; one that comes again begins anew", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { files, ranks, turn, ids } = yield* startRanks(2, { maxConcurrentRuns: 3 })
        const parts = yield* Effect.forEach(ranks, partOf)
        for (const id of ["run_a", "run_b", "run_c"]) files.add(id, orch)
        yield* turn
        yield* turn
        assert.strictEqual(ids(), "run_a - run_c")
        for (const { optimizer } of parts)
          assert.deepStrictEqual(
            optimizer.slots().map(({ id }) => id),
            ["run_a", "run_c"],
          )

        const step = Effect.fnUntraced(function* (id: string) {
          for (const { runs, optimizer, scheduler, adapters } of parts) {
            const slot = runs.slot(runs.idToIndex(id) ?? -1)
            assert(slot !== undefined)
            const gradient = adapters.row(slot.index).map((value, at) => value + Math.sin(at))
            assert.isTrue(optimizer.accumulate(slot, gradient))
            const outcomes = yield* optimizer.step([slot])
            assert.deepStrictEqual(
              outcomes.map(({ _tag, slot }) => `${_tag} ${slot.id}`),
              [`Stepped ${id}`],
            )
            scheduler.step([slot])
          }
        })
        const [first, second] = parts
        const before = first.adapters.row(2).slice()
        yield* step("run_a")
        yield* step("run_a")
        assert.deepStrictEqual(first.adapters.row(2), before)
        yield* step("run_c")
        assert.deepStrictEqual(second.adapters.table, first.adapters.table)
        const old = first.runs.slot(0)
        assert(old !== undefined)
        assert.deepStrictEqual(first.scheduler.stateDictOf(old), { step: 2 })

        // Deleted and made again between two looks: another run, with the adapter of a new one and no moments.
        const kept = first.adapters.row(2).slice()
        files.remove("run_a")
        files.add("run_a", orch)
        yield* turn
        const slot = first.runs.slot(0)
        assert(slot !== undefined)
        assert.isFalse(first.optimizer.accumulate(old, first.adapters.row(0)))
        assert.deepStrictEqual(first.scheduler.stateDictOf(slot), { step: 0 })
        for (const { data } of Object.values(yield* first.optimizer.stateDictOf(slot)))
          assert.isTrue(data.every((number) => number === 0))
        assert.deepStrictEqual(first.adapters.row(2), kept)
      }).pipe(Effect.scoped, Effect.provide([Wasm.layer, Logger.layer([])])),
    ))
})
