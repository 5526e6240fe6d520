import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Schema } from "effect"
import * as PersistedQueue from "effect/persistence/PersistedQueue"
import * as TestClock from "effect/testing/TestClock"
import * as WorkflowEngine from "effect/workflow/WorkflowEngine"
import type { WorkerError } from "../../../src/spread/workers/WorkerError.ts"
import * as Dispatcher from "../../../src/spread/cluster/Dispatcher.ts"
import { DatabaseAnswers, largestAnswer } from "../../../src/spread/cluster/persistence.ts"
import { JobWorkflow, work, workflowLayer } from "../../../src/spread/cluster/work.ts"

const repeat = Dispatcher.job({
  name: "repeat",
  payload: Schema.Struct({ text: Schema.String, times: Schema.Int }),
  result: Schema.String,
  failure: Schema.Never,
  key: ({ text, times }) => `${text} ${times} times`,
})

const handler = Dispatcher.handler(repeat, ({ text, times }) => Effect.succeed(text.repeat(times)))

/** The faults of the database: each gets the number of the call, and says what is thrown by it. */
interface Faults {
  readonly offer?: (call: number) => string | undefined
  readonly send?: (call: number, isAnswer: boolean) => string | undefined
}

const thrown = (message: string | undefined) =>
  message === undefined ? Effect.void : Effect.die(new Error("Failed to persist", { cause: new Error(message) }))

/** The queue and the engine in memory, with faults. */
const faulty = ({ offer = () => undefined, send = () => undefined }: Faults) => {
  let offers = 0
  let sends = 0
  const store = Layer.effect(
    PersistedQueue.PersistedQueueStore,
    Effect.map(PersistedQueue.PersistedQueueStore, (store) => ({
      ...store,
      offer: (options: Parameters<typeof store.offer>[0]) =>
        Effect.suspend(() => Effect.andThen(thrown(offer(++offers)), store.offer(options))),
    })),
  ).pipe(Layer.provide(PersistedQueue.layerStoreMemory))
  const engine = Layer.effect(
    WorkflowEngine.WorkflowEngine,
    Effect.map(WorkflowEngine.WorkflowEngine, (engine) =>
      WorkflowEngine.WorkflowEngine.of({
        ...engine,
        deferredDone: (deferred, options) =>
          Effect.suspend(() =>
            Effect.andThen(thrown(send(++sends, Exit.isSuccess(options.exit))), engine.deferredDone(deferred, options)),
          ),
      }),
    ),
  ).pipe(Layer.provide(WorkflowEngine.layerMemory))
  return workflowLayer.pipe(
    Layer.provideMerge(engine),
    Layer.provideMerge(PersistedQueue.layer.pipe(Layer.provide(store))),
  )
}

/** Lets everything happen that waits for the system: the id of a workflow is a digest that another thread computes. */
const turnOfTheSystem = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

/**
 * Asks a worker for a job, and lets the time pass until it has answered. Returns the exit, what the worker reports, and the
 * seconds.
 */
const asked = (faults: Faults, times = 2, isThere: () => boolean = () => true) =>
  Effect.gen(function* () {
    const reports: Array<string> = []
    const watcher = {
      started: () => Effect.void,
      ended: (key: string, problem: string | null | undefined) =>
        Effect.sync(() => void reports.push(`${key}: ${problem ?? "done"}`)),
    }
    yield* Effect.forkScoped(work([handler], { version: "1", slots: 1, watcher }))
    const payload = { text: "ab", times }
    const sent = { job: "repeat", version: "1", key: `repeat ${repeat.key(payload)}`, round: 0, payload }
    const fiber = yield* Effect.forkScoped(
      Effect.exit(Effect.flatMap(JobWorkflow.execute(sent), (answer) => Dispatcher.settle(repeat, answer))),
    )
    let seconds = 0
    while (fiber.pollUnsafe() === undefined) {
      yield* turnOfTheSystem
      yield* TestClock.adjust("1 second")
      seconds++
    }
    return { exit: yield* Fiber.join(fiber), reports, seconds }
  }).pipe(
    Effect.provide(faulty(faults)),
    Effect.provideService(
      DatabaseAnswers,
      Effect.sync(() => isThere()),
    ),
    Effect.scoped,
  )

const messageOf = (exit: Exit.Exit<string, WorkerError>): string =>
  Exit.isFailure(exit) ? String(Effect.runSync(Effect.flip(exit)).message) : assert.fail("it succeeded")

describe("a job", () => {
  it.effect("whose answer is too large fails at once, with its name and the limit", () =>
    Effect.gen(function* () {
      const { exit, reports } = yield* asked({}, largestAnswer / 2)
      const message = `job repeat ab ${largestAnswer / 2} times: its answer is too large: 64.0 MiB as JSON, expected at most 64 MiB`
      assert.strictEqual(messageOf(exit), message)
      assert.deepStrictEqual(reports, [`repeat ab ${largestAnswer / 2} times: ${message}`])
    }),
  )

  it.effect("whose answer can never be sent fails with the reason after five tries", () =>
    Effect.gen(function* () {
      let tries = 0
      const { exit, reports } = yield* asked({
        send: (_, isAnswer) => (isAnswer ? (tries++, "invalid byte sequence") : undefined),
      })
      const message = "job repeat ab 2 times: sending its answer failed 5 times: invalid byte sequence"
      assert.strictEqual(messageOf(exit), message)
      assert.strictEqual(tries, 5)
      assert.deepStrictEqual(reports, [`repeat ab 2 times: ${message}`])
    }),
  )

  it.effect("that can never be put into the queue fails with the reason after five tries", () =>
    Effect.gen(function* () {
      let tries = 0
      const { exit } = yield* asked({ offer: () => (tries++, "value too long for type") })
      assert.strictEqual(
        messageOf(exit),
        "job repeat ab 2 times: putting it into the queue failed 5 times: value too long for type",
      )
      assert.strictEqual(tries, 5)
    }),
  )

  it.effect("is done if a fault passes, or lasts as long as the database is gone", () =>
    Effect.gen(function* () {
      const few = (call: number) => (call <= 4 ? "it blinks" : undefined)
      const { exit, reports } = yield* asked({ offer: few, send: few })
      assert.deepStrictEqual(exit, Exit.succeed("abab"))
      assert.deepStrictEqual(reports, ["repeat ab 2 times: done"])
      let calls = 0
      const gone = () => (calls++ < 40 ? "connection refused" : undefined)
      const late = yield* asked({ offer: gone, send: gone }, 2, () => calls > 40)
      assert.deepStrictEqual(late.exit, Exit.succeed("abab"))
      assert.isAtLeast(late.seconds, 40)
    }),
  )
})
