/**
 * Faults that Effect's cluster once had, each of which could let two machines do the same job, on the version that we use.
 * Whatever it does, `run.lease` keeps the second writer out; see `test/run/store/fence.test.ts`.
 */
import { createServer, connect, type Server, type Socket } from "node:net"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import * as RunnerAddress from "effect/cluster/RunnerAddress"
import * as RunnerStorage from "effect/cluster/RunnerStorage"
import * as ShardId from "effect/cluster/ShardId"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as SqlRunnerStorage from "effect/cluster/SqlRunnerStorage"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { hasPostgres, type Postgres, startPostgres } from "./postgres.ts"

if (!hasPostgres) console.warn("upstream.slow.test.ts: postgresql is not installed here, so clusters are NOT tested")

const shard = (id: number) => ShardId.make("default", id)
const named = (shards: ReadonlyArray<ShardId.ShardId>) => shards.map(({ id }) => id).toSorted((a, b) => a - b)
const one = RunnerAddress.make("machine-1", 1)
const two = RunnerAddress.make("machine-2", 2)

/** Opens the storage of one machine, with connections of its own. */
const storageAt = (
  url: string,
  prefix: string,
): Effect.Effect<RunnerStorage.RunnerStorage["Service"], unknown, Scope.Scope> =>
  Layer.build(
    SqlRunnerStorage.layerWith({ prefix }).pipe(
      Layer.provide([
        PgClient.layer({ url: Redacted.make(url), maxConnections: 3 }),
        ShardingConfig.layer({
          shardsPerGroup: 10,
          shardLockRefreshInterval: "1 second",
          shardLockExpiration: "3 seconds",
        }),
      ]),
    ),
  ).pipe(Effect.map(Context.get(RunnerStorage.RunnerStorage)))

/** A cable to the database, which can be frozen: connections stay open, but nothing passes any more. */
const cableTo = (url: string) =>
  Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<{ readonly server: Server; readonly url: string; readonly freeze: (isFrozen: boolean) => void }>(
          (resolve) => {
            const target = new URL(url)
            const sockets = new Set<Socket>()
            const refused: Array<Socket> = []
            let isFrozen = false
            const server = createServer((near) => {
              near.on("error", () => near.destroy())
              if (isFrozen) return void refused.push(near.pause())
              const far = connect(Number(target.port), target.hostname)
              far.on("error", () => far.destroy())
              for (const socket of [near, far]) {
                sockets.add(socket)
                socket.on("close", () => void sockets.delete(socket))
              }
              near.pipe(far)
              far.pipe(near)
            })
            server.listen(0, "127.0.0.1", () => {
              const address = server.address()
              const through = new URL(url)
              through.port = String(typeof address === "object" ? address?.port : "")
              const freeze = (frozen: boolean): void => {
                isFrozen = frozen
                for (const socket of sockets) void (frozen ? socket.pause() : socket.resume())
                for (const socket of refused.splice(0)) socket.destroy()
              }
              resolve({ server, url: through.href, freeze })
            })
          },
        ),
    ),
    ({ server, freeze }) =>
      Effect.sync(() => {
        freeze(false)
        server.close()
      }),
  )

describe.skipIf(!hasPostgres)("the locks of a cluster's shards", () => {
  let postgres: Postgres
  beforeAll(async () => void (postgres = await startPostgres()))
  afterAll(() => postgres.remove())

  it("are granted only for the shards that were asked for (upstream's 7859 and 7860)", () =>
    Effect.gen(function* () {
      const storage = yield* storageAt(postgres.url, "asked")
      assert.deepStrictEqual(named(yield* storage.acquire(one, [shard(1), shard(2)])), [1, 2])
      assert.deepStrictEqual(named(yield* storage.acquire(one, [shard(3)])), [3])
      assert.deepStrictEqual(named(yield* storage.refresh(one, [shard(1)])), [1])
      assert.deepStrictEqual(named(yield* storage.refresh(one, [shard(4)])), [])
      yield* storage.release(one, shard(1))
      assert.deepStrictEqual(named(yield* storage.refresh(one, [shard(1), shard(2)])), [2])
    }).pipe(Effect.scoped, Effect.runPromise))

  it("exclude another machine of the same cluster, and none of a cluster with another prefix (upstream's 6502)", () =>
    Effect.gen(function* () {
      const storages = yield* Effect.forEach(["blue", "blue", "green"], (prefix) => storageAt(postgres.url, prefix))
      assert.deepStrictEqual(named(yield* storages[0].acquire(one, [shard(1)])), [1])
      assert.deepStrictEqual(named(yield* storages[1].acquire(two, [shard(1), shard(2)])), [2])
      assert.deepStrictEqual(named(yield* storages[2].acquire(two, [shard(1)])), [1])
    }).pipe(Effect.scoped, Effect.runPromise))

  it("are not believed by a machine whose database answers no more, before another one has them (upstream's 6508)", () =>
    Effect.gen(function* () {
      const cable = yield* cableTo(postgres.url)
      const frozen = yield* storageAt(cable.url, "frozen")
      const other = yield* storageAt(postgres.url, "frozen")
      assert.deepStrictEqual(named(yield* frozen.acquire(one, [shard(1)])), [1])
      cable.freeze(true)
      // It ends by itself, although the database never answers: upstream's fault was that it did not.
      assert.isTrue(yield* Effect.isFailure(frozen.refresh(one, [shard(1)])))
      let taken: ReadonlyArray<number> = []
      while (taken.length === 0) taken = named(yield* other.acquire(two, [shard(1)]))
      cable.freeze(false)
      const believed = yield* Effect.orElseSucceed(frozen.refresh(one, [shard(1)]), () => [])
      assert.deepStrictEqual(named(believed), [])
      assert.deepStrictEqual(named(yield* other.refresh(two, [shard(1)])), [1])
    }).pipe(Effect.scoped, Effect.runPromise))
})
