import { stat } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Fiber, Layer, Logger, Schema } from "effect"
import { TestClock } from "effect/testing"
import {
  type Answer,
  Dispatcher,
  type DispatcherService,
  encodePayload,
  settle,
} from "../../../src/spread/cluster/Dispatcher.ts"
import { MultiRunConfig } from "../../../src/trainer/config/MultiRunConfig.ts"
import { rankHandler, rankJobs } from "../../../src/trainer/placement/rankJobs-node.ts"
import { redisStores } from "../../../src/trainer/ranks/processes-node.ts"
import { RankProcesses } from "../../../src/trainer/ranks/RankProcesses.ts"
import { startRanks } from "../../../src/trainer/ranks/startRanks.ts"
import { resultsFolder } from "../smallTraining.ts"

const platform = Layer.merge(NodeServices.layer, redisStores)

/** Ranks that train until they are interrupted. */
const machine = { worker: "a worker", processesOn: () => ({ start: () => Effect.succeed(Effect.never) }) }

const settings = Schema.decodeSync(MultiRunConfig)({
  kind: "multirun",
  model: { type: "scratch", tokenizer: { alphabet: "ab" } },
  // The clock of the test may be far ahead of the files, in which leases are renewed.
  trainer: { ranks: 4, rankDeadline: 1_000_000 },
  runs: {},
})

/**
 * A cluster whose slots are there once so many jobs wait for them. A free slot goes to a job of the trainer that has the
 * fewest, so that each trainer holds a part of them.
 */
const cluster = Effect.fnUntraced(function* (slots: number, jobs: number) {
  const { perform } = yield* Effect.provide(rankHandler(machine), platform)
  const scope = yield* Effect.scope
  const pending: Array<{ readonly trainer: string; readonly begin: Effect.Effect<void> }> = []
  const held = new Map<string, number>()
  let free = 0
  let asked = 0
  const change = (trainer: string, by: number) => held.set(trainer, (held.get(trainer) ?? 0) + by)
  const fill: Effect.Effect<void> = Effect.suspend(() => {
    if (free === 0 || pending.length === 0) return Effect.void
    pending.sort((one, other) => (held.get(one.trainer) ?? 0) - (held.get(other.trainer) ?? 0))
    const [next] = pending.splice(0, 1)
    free--
    change(next.trainer, 1)
    return Effect.andThen(next.begin, fill)
  })
  const run: DispatcherService["run"] = Effect.fnUntraced(function* (job, payload) {
    const sent = yield* encodePayload(job, payload)
    const trainer = String(/"outputDirectory":"(.*?)"/.exec(JSON.stringify(sent))?.[1])
    const answered = yield* Deferred.make<Answer>()
    const done = Effect.suspend(() => {
      free++
      change(trainer, -1)
      return fill
    })
    const begin = perform(sent).pipe(
      Effect.flatMap((answer) => Deferred.succeed(answered, answer)),
      Effect.orDie,
      Effect.ensuring(done),
      Effect.forkIn(scope),
      Effect.asVoid,
    )
    pending.push({ trainer, begin })
    if (++asked === jobs) free = slots
    yield* fill
    return yield* settle(job, yield* Deferred.await(answered))
  })
  return { inFlight: undefined, run } satisfies DispatcherService
})

describe("two trainers that each hold a part of the slots of a cluster", () => {
  it.effect("both train in the end: one gives its slots back, and tries again later", () =>
    Effect.gen(function* () {
      const dispatcher = yield* cluster(4, 6)
      const began: Array<string> = []
      const logged: Array<unknown> = []
      const trainer = Effect.fnUntraced(function* () {
        const outputDirectory = yield* resultsFolder
        const ranks = yield* startRanks({ settings, baseDir: ".", outputDirectory })
        began.push(outputDirectory)
        yield* Effect.raceFirst(ranks.untilOneEnds, Effect.sleep("5 minutes"))
      })
      const logger = Logger.make(({ message }) => void logged.push(message))
      const trainers = yield* Effect.all([trainer(), trainer()].map(Effect.scoped), { concurrency: "unbounded" }).pipe(
        Effect.provide(rankJobs({ backend: "wasm", ...machine }).pipe(Layer.provideMerge(platform))),
        Effect.provideService(Dispatcher, dispatcher),
        Effect.provide(Logger.layer([logger])),
        Effect.forkChild,
      )
      let seconds = 0
      while (trainers.pollUnsafe() === undefined && seconds++ < 3600) {
        yield* TestClock.adjust("1 second")
        // Leases are files.
        for (let turn = 0; turn < 5; turn++) yield* Effect.promise(() => stat("."))
      }
      assert.isDefined(trainers.pollUnsafe(), "both trainers wait for each other")
      yield* Fiber.join(trainers)
      assert.strictEqual(new Set(began).size, 2)
      const gaveBack = logged.filter((message) =>
        /not all 3 ranks got a slot of a worker in 60 s/.test(String(message)),
      )
      assert.isAtLeast(gaveBack.length, 1)
      assert.isAtLeast(seconds, 60)
    }).pipe(Effect.scoped),
  )
})

describe("a trainer whose ranks get their slots one after another", () => {
  it.effect("keeps those that it has for a minute after the first one", () =>
    Effect.gen(function* () {
      const started: Array<number> = []
      const processes = RankProcesses.of({
        start: ({ rank }) =>
          Effect.suspend(() => {
            started.push(rank)
            return Effect.as(Effect.sleep(rank === 2 ? "50 seconds" : "100 seconds"), Effect.never)
          }),
      })
      const trainer = yield* startRanks({ settings, baseDir: ".", outputDirectory: yield* resultsFolder }).pipe(
        Effect.provideService(RankProcesses, processes),
        Effect.provide(platform),
        Effect.forkScoped,
      )
      while (started.length < 3) yield* Effect.promise(() => stat("."))
      yield* TestClock.adjust("100 seconds")
      yield* Fiber.join(trainer)
      assert.deepStrictEqual(started, [1, 2, 3])
    }).pipe(Effect.scoped),
  )
})
