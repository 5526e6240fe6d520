import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Fiber, Layer, Logger } from "effect"
import { assert, describe, it } from "vitest"
import { Dispatcher } from "../../../src/spread/cluster/Dispatcher.ts"
import { orchestratorHandler, orchestratorJobs } from "../../../src/trainer/placement/orchestratorJobs-node.ts"
import { PlacedOrchestrators } from "../../../src/trainer/placement/PlacedOrchestrators.ts"
import { platform } from "../../../src/node.ts"
import { until } from "../../command/cli/effect.ts"
import { filesIn } from "../ranks.ts"
import { configOf, resultsFolder, runConfig, trained } from "../smallTraining.ts"
import { makeQueue } from "./queue.ts"

/** An address at which nobody listens: orchestrators wait until a server answers there. */
const server = "http://127.0.0.1:1"

const config = `kind: multirun
model: { type: scratch, hidden_size: 8, layers: 1, heads: 2, tokenizer: { alphabet: "ab" } }
trainer: { max_runs: 2, lora: { rank: 2 } }
orchestrators: outside
runs: {}
`

const placed = orchestratorJobs({ server }).pipe(Layer.provideMerge(platform))

const outside = { ...configOf({ a: runConfig(1) }), orchestrators: "outside", broadcast: { keep: 2 } }

describe("a trainer whose runs are played by jobs of a cluster", () => {
  it("has each run played by one worker at a time, until it ends the job", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const folder = yield* resultsFolder
        const files = filesIn(folder)
        files.write("config.yaml", config)
        files.write("run_a/configs/orch.yaml", "train_dataset: { type: reverse_text }\nmax_steps: 1\n")
        files.write("run_a/control/token", "run_a 1 0\n")
        files.write("run_a/broadcast/step_0/STABLE", "")
        const lock = join(folder, "run_a/control/player.lock")
        const holder = (): string => (existsSync(lock) ? readFileSync(lock, "utf8") : "")
        const queue = yield* makeQueue([yield* Effect.provide(orchestratorHandler("worker 1"), platform)])
        const trainer = Effect.gen(function* () {
          const { open } = yield* PlacedOrchestrators
          const { play, failed } = yield* open({ outputDirectory: folder, deadlineSeconds: 60 })
          return yield* Effect.raceFirst(play({ id: "run_a" }), failed)
        }).pipe(
          Effect.scoped,
          Effect.provide(placed),
          Effect.provideService(Dispatcher, queue),
          Effect.provide(Logger.layer([])),
        )
        const fiber = yield* Effect.forkChild(trainer)
        yield* Effect.promise(() => until(() => holder() !== "" || fiber.pollUnsafe() !== undefined))
        assert.isUndefined(fiber.pollUnsafe())
        const before = holder()
        assert.match(before, /^a worker of the cluster: worker 1 /)

        // The worker was frozen, so that another one takes the job. The first one comes back, and ends the job, because it
        // does not play any more; so the trainer places the run once more.
        const [first] = queue.jobs
        yield* first.redeliver
        yield* Fiber.join(first.fiber)
        yield* Effect.promise(() => until(() => queue.jobs.length === 3))
        const [, second, third] = queue.jobs
        yield* Fiber.join(second.fiber)
        yield* Effect.promise(() => until(() => holder() !== "" && holder() !== before))
        assert.isUndefined(third.fiber.pollUnsafe())

        yield* Fiber.interrupt(fiber)
        yield* Fiber.join(third.fiber)
        assert.strictEqual(holder(), "")
        assert.isFalse(existsSync(join(folder, "orchestrators")))
        // A job that is taken when the trainer is over does nothing.
        yield* third.redeliver
        const last = queue.jobs.at(-1)
        if (last === undefined) assert.fail("no job was taken")
        yield* Fiber.join(last.fiber)
        assert.strictEqual(holder(), "")
      }).pipe(Effect.scoped),
    ),
  )

  it("ends with a clear reason if a worker does not see its folder", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const handler = yield* Effect.provide(orchestratorHandler("worker 1"), platform)
        const elsewhere = {
          ...handler,
          perform: (payload: unknown) =>
            handler.perform(JSON.parse(JSON.stringify(payload).replaceAll(resultsDir, "/nowhere"))),
        }
        const { message } = yield* Effect.flip(trained(outside, { resultsDir })).pipe(
          Effect.provide(placed),
          Effect.provideService(Dispatcher, yield* makeQueue([elsewhere])),
        )
        assert.match(
          message,
          /^run_a: worker 1 has no folder of a trainer \/nowhere\/.*; mount the same results folder on all machines$/,
        )
      }).pipe(Effect.scoped),
    ))

  it("is refused if its config keeps the orchestrators in its own process, before anything is written", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        let isOpen = false
        const inside = configOf({ a: runConfig(1) })
        const failing = trained(inside, { resultsDir, onOpen: () => void (isOpen = true) })
        const { message } = yield* Effect.flip(Effect.provide(failing, placed))
        assert.match(message, /^orchestrators: expected outside, found inside; /)
        assert.isFalse(isOpen)
      }).pipe(Effect.scoped),
    ))
})
