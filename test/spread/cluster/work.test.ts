import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import * as PersistedQueue from "effect/persistence/PersistedQueue"
import * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import * as Dispatcher from "../../../src/spread/cluster/Dispatcher.ts"
import { JobWorkflow, work, workflowLayer } from "../../../src/spread/cluster/work.ts"

const whoDoes = Dispatcher.job({
  name: "who-does",
  payload: Schema.Int,
  result: Schema.String,
  failure: Schema.Never,
  key: String,
})

const inMemory = workflowLayer.pipe(
  Layer.provideMerge(WorkflowEngine.layerMemory),
  Layer.provideMerge(PersistedQueue.layer.pipe(Layer.provide(PersistedQueue.layerStoreMemory))),
)

const watcher = { started: () => Effect.void, ended: () => Effect.void }

const workerOf = (version: string) =>
  work([Dispatcher.handler(whoDoes, () => Effect.succeed(version))], { version, slots: 2, watcher })

describe("the workers of a cluster", () => {
  it.live("do only the jobs of their own version of the code", () =>
    Effect.gen(function* () {
      for (const version of ["0.1.0+old", "0.1.0+new"]) yield* Effect.forkScoped(workerOf(version))
      const asked = Array.from({ length: 12 }, (_, at) => (at % 2 === 0 ? "0.1.0+old" : "0.1.0+new"))
      const answers = yield* Effect.forEach(
        asked,
        (version, at) =>
          JobWorkflow.execute({ job: "who-does", version, key: `who-does ${at}`, round: 0, payload: at }),
        { concurrency: "unbounded" },
      )
      const by = yield* Effect.forEach(answers, (answer) => Dispatcher.settle(whoDoes, answer))
      assert.deepStrictEqual(by, asked)
    }).pipe(Effect.provide(inMemory), Effect.scoped),
  )
})
