import * as PgClient from "@effect/sql-pg/PgClient"
import { Context, Deferred, Effect, Fiber, Layer, Redacted, Schema } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import * as Cluster from "../../../src/spread/cluster/cluster-node.ts"
import * as Dispatcher from "../../../src/spread/cluster/Dispatcher.ts"
import { hasPostgres, type Postgres, startPostgres } from "./postgres.ts"

const weigh = Dispatcher.job({
  name: "weigh",
  payload: Schema.Struct({ of: Schema.Int, weights: Schema.String }),
  result: Schema.String,
  failure: Schema.String,
  key: ({ of }) => `number ${of}`,
})

const payloadOf = (of: number) => ({ of, weights: `weights-${of}-${"w".repeat(5000)}` })
const ask = (of: number) =>
  Effect.flatMap(Dispatcher.Dispatcher, ({ run }) => run(weigh, payloadOf(of), Effect.die("not here")))

const tables = ["cluster_messages", "cluster_replies", "effect_rl_queue", "effect_rl_failures"]

describe.skipIf(!hasPostgres)("the database of a cluster", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterAll(() => postgres.remove())

  /** Starts a worker, and returns the numbers of the jobs that it has begun, with a way to ask the database. */
  const setUp = Effect.fnUntraced(function* (
    perform: (of: number, attempt: number) => Effect.Effect<string, string> = (of) => Effect.succeed(`answer-${of}`),
  ) {
    const begun: Array<number> = []
    const handler = Dispatcher.handler(weigh, ({ of }) =>
      Effect.suspend(() => {
        begun.push(of)
        return perform(of, begun.filter((one) => one === of).length)
      }),
    )
    const options = { url: postgres.url, say: () => Effect.void }
    yield* Effect.forkScoped(
      Cluster.worker({ ...options, handlers: [handler], slots: 2, quiet: true, address: undefined }),
    )
    const database = yield* Layer.build(PgClient.layer({ url: Redacted.make(postgres.url) }))
    const sql = Context.get(database, SqlClient.SqlClient)
    const rows = (table: string, part: string) => sql`SELECT 1 FROM ${sql(table)} t WHERE t::text LIKE ${`%${part}%`}`
    return {
      begun,
      sql,
      client: Cluster.layer(options),
      /** Counts the rows of each table that contain a text. */
      count: (part: string) => Effect.forEach(tables, (table) => Effect.map(rows(table, part), ({ length }) => length)),
    }
  })

  it("keeps what a job brings only until it is answered, and its answer until its client has ended well", () =>
    Effect.gen(function* () {
      const { begun, sql, client, count } = yield* setUp((of) =>
        of === 0 ? Effect.fail("no zero") : Effect.succeed(`answer-${of}`),
      )
      const first = Effect.gen(function* () {
        assert.strictEqual(yield* ask(1), "answer-1")
        assert.strictEqual(yield* Effect.flip(ask(0)), "no zero")
        assert.deepStrictEqual(yield* count("weights-"), [0, 0, 0, 0])
        assert.deepStrictEqual(yield* count("answer-1"), [1, 2, 0, 0])
        return yield* Effect.fail("as if it was interrupted")
      })
      assert.strictEqual(yield* Effect.flip(Effect.provide(first, client)), "as if it was interrupted")
      // The next client gets the same answer, and nothing is done again but the job that failed.
      const resumed = Effect.gen(function* () {
        assert.strictEqual(yield* ask(1), "answer-1")
        assert.strictEqual(yield* ask(2), "answer-2")
        assert.strictEqual(yield* Effect.flip(ask(0)), "no zero")
        assert.deepStrictEqual(begun, [1, 0, 2, 0])
      })
      yield* Effect.provide(resumed, client)
      assert.deepStrictEqual(yield* count("answer-"), [0, 0, 0, 0])
      // The jobs that failed keep their reasons, and all stay in the overview.
      const failed = yield* sql`SELECT 1 FROM cluster_messages WHERE tag = 'run'`
      assert.lengthOf(failed, 2)
      const { kinds } = yield* Cluster.look({ url: postgres.url, say: () => Effect.void })
      assert.deepStrictEqual(kinds, [{ kind: "weigh", waiting: 0, underWay: 0, done: 2, failed: 2 }])
    }).pipe(Effect.scoped, Effect.runPromise))

  /** Lets a client and a worker of their own do job 7, twice. */
  const doTwice = (
    ended: Effect.Effect<void, string>,
    between: (sql: SqlClient.SqlClient) => Effect.Effect<void, unknown>,
  ) =>
    Effect.gen(function* () {
      for (let times = 0; times < 2; times++) {
        yield* Effect.gen(function* () {
          const { begun, client, count, sql } = yield* setUp()
          yield* Effect.ignore(Effect.provide(Effect.andThen(ask(7), ended), client))
          assert.deepStrictEqual(begun, [7])
          yield* between(sql)
          assert.deepStrictEqual(yield* count("answer-7"), [0, 0, 0, 0])
        }).pipe(Effect.scoped)
      }
    })

  it("does a job again whose answer was removed, for a later client and another worker", () =>
    Effect.runPromise(doTwice(Effect.void, () => Effect.void)))

  it("does a job again that was old, although its answer was read lately", () => {
    const days = String((31n * 86_400_000n) << 22n)
    const grow = Effect.fnUntraced(function* (sql: SqlClient.SqlClient) {
      yield* sql`UPDATE cluster_messages SET id = id - ${days}::bigint, request_id = request_id - ${days}::bigint`
      yield* sql`UPDATE cluster_replies SET request_id = request_id - ${days}::bigint`
      yield* Effect.scoped(Cluster.removeOld({ url: postgres.url, say: () => Effect.void, days: 30 }))
    })
    return Effect.runPromise(doTwice(Effect.fail("as if it was interrupted"), grow))
  })

  it("asks once more for a job that another client has removed before this one saw the answer", () =>
    Effect.gen(function* () {
      const options = { url: postgres.url, say: () => Effect.void }
      const database = yield* Layer.build(PgClient.layer({ url: Redacted.make(postgres.url) }))
      const sql = Context.get(database, SqlClient.SqlClient)
      const requests = sql`SELECT 1 FROM cluster_messages WHERE payload LIKE '%number 9%'`
      const answer = yield* Effect.forkChild(Effect.provide(ask(9), Cluster.layer(options)))
      while ((yield* requests).length === 0) yield* Effect.sleep(50)
      yield* sql`DELETE FROM cluster_messages WHERE payload LIKE '%number 9%'`
      yield* setUp()
      assert.strictEqual(yield* Fiber.join(answer), "answer-9")
    }).pipe(Effect.scoped, Effect.runPromise))

  it("takes a late answer of a worker that was frozen, although all of the job was removed", () =>
    Effect.gen(function* () {
      const thaw = yield* Deferred.make<void>()
      const { begun, sql, client, count } = yield* setUp((of, attempt) =>
        of === 3 && attempt === 1 ? Effect.as(Deferred.await(thaw), `answer-${of}`) : Effect.succeed(`answer-${of}`),
      )
      const whole = Effect.gen(function* () {
        const { run } = yield* Dispatcher.Dispatcher
        const answer = yield* Effect.forkChild(run(weigh, payloadOf(3), Effect.die("not here")))
        while (begun.length === 0) yield* Effect.sleep(20)
        // The job belongs to nobody, as if its worker had been frozen for long, so the other slot takes it.
        while (begun.length < 2) {
          yield* sql`UPDATE effect_rl_queue SET acquired_at = NOW() - INTERVAL '1 minute', acquired_by = NULL
            WHERE element LIKE '%number 3%' AND attempts = 1`
          yield* Effect.sleep(100)
        }
        assert.strictEqual(yield* Fiber.join(answer), "answer-3")
        assert.deepStrictEqual(yield* count("weights-"), [0, 0, 0, 0])
      })
      yield* Effect.provide(whole, client)
      assert.deepStrictEqual(yield* count("answer-3"), [0, 0, 0, 0])
      yield* Deferred.succeed(thaw, undefined)
      while ((yield* count("answer-3"))[0] === 0) yield* Effect.sleep(50)
      // The worker goes on, and whoever asks for the job again gets its answer.
      yield* Effect.gen(function* () {
        assert.strictEqual(yield* ask(4), "answer-4")
        assert.strictEqual(yield* ask(3), "answer-3")
      }).pipe(Effect.provide(client))
      assert.deepStrictEqual(yield* count("answer-"), [0, 0, 0, 0])
    }).pipe(Effect.scoped, Effect.runPromise))

  it("keeps what failed clients left until it is old, and unanswered jobs as long as somebody may need them", () =>
    Effect.gen(function* () {
      const { sql, client, count } = yield* setUp((of) => (of === 6 ? Effect.never : Effect.succeed(`answer-${of}`)))
      const removeOld = (days: number) => Cluster.removeOld({ url: postgres.url, say: () => Effect.void, days })
      const failing = Effect.gen(function* () {
        yield* removeOld(0)
        assert.deepStrictEqual(yield* count("weigh"), [0, 0, 0, 0])
        assert.strictEqual(yield* ask(5), "answer-5")
        yield* Effect.forkScoped(ask(6))
        while ((yield* count("number 6"))[2] === 0) yield* Effect.sleep(50)
        return yield* Effect.fail("as if it was interrupted")
      })
      yield* Effect.flip(Effect.provide(Effect.scoped(failing), client))
      assert.strictEqual(yield* removeOld(1), 0)
      assert.deepStrictEqual(yield* count("answer-5"), [1, 2, 0, 0])
      assert.strictEqual(yield* removeOld(0), 1)
      assert.deepStrictEqual(yield* count("answer-5"), [0, 0, 0, 0])
      assert.deepStrictEqual(yield* count("number 5"), [0, 0, 0, 0])
      assert.deepStrictEqual(yield* count("number 6"), [1, 0, 1, 0])
      // The job looks as if a client with another version of the code had left it behind.
      yield* sql`UPDATE cluster_messages SET payload = regexp_replace(payload, '"version":"[^"]*"', '"version":"0.0.1"')`
      assert.strictEqual(yield* removeOld(0), 1)
      assert.deepStrictEqual(yield* count("number 6"), [0, 0, 0, 0])
    }).pipe(Effect.scoped, Effect.runPromise))
})
