import * as PgClient from "@effect/sql-pg/PgClient"
import { Deferred, Effect, Fiber, Layer, Redacted, Schema } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import * as Cluster from "../../../src/spread/cluster/cluster-node.ts"
import * as Dispatcher from "../../../src/spread/cluster/Dispatcher.ts"
import type { Observed } from "../../../src/spread/cluster/overview.ts"
import { hasPostgres, type Postgres, startPostgres } from "./postgres.ts"

const waits = Dispatcher.job({
  name: "waits",
  payload: Schema.Struct({ of: Schema.Int }),
  result: Schema.Int,
  failure: Schema.String,
  key: ({ of }) => `number ${of}`,
})

describe.skipIf(!hasPostgres)("an observer of a cluster", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterAll(() => postgres.remove())

  it("sees workers, clients, the queue and failures, and says when Postgres is gone and back", () =>
    Effect.gen(function* () {
      const look = yield* Cluster.observe(postgres.url)
      const until = (holds: (observed: Observed) => boolean): Effect.Effect<Observed> =>
        Effect.flatMap(look, (observed) =>
          holds(observed) ? Effect.succeed(observed) : Effect.andThen(Effect.sleep(100), until(holds)),
        )
      const nobody = yield* look
      assert.deepStrictEqual(nobody.overview, { members: [], kinds: [], repeated: [], failures: [] })
      assert.isNull(nobody.problem)

      const open = yield* Deferred.make<void>()
      const handler = Dispatcher.handler(waits, ({ of }) =>
        of === 0 ? Effect.fail("zero has no answer") : Effect.as(Deferred.await(open), of),
      )
      const options = { url: postgres.url, say: () => Effect.void }
      const worker = yield* Effect.forkScoped(
        Cluster.worker({ ...options, handlers: [handler], slots: 2, quiet: true, address: undefined }),
      )
      const client = yield* Layer.build(Cluster.layer(options))
      const ask = (of: number) =>
        Effect.flatMap(Dispatcher.Dispatcher, ({ run }) => run(waits, { of }, Effect.succeed(of))).pipe(
          Effect.provideContext(client),
        )
      assert.strictEqual(yield* Effect.flip(ask(0)), "zero has no answer")
      const jobs = yield* Effect.forkScoped(Effect.all([1, 2, 3].map(ask), { concurrency: "unbounded" }))
      const { overview } = yield* until(
        ({ overview }) => overview?.members.every(({ busy }) => busy > 1) === true && overview.kinds[0]?.underWay === 2,
      )
      const [one, other] = overview?.members ?? []
      assert.deepInclude(one, { role: "worker", slots: 2, busy: 2, finished: 1 })
      assert.match(one.name, /^process \d+ on /)
      assert.match(one.address, /^127\.0\.0\.1:\d+$/)
      assert.match(one.version, /^0\.1\.0\+\w{12}$/)
      assert.isTrue(one.age >= 0 && one.joined >= one.age)
      assert.lengthOf(one.jobs, 2)
      for (const { key, seconds } of one.jobs) {
        assert.match(key, /^waits number [123]$/)
        assert.isAtLeast(seconds, 0)
      }
      assert.deepInclude(other, { role: "client", busy: 3, finished: 1, slots: 0 })
      assert.deepStrictEqual(overview?.kinds, [{ kind: "waits", waiting: 1, underWay: 2, done: 0, failed: 1 }])
      assert.deepStrictEqual(
        overview?.failures.map(({ key, message, worker }) => [key, message, worker]),
        [["waits number 0", "zero has no answer", one.name]],
      )
      assert.deepStrictEqual(overview?.repeated, [])

      // Pretend that two workers were lost while they did one of the jobs.
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE effect_rl_queue SET attempts = 3 WHERE element LIKE '%waits number 2%'`
      }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(postgres.url) })))
      const { overview: later } = yield* until(({ overview }) => overview?.repeated.length === 1)
      assert.deepInclude(later?.repeated[0], { key: "waits number 2", times: 3 })

      yield* Effect.promise(() => postgres.halt())
      const gone = yield* until(({ problem }) => problem !== null)
      assert.deepStrictEqual(gone.overview?.kinds[0]?.kind, "waits")
      assert.isAbove(gone.age, 0)
      for (const observed of [gone, nobody]) assert.notInclude(JSON.stringify(observed), postgres.password)
      yield* Effect.promise(() => postgres.resume())
      yield* until(({ problem }) => problem === null)
      yield* Deferred.succeed(open, undefined)
      assert.deepStrictEqual(yield* Fiber.join(jobs), [1, 2, 3])
      const after = yield* until(({ overview }) => overview?.kinds[0]?.done === 3)
      assert.deepStrictEqual(after.overview?.kinds, [{ kind: "waits", waiting: 0, underWay: 0, done: 3, failed: 1 }])
      yield* Fiber.interrupt(worker)
    }).pipe(Effect.scoped, Effect.runPromise))

  it("starts although Postgres is gone", () =>
    Effect.gen(function* () {
      yield* Effect.promise(() => postgres.halt())
      const look = yield* Cluster.observe(postgres.url)
      const early = yield* look
      assert.isNull(early.overview)
      assert.match(early.problem ?? "", /connect|ECONNREFUSED/i)
      yield* Effect.promise(() => postgres.resume())
    }).pipe(Effect.scoped, Effect.runPromise))

  it("is refused with a wrong password", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(Cluster.observe(postgres.url.replace(postgres.password, "wrong")))
      assert.match(message, /^postgres:\/\/effect@127\.0\.0\.1:\d+\/postgres: password authentication failed/)
    }).pipe(Effect.scoped, Effect.runPromise))
})
