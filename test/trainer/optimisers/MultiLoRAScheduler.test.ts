import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import { byStep } from "../../../src/tensor/graph/schedules.ts"
import * as MultiLoRAOptimizer from "../../../src/trainer/optimisers/MultiLoRAOptimizer.ts"
import * as MultiLoRAScheduler from "../../../src/trainer/optimisers/MultiLoRAScheduler.ts"
import type { RunSlot } from "../../../src/trainer/runs/RunSlot.ts"
import { adapterOf, fakeRuns, gradientOf, slotOf } from "./fakeRuns.ts"

const configs = [
  `max_steps = 12\n[optimiser]\nlr = 0.5\n[schedule]\ntype = "linear"\nwarmup_steps = 3\ndecay_steps = 5\nmin_lr = 0.1`,
  `max_steps = 12\n[optimiser]\nlr = 0.25\n[schedule]\ntype = "cosine"\nwarmup_steps = 2`,
  `[optimiser]\nlr = 0.125`,
]

const ratesOf = ({ config }: RunSlot) =>
  byStep(config.schedule, { learningRate: config.optimiser.lr, maxSteps: config.maxSteps })

const trainerOf = Effect.gen(function* () {
  const runs = fakeRuns()
  const adapters = configs.map((_, index) => adapterOf(index))
  const optimizer = yield* MultiLoRAOptimizer.make({ runs, parametersOf: ({ index }) => adapters[index].named })
  return { runs, optimizer, scheduler: MultiLoRAScheduler.make(optimizer), adapters }
})

const run = <A, E>(effect: Effect.Effect<A, E, Effect.Services<typeof trainerOf>>): A =>
  Effect.runSync(Effect.scoped(Effect.provide(effect, Reference.layer)))

describe("the schedules of runs", () => {
  it("give each run the rate of its own config at its own step, however often the others step", () => {
    fc.assert(
      fc.property(fc.array(fc.subarray([0, 1, 2]), { maxLength: 12 }), (rounds) => {
        run(
          Effect.gen(function* () {
            const { runs, optimizer, scheduler } = yield* trainerOf
            const slots = configs.map((config, index) => slotOf(index, config))
            for (const slot of slots) yield* runs.create(slot)
            const steps = [0, 0, 0]
            for (const ready of rounds) {
              const updated = slots.filter(({ index }) => ready.includes(index))
              for (const index of ready) optimizer.accumulate(slots[index], gradientOf(index, steps[index]))
              for (const outcome of yield* optimizer.step(updated)) {
                const { index } = outcome.slot
                const rate = outcome._tag === "Stepped" ? outcome.learningRate : NaN
                assert.strictEqual(rate, ratesOf(slots[index])(steps[index]++))
              }
              scheduler.step(updated)
            }
            for (const slot of slots) {
              assert.deepStrictEqual(scheduler.stateDictOf(slot), { step: steps[slot.index] })
              assert.strictEqual(optimizer.learningRateOf(slot), ratesOf(slot)(steps[slot.index]))
            }
          }),
        )
      }),
      { numRuns: 15 },
    )
  })

  it("continue at the step of a resumed run", () => {
    run(
      Effect.gen(function* () {
        const { runs, optimizer, scheduler } = yield* trainerOf
        for (const [index, config] of configs.entries()) {
          const slot = slotOf(index, config, 9)
          yield* runs.create(slot)
          assert.strictEqual(optimizer.learningRateOf(slot), ratesOf(slot)(9))
        }
        scheduler.step(optimizer.slots())
        for (const slot of optimizer.slots()) assert.strictEqual(optimizer.learningRateOf(slot), ratesOf(slot)(10))
      }),
    )
  })

  it("are saved and loaded by their step", () => {
    run(
      Effect.gen(function* () {
        const { runs, optimizer, scheduler } = yield* trainerOf
        const slot = slotOf(0, configs[0])
        yield* runs.create(slot)
        yield* scheduler.loadStateDict(slot, { step: 7 })
        assert.deepStrictEqual(scheduler.stateDictOf(slot), { step: 7 })
        assert.strictEqual(optimizer.learningRateOf(slot), ratesOf(slot)(7))
      }),
    )
  })

  it("begin anew with the next run at the index", () => {
    run(
      Effect.gen(function* () {
        const { runs, optimizer, scheduler } = yield* trainerOf
        const [old, other] = [slotOf(0, configs[0], 9), slotOf(0, configs[1])]
        yield* runs.create(old)
        yield* runs.remove(old)
        assert.isUndefined(scheduler.stateDictOf(old))
        yield* runs.create(other)
        assert.isUndefined(scheduler.stateDictOf(old))
        assert.deepStrictEqual(scheduler.stateDictOf(other), { step: 0 })
        assert.strictEqual(optimizer.learningRateOf(other), ratesOf(other)(0))
        const error = yield* Effect.flip(scheduler.loadStateDict(old, { step: 1 }))
        assert.strictEqual(error.message, `run 0, generation ${old.generation}: it has no schedule`)
      }),
    )
  })

  it("change how far a step goes", () => {
    run(
      Effect.gen(function* () {
        const { runs, optimizer, scheduler, adapters } = yield* trainerOf
        const schedule = `max_steps = 3\n[schedule]\ntype = "linear"`
        const config = `${schedule}\n[optimiser]\ntype = "sgd"\nlr = 1\nmomentum = 0\nweight_decay = 0\n`
        const slot = slotOf(0, config)
        yield* runs.create(slot)
        const lengths = []
        for (let step = 0; step < 3; step++) {
          const before = adapters[0].flat.slice()
          optimizer.accumulate(slot, gradientOf(0, 0))
          yield* optimizer.step([slot])
          scheduler.step([slot])
          lengths.push(Math.hypot(...before.map((value, at) => value - adapters[0].flat[at])))
        }
        // Each gradient is clipped to the norm 1, so that a step is as long as the learning rate.
        lengths.forEach((length, step) => assert.closeTo(length, 1 - step / 3, 1e-5))
      }),
    )
  })
})
