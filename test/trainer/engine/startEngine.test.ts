import { existsSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Deferred, Effect, Layer } from "effect"
import { assert, describe, it } from "vitest"
import { WorkerError } from "../../../src/spread/workers/WorkerError.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import type { Plain } from "../../../src/base/config/Config.ts"
import { Engine } from "../../../src/decoder/inference/Engine.ts"
import { engineError } from "../../../src/decoder/inference/EngineError.ts"
import { openBaseModel } from "../../../src/trainer/baseModel.ts"
import { engineModel } from "../../../src/trainer/engine/engineModel.ts"
import { EngineThreads } from "../../../src/trainer/engine/EngineThreads.ts"
import * as Layout from "../../../src/trainer/Layout.ts"
import { TrainerError } from "../../../src/trainer/TrainerError.ts"
import { configOf, resultsFolder, runConfig, runFiles, trained } from "../smallTraining.ts"

const two = { a: runConfig(1, { checkpoint: { every: 1 } }), b: runConfig(2, { checkpoint: { every: 1 } }) }

const withInference = (runs: Readonly<Record<string, Plain>>, inference: Plain) => {
  const config = configOf(runs)
  return { ...config, inference: { ...config.inference, ...inference } }
}

/** A service whose engines work in this thread, and are lost at the `at`-th answer of their first start. */
const threads = (at = Infinity) => {
  let starts = 0
  const service = EngineThreads.of({
    start: Effect.fnUntraced(function* (task) {
      const isFirst = starts++ === 0
      const base = yield* openBaseModel(task.model, task).pipe(Effect.provide(NodeServices.layer), Effect.orDie)
      const layer = Engine.layer(engineModel(task, { ...base, name: task.name })).pipe(Layer.provide(Wasm.layer))
      const engine = Context.get(yield* Effect.mapError(Layer.build(layer), TrainerError.from), Engine)
      const lost = yield* Deferred.make<never, WorkerError>()
      let answers = 0
      const generate: typeof engine.generate = (request) =>
        Effect.flatMap(engine.generate(request), (answer) => {
          if (!isFirst || ++answers < at) return Effect.succeed(answer)
          Deferred.doneUnsafe(lost, Effect.fail(WorkerError.lost("the engine's thread was lost")))
          return Effect.fail(engineError(request.model, "closed", "the engine's thread was lost"))
        })
      return { engine: { ...engine, generate }, untilLost: Deferred.await(lost) }
    }),
  })
  return { service, starts: () => starts }
}

describe("the engine of a trainer", () => {
  it(
    "works in a thread if there are several runs, with the same digest, also if the thread is lost",
    { tags: "slow" },
    () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const alone = yield* trained(configOf(two), { resultsDir: yield* resultsFolder })
          for (const at of [Infinity, 1, 20]) {
            const { service, starts } = threads(at)
            const there = yield* trained(configOf(two), { resultsDir: yield* resultsFolder }).pipe(
              Effect.provideService(EngineThreads, service),
            )
            assert.strictEqual(there.digest, alone.digest)
            assert.strictEqual(starts(), at === Infinity ? 1 : 2)
            for (const run of ["a", "b"]) assert.isFalse(existsSync(join(there.runDir, `run_${run}`, Layout.evicted)))
          }
        }).pipe(Effect.scoped),
      ),
  )

  it("works in the trainer's thread if there is one run, unless the config asks for another", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { service, starts } = threads()
        const train = (config: unknown) =>
          Effect.flatMap(resultsFolder, (resultsDir) => trained(config, { resultsDir })).pipe(
            Effect.provideService(EngineThreads, service),
          )
        const one = yield* train(configOf({ a: two.a }))
        yield* train(withInference(two, { own_thread: false }))
        assert.strictEqual(starts(), 0)
        const asked = yield* train(withInference({ a: two.a }, { own_thread: true }))
        assert.strictEqual(starts(), 1)
        assert.deepStrictEqual(runFiles(asked.runDir, "a").weightsAt(3), runFiles(one.runDir, "a").weightsAt(3))
      }).pipe(Effect.scoped),
    ),
  )

  it("is refused where nothing starts threads, before anything is written", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        let isOpen = false
        const refusedWith = (ownThread: unknown) =>
          Effect.map(
            Effect.flip(
              trained(withInference(two, { own_thread: ownThread }), {
                resultsDir,
                onOpen: () => void (isOpen = true),
              }),
            ),
            ({ message }) => message,
          )
        const place = "inference.own_thread: expected null or false, found true"
        assert.strictEqual(yield* refusedWith(true), `${place}; only Node starts threads: provide Node.trainerThreads`)
        assert.include(yield* refusedWith("yes"), "inference.own_thread: expected")
        assert.isFalse(isOpen)
      }).pipe(Effect.scoped),
    ))
})
