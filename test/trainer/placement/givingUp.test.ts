import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, PlatformError } from "effect"
import { TestClock } from "effect/testing"
import { Dispatcher, handler } from "../../../src/spread/cluster/Dispatcher.ts"
import {
  orchestratorHandler,
  orchestratorJob,
  orchestratorJobs,
} from "../../../src/trainer/placement/orchestratorJobs-node.ts"
import { PlacedOrchestrators } from "../../../src/trainer/placement/PlacedOrchestrators.ts"
import { mostAttempts } from "../../../src/trainer/outside/persistence.ts"
import { platform } from "../../../src/node.ts"
import { makeBadDisk } from "../badDisk.ts"
import { filesIn } from "../ranks.ts"
import { resultsFolder } from "../smallTraining.ts"
import { makeQueue } from "./queue.ts"

const placed = orchestratorJobs({ server: "http://127.0.0.1:1" }).pipe(Layer.provideMerge(platform))

/** Lets the time pass, and the files be written, until the condition holds. */
const passTime = Effect.fnUntraced(function* (isOver: () => boolean) {
  while (!isOver()) {
    yield* TestClock.adjust("1 second")
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
})

type Outcome = (typeof orchestratorJob.result)["Type"]

/** Places a run on workers that end its job in these ways. Returns the message with which the trainer ends, and the warnings. */
const placedOn = (ways: (job: number) => Outcome) =>
  Effect.gen(function* () {
    const folder = yield* resultsFolder
    let jobs = 0
    const queue = yield* makeQueue([handler(orchestratorJob, () => Effect.sync(() => ways(++jobs)))])
    const trainer = Effect.gen(function* () {
      const { open } = yield* PlacedOrchestrators
      const { play, failed } = yield* open({ outputDirectory: folder, deadlineSeconds: 60 })
      return yield* Effect.raceFirst(play({ id: "run_a" }), failed)
    }).pipe(Effect.scoped, Effect.provide(placed), Effect.provideService(Dispatcher, queue))
    const fiber = yield* Effect.forkChild(Effect.flip(trainer))
    yield* passTime(() => fiber.pollUnsafe() !== undefined)
    const { message } = yield* Fiber.join(fiber)
    return { message, jobs }
  }).pipe(Effect.scoped, Effect.provide(Logger.layer([])))

describe("a trainer whose run cannot be played on", () => {
  it.effect("ends with the reason when the run fails at the same step too often", () =>
    Effect.gen(function* () {
      const { message, jobs } = yield* placedOn(() => ({ _tag: "Again", step: 3, reason: "no space left" }))
      assert.strictEqual(jobs, mostAttempts)
      assert.strictEqual(
        message,
        "run_a: its orchestrator failed 8 times in a row: no space left; remove the cause, then resume the trainer",
      )
    }),
  )

  it.effect("goes on while the run gets further, or a worker only takes the place of another one", () =>
    Effect.gen(function* () {
      const { jobs } = yield* placedOn((job) =>
        job <= 20
          ? { _tag: "Again", step: job, reason: "no space left" }
          : job <= 40
            ? { _tag: "Replaced", reason: "another worker plays it" }
            : { _tag: "Again", step: 20, reason: "no space left" },
      )
      assert.strictEqual(jobs, 40 + mostAttempts - 1)
    }),
  )
})

describe("a worker that plays a run", () => {
  it.effect("says that a full disk of the leases is a failure", () =>
    Effect.gen(function* () {
      const folder = yield* resultsFolder
      const files = filesIn(folder)
      files.write("config.yaml", "kind: multirun\nmodel: { type: scratch }\norchestrators: outside\nruns: {}\n")
      files.write("orchestrators/lease/1", "0")
      const { disk, layer } = makeBadDisk()
      const full = PlatformError.systemError({
        _tag: "Unknown",
        module: "FileSystem",
        method: "makeDirectory",
        description: "no space left",
      })
      disk.before = (operation) => (operation === "makeDirectory" ? full : undefined)
      const { perform } = yield* orchestratorHandler("worker 1").pipe(
        Effect.provide(Layer.provideMerge(layer, platform)),
      )
      const payload = { trainer: folder, run: "run_a", server: "http://127.0.0.1:1", deadlineSeconds: 60, id: "1" }
      const answer = yield* perform({ ...payload, leases: files.at("orchestrators") })
      const text = JSON.stringify(answer)
      assert.include(text, `"_tag":"Again","step":-1`)
      assert.include(text, "no space left")
    }).pipe(Effect.scoped),
  )
})
