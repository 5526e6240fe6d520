import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Fiber, Layer, Redacted, Schema } from "effect"
import * as SqlClient from "effect/sql/SqlClient"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import * as Cluster from "../../../src/spread/cluster/cluster-node.ts"
import * as Dispatcher from "../../../src/spread/cluster/Dispatcher.ts"
import { hasPostgres, type Postgres, startPostgres } from "./postgres.ts"

const double = Dispatcher.job({
  name: "double",
  payload: Schema.Struct({ of: Schema.Int }),
  result: Schema.Int,
  failure: Schema.Never,
  key: ({ of }) => String(of),
})

const invert = Dispatcher.job({
  name: "invert",
  payload: Schema.Struct({ of: Schema.Int }),
  result: Schema.Finite,
  failure: Schema.String,
  key: ({ of }) => String(of),
})

describe.skipIf(!hasPostgres)("a job over Postgres", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterAll(() => postgres.remove())

  it("is answered although its worker was killed after the answer, before it woke the job's workflow", () =>
    Effect.gen(function* () {
      let performed = 0
      const handler = Dispatcher.handler(double, ({ of }) => Effect.sync(() => (performed++, 2 * of)))
      const options = { url: postgres.url, say: () => Effect.void }
      const worker = yield* Effect.forkScoped(
        Cluster.worker({ ...options, handlers: [handler], slots: 1, quiet: true, address: undefined }),
      )
      const client = yield* Layer.build(Cluster.layer(options))
      const ask = Effect.flatMap(Dispatcher.Dispatcher, ({ run }) => run(double, { of: 21 }, Effect.succeed(0))).pipe(
        Effect.provideContext(client),
      )
      assert.strictEqual(yield* ask, 42)
      // Such a worker leaves this behind: the answer has arrived, and the workflow is still suspended.
      yield* Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const suspended = JSON.stringify({ _tag: "Success", value: { _tag: "Suspended", cause: null } })
        const changed = yield* sql`UPDATE cluster_replies SET payload = ${suspended}
          WHERE request_id IN (SELECT id FROM cluster_messages WHERE tag = 'run') RETURNING id`
        assert.lengthOf(changed, 1)
      }).pipe(Effect.provide(PgClient.layer({ url: Redacted.make(postgres.url) })))
      assert.strictEqual(yield* ask, 42)
      assert.strictEqual(performed, 1)
      yield* Fiber.interrupt(worker)
    }).pipe(Effect.scoped, Effect.runPromise))

  it("that failed is tried again for the next client, and one that succeeded is not", () =>
    Effect.gen(function* () {
      let performed = 0
      const handler = Dispatcher.handler(invert, ({ of }) =>
        performed++ === 0 ? Effect.fail("the disk is full") : Effect.succeed(1 / of),
      )
      const options = { url: postgres.url, say: () => Effect.void }
      yield* Effect.forkScoped(
        Cluster.worker({ ...options, handlers: [handler], slots: 1, quiet: true, address: undefined }),
      )
      const ask = Effect.flatMap(Dispatcher.Dispatcher, ({ run }) => run(invert, { of: 4 }, Effect.succeed(0)))
      const client = Effect.provide(Cluster.layer(options))
      assert.strictEqual(yield* Effect.flip(client(ask)), "the disk is full")
      // A client that ends with an error keeps the answers for the next one.
      assert.strictEqual(yield* Effect.flip(client(Effect.flatMap(ask, Effect.fail))), 0.25)
      assert.strictEqual(yield* client(ask), 0.25)
      assert.strictEqual(performed, 2)
    }).pipe(Effect.scoped, Effect.runPromise))

  it("that the database refuses, although it answers, fails with the reason", () =>
    Effect.gen(function* () {
      const options = { url: postgres.url, say: () => Effect.void }
      const handler = Dispatcher.handler(double, ({ of }) => Effect.succeed(2 * of))
      yield* Effect.forkScoped(
        Cluster.worker({ ...options, handlers: [handler], slots: 1, quiet: true, address: undefined }),
      )
      const client = yield* Layer.build(Cluster.layer(options))
      const ask = (of: number) =>
        Effect.flatMap(Dispatcher.Dispatcher, ({ run }) => run(double, { of }, Effect.succeed(0))).pipe(
          Effect.provideContext(client),
        )
      const database = yield* Layer.build(PgClient.layer({ url: Redacted.make(postgres.url) }))
      /** Makes the database refuse new rows of a table. */
      const refuse = Effect.fnUntraced(function* (table: string) {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE OR REPLACE FUNCTION refuse() RETURNS trigger AS
          $$ BEGIN RAISE EXCEPTION 'no room for %', TG_TABLE_NAME; END $$ LANGUAGE plpgsql`
        yield* sql`CREATE TRIGGER refuse BEFORE INSERT ON ${sql(table)} FOR EACH ROW EXECUTE FUNCTION refuse()`
      }, Effect.provideContext(database))
      const allow = Effect.fnUntraced(function* (table: string) {
        const sql = yield* SqlClient.SqlClient
        yield* sql`DROP TRIGGER refuse ON ${sql(table)}`
      }, Effect.provideContext(database))

      assert.strictEqual(yield* ask(1), 2)
      yield* refuse("cluster_messages")
      const asking = yield* Effect.flip(ask(2))
      assert.strictEqual(asking.message, "job double 2: asking for it failed 10 times: no room for cluster_messages")
      yield* allow("cluster_messages")
      yield* refuse("effect_rl_queue")
      const queued = yield* Effect.flip(ask(3))
      assert.strictEqual(
        queued.message,
        "job double 3: putting it into the queue failed 5 times: no room for effect_rl_queue",
      )
      yield* allow("effect_rl_queue")
      assert.strictEqual(yield* ask(3), 6)
      assert.strictEqual(yield* ask(2), 4)
    }).pipe(Effect.scoped, Effect.runPromise))
})
