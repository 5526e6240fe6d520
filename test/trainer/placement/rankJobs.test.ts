import { existsSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Fiber, Layer } from "effect"
import { assert, describe, it } from "vitest"
import { Dispatcher } from "../../../src/spread/cluster/Dispatcher.ts"
import { layerUnreliable } from "../../../src/spread/cluster/unreliable.ts"
import { rankHandler, rankJobs } from "../../../src/trainer/placement/rankJobs-node.ts"
import { redisStores } from "../../../src/trainer/ranks/processes-node.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { fibers, updateOf } from "../ranks/fibers.ts"
import { configOf, resultsFolder, runConfig, trained } from "../smallTraining.ts"
import { makeQueue } from "./queue.ts"

const runs = {
  a: runConfig(1, { max_steps: 2 }),
  b: runConfig(2, { max_steps: 3, batch: { size: 16, group_size: 4 } }),
}
const onRanks = (ranks: number) => configOf(runs, { trainer: { ranks } })

const platform = Layer.merge(NodeServices.layer, redisStores)

/** A machine whose ranks are fibers of this process. */
const machine = () => {
  const ranks = fibers()
  return { ...ranks, worker: "a worker", processesOn: () => ranks.service }
}

const placed = (processesOn: ReturnType<typeof machine>["processesOn"]) =>
  rankJobs({ backend: "wasm", processesOn }).pipe(Layer.provideMerge(platform))

const warningsIn = (events: ReadonlyArray<RunEvent>) =>
  events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))

describe("a trainer whose ranks are jobs of a cluster", () => {
  it("ends with the bits of one rank, also if workers are lost and jobs are delivered twice", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const alone = yield* trained(onRanks(1), { resultsDir })
        const { tasks, ...options } = machine()
        const queue = yield* makeQueue([yield* Effect.provide(rankHandler(options), platform)])
        const events: Array<RunEvent> = []
        const faults = new Map([
          // The worker of a rank is killed, and another worker takes the job.
          [1, Effect.suspend(() => Effect.andThen(Fiber.interrupt(queue.jobs[1].fiber), queue.jobs[1].redeliver))],
          // A worker is frozen: another one takes the job, while the first one goes on.
          [3, Effect.suspend(() => queue.jobs.at(-1)?.redeliver ?? Effect.void)],
        ])
        const together = yield* trained(onRanks(3), {
          resultsDir,
          onEvent: (event) => {
            events.push(event)
            const update = updateOf(event) ?? 0
            const fault = faults.get(update)
            faults.delete(update)
            if (fault !== undefined) Effect.runFork(fault)
          },
        }).pipe(Effect.provide(placed(options.processesOn)), Effect.provideService(Dispatcher, queue))
        assert.strictEqual(together.digest, alone.digest)
        const lost =
          /^rank [12] was lost: the worker that computed it has disappeared; all ranks start again from the last checkpoints$/
        assert.deepStrictEqual(
          warningsIn(events).map((message) => lost.test(message) || message),
          [true, true],
        )
        // Two ranks were started three times, and no second copy of one began.
        assert.deepStrictEqual(tasks.map(({ rank }) => rank).toSorted(), [1, 1, 1, 2, 2, 2])
        // All jobs end with the trainer, and one that is taken later does nothing.
        const [first] = queue.jobs
        yield* first.redeliver
        yield* Effect.forEach(queue.jobs, ({ fiber }) => Fiber.await(fiber))
        assert.strictEqual(tasks.length, 6)
        assert.isFalse(existsSync(join(together.runDir, "ranks")))
      }).pipe(Effect.scoped),
    ),
  )

  it("ends with the bits of one rank over an unreliable network", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const alone = yield* trained(onRanks(1), { resultsDir })
        const options = machine()
        const handlers = [yield* Effect.provide(rankHandler(options), platform)]
        const together = yield* trained(onRanks(2), { resultsDir }).pipe(
          Effect.provide(placed(options.processesOn)),
          Effect.provide(layerUnreliable({ seed: 1, handlers })),
        )
        assert.strictEqual(together.digest, alone.digest)
      }).pipe(Effect.scoped),
    ),
  )

  it("ends with a clear reason if a worker does not see the folder of the trainer", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const options = machine()
        const handler = yield* Effect.provide(rankHandler(options), platform)
        const elsewhere = {
          ...handler,
          perform: (payload: unknown) =>
            handler.perform(JSON.parse(JSON.stringify(payload).replaceAll(resultsDir, "/nowhere"))),
        }
        const failing = trained(onRanks(2), { resultsDir }).pipe(
          Effect.provide(placed(options.processesOn)),
          Effect.provideService(Dispatcher, yield* makeQueue([elsewhere])),
        )
        const { message } = yield* Effect.flip(failing)
        assert.match(
          message,
          /^rank 1: a worker has no folder \/nowhere\/.*; mount the same results folder on all machines$/,
        )
      }).pipe(Effect.scoped),
    ))
})
