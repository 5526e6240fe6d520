import { dirname } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { WorkerError } from "../../../src/spread/workers/WorkerError.ts"
import { RedisStores } from "../../../src/trainer/ranks/rankStore.ts"
import { RankProcesses } from "../../../src/trainer/ranks/RankProcesses.ts"
import { redisStore } from "../../../src/trainer/store/redisStores-node.ts"
import type { RunEvent } from "../../../src/run/record/RunEvent.ts"
import { differences, leftBy } from "../../command/cli/multirunCrash.ts"
import { hasRedis, redisServer } from "../store/redisServer.ts"
import { configOf, resultsFolder, runConfig, runFiles, trained, validated } from "../smallTraining.ts"
import { fibers, updateOf } from "./fibers.ts"

const runs = {
  a: runConfig(1, { ...validated, max_steps: 2 }),
  b: runConfig(2, { ...validated, max_steps: 3, batch: { size: 16, group_size: 4 } }),
}
const updates = [1, 2, 3, 4, 5]

const onRanks = (ranks: number) => configOf(runs, { trainer: { ranks } })

describe("a trainer with several ranks", () => {
  it("ends with the bits of one with one rank, also if ranks are lost meanwhile", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const alone = yield* trained(onRanks(1), { resultsDir })
        const ranks = fibers()
        const events: Array<RunEvent> = []
        const lossesAfter = [1, 3]
        const together = yield* trained(onRanks(3), {
          resultsDir,
          onEvent: (event) => {
            events.push(event)
            if (lossesAfter.length === 0 || updateOf(event) !== lossesAfter[0]) return
            lossesAfter.shift()
            ranks.end(WorkerError.lost("rank 2 was lost"))
          },
        }).pipe(Effect.provideService(RankProcesses, ranks.service))
        assert.strictEqual(together.digest, alone.digest)
        for (const [name, last] of [
          ["a", 2],
          ["b", 3],
        ] as const) {
          const [one, other] = [runFiles(together.runDir, name), runFiles(alone.runDir, name)]
          assert.deepStrictEqual(one.progressAt(last), other.progressAt(last))
          assert.deepStrictEqual(one.weightsAt(last), other.weightsAt(last))
        }
        // Two ranks were started three times; no update was done twice.
        assert.deepStrictEqual(
          ranks.tasks.map(({ rank }) => rank),
          [1, 2, 1, 2, 1, 2],
        )
        assert.deepStrictEqual(
          events.flatMap((event) => updateOf(event) ?? []),
          updates,
        )
        assert.deepStrictEqual(
          events.flatMap((event) => (event._tag === "Warning" ? [event.message] : [])),
          Array(2).fill("rank 2 was lost; all ranks start again from the last checkpoints"),
        )
        const { textOf } = runFiles(together.runDir, "a/../ranks")
        assert.isUndefined(textOf("."), "the folder of the ranks is gone")
      }).pipe(Effect.scoped),
    ),
  )

  it("saves a run when a rank is lost, which changes no file but its set of checkpoints", { tags: "slow" }, () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const a = runConfig(1, { ...validated, max_steps: 4, checkpoint: { every: 2, keep: 2 } })
        const resultsDir = yield* resultsFolder
        const alone = yield* trained(configOf({ a }), { resultsDir })
        const ranks = fibers()
        const together = yield* trained(configOf({ a }, { trainer: { ranks: 2 } }), {
          resultsDir,
          onEvent: (event) => {
            if (updateOf(event) === 3) ranks.end(WorkerError.lost("rank 1 was lost"))
          },
        }).pipe(Effect.provideService(RankProcesses, ranks.service))
        assert.strictEqual(ranks.tasks.length, 2)
        const [whole, left] = [leftBy(alone.runDir), leftBy(together.runDir)]
        const checkpoints = differences(whole, left).map((path) => dirname(path))
        assert.deepStrictEqual([...new Set(checkpoints)].sort(), [
          "run_a/checkpoints/step_2",
          "run_a/checkpoints/step_3",
        ])
        assert.isDefined(left["run_a/checkpoints/step_3/STABLE"])
      }).pipe(Effect.scoped),
    ),
  )

  it("ends with the reason that a rank tells, and does not start again", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const ranks = fibers()
        const failing = trained(onRanks(2), {
          resultsDir,
          onEvent: ({ _tag }) => _tag === "UpdateApplied" && ranks.end(WorkerError.failed("rank 1: no memory")),
        }).pipe(Effect.provideService(RankProcesses, ranks.service))
        const { _tag, message } = yield* Effect.flip(failing)
        assert.deepStrictEqual([_tag, message], ["TrainerError", "rank 1: no memory"])
        assert.strictEqual(ranks.tasks.length, 1)
      }).pipe(Effect.scoped),
    ))

  it("is refused where nothing starts processes, before anything is written", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        let isOpen = false
        const failing = trained(onRanks(2), { resultsDir, onOpen: () => void (isOpen = true) })
        const { message } = yield* Effect.flip(failing)
        assert.strictEqual(
          message,
          "trainer.ranks: expected 1, found 2; only Node starts processes for more: provide Node.rankProcesses",
        )
        assert.isFalse(isOpen)
      }).pipe(Effect.scoped),
    ))

  it("needs a service that connects to Redis, if the config chooses it", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        let isOpen = false
        const config = configOf(runs, { trainer: { ranks: 2, store: { type: "redis", url: "redis://127.0.0.1:1" } } })
        const failing = trained(config, { resultsDir, onOpen: () => void (isOpen = true) }).pipe(
          Effect.provideService(RankProcesses, fibers().service),
        )
        const withoutService = yield* Effect.flip(failing)
        assert.match(
          withoutService.message,
          /^trainer\.store: .*only Node connects to Redis: provide Node\.rankProcesses$/,
        )
        const unreachable = yield* Effect.flip(Effect.provideService(failing, RedisStores, { connect: redisStore }))
        assert.strictEqual(
          unreachable.message,
          `trainer.store: cannot open "redis://127.0.0.1:1" in the ranks' store: Redis: connect ECONNREFUSED 127.0.0.1:1`,
        )
        assert.isFalse(isOpen)
      }).pipe(Effect.scoped),
    ))
})

if (!hasRedis) console.warn("ranks.test.ts: redis-server is not installed here, so ranks over Redis are NOT tested")

describe.skipIf(!hasRedis)("a trainer whose ranks meet on a Redis server", () => {
  it(
    "ends with the bits of one with one rank, and starts again in another place when one is lost",
    { tags: "slow" },
    () =>
      Effect.runPromise(
        Effect.gen(function* () {
          const resultsDir = yield* resultsFolder
          const alone = yield* trained(onRanks(1), { resultsDir })
          const { url } = yield* redisServer
          const ranks = fibers()
          let isLost = false
          const config = configOf(runs, { trainer: { ranks: 3, store: { type: "redis", url } } })
          const together = yield* trained(config, {
            resultsDir,
            onEvent: (event) => {
              if (isLost || updateOf(event) !== 2) return
              isLost = true
              ranks.end(WorkerError.lost("rank 2 was lost"))
            },
          }).pipe(
            Effect.provideService(RankProcesses, ranks.service),
            Effect.provideService(RedisStores, { connect: redisStore }),
          )
          assert.strictEqual(together.digest, alone.digest)
          const prefixes = ranks.tasks.map(({ store }) => (store.type === "redis" ? store.prefix : undefined))
          assert.strictEqual(prefixes.length, 4)
          assert.strictEqual(new Set(prefixes).size, 2)
        }).pipe(Effect.scoped),
      ),
  )
})
