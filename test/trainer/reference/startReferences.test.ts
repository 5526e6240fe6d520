import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import { WorkerError } from "../../../src/spread/workers/WorkerError.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { openBaseModel } from "../../../src/trainer/baseModel.ts"
import { compileReference } from "../../../src/trainer/reference/compileReference.ts"
import { ReferenceThreads } from "../../../src/trainer/reference/ReferenceThreads.ts"
import { configOf, resultsFolder, runConfig, trained } from "../smallTraining.ts"

// Four windows hold half of a step's samples, so each step has several micro-batches.
const withTerm = { objective: { type: "grpo", kl: { coefficient: 0.1 } }, batch: { size: 16, group_size: 4 } }
const two = { a: runConfig(1, withTerm), b: runConfig(2, withTerm) }

/** A service whose threads are this one, and are lost at the `at`-th question. */
const threads = (at = Infinity) => {
  const devices: Array<string> = []
  let asked = 0
  const service = ReferenceThreads.of({
    start: Effect.fnUntraced(function* (task) {
      devices.push(task.device)
      const base = yield* openBaseModel(task.model, task).pipe(Effect.provide(NodeServices.layer), Effect.orDie)
      const backend = Context.get(yield* Layer.build(Wasm.layer), Backend)
      const logProbabilitiesOf = yield* compileReference(task.trainer, base).pipe(
        Effect.provideService(Backend, backend),
        Effect.orDie,
      )
      return {
        compute: (microBatch) =>
          Effect.succeed(
            ++asked < at
              ? Effect.orDie(logProbabilitiesOf(microBatch))
              : Effect.fail(WorkerError.lost("the reference's thread was lost")),
          ),
      }
    }),
  })
  return { service, devices, asked: () => asked }
}

const train = (config: unknown, { service }: Pick<ReturnType<typeof threads>, "service"> = threads()) =>
  Effect.flatMap(resultsFolder, (resultsDir) => trained(config, { resultsDir })).pipe(
    Effect.provideService(ReferenceThreads, service),
  )

describe("the thread of a trainer's reference", () => {
  // Which samples of several runs share a micro-batch depends on the moment, so `many-runs` is compared with one run.
  for (const [mixing, runs] of [
    ["one-run", two],
    ["many-runs", { a: two.a }],
  ] as const)
    it(`changes no bits, also if it is lost, with mixing: ${mixing}`, { tags: "slow" }, () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const config = (isThere: boolean) => configOf(runs, { trainer: { mixing, reference_thread: isThere } })
          const without = threads()
          const alone = yield* train(config(false), without)
          assert.deepStrictEqual(without.devices, [])
          for (const at of [Infinity, 2]) {
            const there = threads(at)
            assert.strictEqual((yield* train(config(true), there)).digest, alone.digest)
            assert.deepStrictEqual(there.devices, ["wasm"])
            if (at === Infinity) assert.isAbove(there.asked(), 2)
            // One more may have been asked for ahead of time.
            else assert.include([at, at + 1], there.asked())
          }
        }).pipe(Effect.scoped),
      ),
    )

  it("is started only for several runs with a KL term, or if the config asks for it", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const devicesOf = Effect.fnUntraced(function* (config: unknown) {
          const there = threads()
          yield* train(config, there)
          return there.devices
        })
        const without = { ...withTerm, objective: { type: "grpo", kl: { coefficient: 0 } } }
        assert.deepStrictEqual(yield* devicesOf(configOf({ a: two.a })), [])
        assert.deepStrictEqual(yield* devicesOf(configOf(two)), ["wasm"])
        assert.deepStrictEqual(yield* devicesOf(configOf({ a: two.a }, { trainer: { reference_thread: true } })), [
          "wasm",
        ])
        assert.deepStrictEqual(yield* devicesOf(configOf({ a: runConfig(1, without), b: runConfig(2, without) })), [])
      }).pipe(Effect.scoped),
    ),
  )

  it("is refused where nothing starts threads, before anything is written", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        let isOpen = false
        const config = configOf({ a: two.a }, { trainer: { reference_thread: true } })
        const error = yield* Effect.flip(trained(config, { resultsDir, onOpen: () => void (isOpen = true) }))
        const place = "trainer.reference_thread: expected null or false, found true"
        assert.strictEqual(error.message, `${place}; only Node starts threads: provide Node.trainerThreads`)
        assert.isFalse(isOpen)
      }).pipe(Effect.scoped),
    ))
})
