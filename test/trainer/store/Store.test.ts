import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Context, Effect, Fiber, Layer, Logger, type Scope } from "effect"
import { TestClock } from "effect/testing"
import { assert, describe, it } from "vitest"
import { utf8 } from "../../../src/base/text/utf8.ts"
import * as redisNode from "../../../src/trainer/store/redis-node.ts"
import { Store, storeOf } from "../../../src/trainer/store/Store.ts"
import type { TrainerError } from "../../../src/trainer/TrainerError.ts"
import { redisStore } from "../../../src/node.ts"
import { hasRedis, redisServer } from "./redisServer.ts"

/** Opens another connection to the same store, as another process would. */
type Connect = Effect.Effect<Store["Service"], TrainerError, Scope.Scope>

const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "store-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
)

const connecting = <E>(layer: Layer.Layer<Store, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, Store))

const stores: Readonly<Record<string, Effect.Effect<Connect, never, Scope.Scope>>> = {
  "in memory": Effect.sync(() => {
    const layer = Store.memory()
    return connecting(layer)
  }),
  "in a folder": Effect.map(temporary, (directory) =>
    // A new Layer each time, or else the connections would share one service.
    Effect.suspend(() =>
      connecting(
        Store.layerFileSystem({ directory, pollInterval: "1 millis" }).pipe(Layer.provide(NodeServices.layer)),
      ),
    ),
  ),
  "on a Redis server": Effect.map(redisServer, ({ url }) =>
    Effect.suspend(() => connecting(redisNode.layer({ url, prefix: "test", pollMillis: 1 }))),
  ),
}

const bytes = (text: string): Uint8Array => utf8.encode(text)
const text = (value: Uint8Array | undefined): string | undefined =>
  value === undefined ? undefined : utf8.decode(value)

for (const [name, open] of Object.entries(stores)) {
  const skipped = name === "on a Redis server" && !hasRedis
  if (skipped) console.warn("Store.test.ts: redis-server is not installed here, so the store on Redis is NOT tested")

  describe.skipIf(skipped)(`a store of ranks ${name}`, () => {
    const law = (title: string, body: (connect: Connect) => Effect.Effect<void, unknown, Scope.Scope>) =>
      it(title, () => Effect.runPromise(Effect.scoped(Effect.flatMap(open, body))))

    law("gives every rank the value that was set last, byte for byte", (connect) =>
      Effect.gen(function* () {
        const [one, other] = [yield* connect, yield* connect]
        assert.isUndefined(yield* other.get("key"))
        const all = Uint8Array.from({ length: 256 }, (_, index) => index)
        yield* one.set("key", all)
        all.fill(0)
        assert.deepStrictEqual([...((yield* other.get("key")) ?? [])], [...Array(256).keys()])
        yield* other.set("key", bytes("second"))
        assert.strictEqual(text(yield* one.get("key")), "second")
        yield* one.set("empty", new Uint8Array(0))
        assert.strictEqual(text(yield* other.get("empty")), "")
      }),
    )

    law("tells apart keys with any characters", (connect) =>
      Effect.gen(function* () {
        const [one, other] = [yield* connect, yield* connect]
        const keys = ["a", "A", "a/b", "a%2fb", ".", "..", "../a", "ä", "a b", "sync/1/0", "sync/10", "con", "日本"]
        for (const key of keys) yield* one.set(key, bytes(`value of ${key}`))
        for (const key of keys) assert.strictEqual(text(yield* other.get(key)), `value of ${key}`)
      }),
    )

    law("refuses keys that some store could not hold", (connect) =>
      Effect.gen(function* () {
        const store = yield* connect
        for (const key of ["", "x".repeat(201)]) {
          const error = yield* Effect.flip(store.set(key, bytes("")))
          assert.match(error.message, /expected a key of 1 to 200 bytes, found (0|201)/)
        }
        assert.match((yield* Effect.flip(store.add("n", 0.5))).message, /expected a whole number, found 0.5/)
        const longest = ["x".repeat(200), "X".repeat(200), `${"X".repeat(199)}Y`]
        for (const key of longest) yield* store.set(key, bytes(`value of ${key}`))
        for (const key of longest) assert.strictEqual(text(yield* store.get(key)), `value of ${key}`)
        assert.strictEqual(yield* store.add(longest[1], 2), 2)
      }),
    )

    law("wakes those who wait for a value, also those who came later", (connect) =>
      Effect.gen(function* () {
        const [one, other] = [yield* connect, yield* connect]
        const waiting = yield* Effect.forkChild(
          Effect.all([other.wait("key", "1 hour"), one.wait("key", "1 hour")], { concurrency: 2 }),
        )
        yield* Effect.yieldNow
        yield* one.set("key", bytes("value"))
        assert.deepStrictEqual((yield* Fiber.join(waiting)).map(text), ["value", "value"])
        assert.strictEqual(text(yield* other.wait("key", "1 hour")), "value")
      }),
    )

    law("fails a wait at its deadline and names the key", (connect) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip((yield* connect).wait("key", "20 millis"))
        assert.strictEqual(error.reason, "late")
        assert.strictEqual(error.message, 'cannot wait for "key" in the ranks\' store: no rank has set it within 20ms')
      }),
    )

    law("forgets a value that was removed", (connect) =>
      Effect.gen(function* () {
        const [one, other] = [yield* connect, yield* connect]
        yield* one.set("key", bytes("value"))
        yield* other.remove("key")
        yield* other.remove("key")
        assert.isUndefined(yield* one.get("key"))
      }),
    )

    law("adds without losing an amount, whoever adds at the same time", (connect) =>
      Effect.gen(function* () {
        const ranks = yield* Effect.all([connect, connect, connect])
        const sums = yield* Effect.forEach(
          ranks.flatMap((store) => Array.from({ length: 10 }, () => store)),
          (store) => store.add("count", 2),
          { concurrency: "unbounded" },
        )
        assert.deepStrictEqual(
          sums.toSorted((a, b) => a - b),
          Array.from({ length: 30 }, (_, index) => 2 * (index + 1)),
        )
        assert.strictEqual(yield* ranks[0].add("count", -60), 0)
        assert.strictEqual(yield* ranks[1].add("another", 5), 5)
        assert.isUndefined(yield* ranks[1].get("count"))
      }),
    )

    law("lets no rank through a barrier before all have arrived", (connect) =>
      Effect.gen(function* () {
        const arrived: Array<number> = []
        const rank = Effect.fnUntraced(function* (index: number) {
          const store = yield* connect
          for (let round = 0; round < 3; round++) {
            // The ranks come at different moments.
            for (let turn = 0; turn < index; turn++) yield* Effect.yieldNow
            arrived.push(round)
            yield* store.barrier({ name: `round ${round}`, rank: index, ranks: 4, deadline: "1 hour" })
            assert.lengthOf(
              arrived.filter((one) => one === round),
              4,
            )
          }
        })
        yield* Effect.forEach([0, 1, 2, 3], rank, { concurrency: "unbounded" })
      }),
    )

    law("names the ranks that are missing at a barrier", (connect) =>
      Effect.gen(function* () {
        const meeting = { name: "step 7", ranks: 4, deadline: "30 millis" } as const
        const errorOf = (rank: number) =>
          Effect.flatMap(connect, (store) => Effect.flip(store.barrier({ ...meeting, rank })))
        assert.match((yield* errorOf(2)).message, /^step 7: ranks 0, 1 and 3 of 4 did not arrive within 30ms; /)
        const error = yield* errorOf(0)
        assert.strictEqual(error.reason, "absent")
        assert.match(error.message, /^step 7: ranks 1 and 3 of 4 did not arrive within 30ms; .* last checkpoints$/)
      }),
    )

    law("exchanges the ranks' values in the order of the ranks, and forgets a meeting", (connect) =>
      Effect.gen(function* () {
        const meeting = { name: "sums", ranks: 3, deadline: "1 hour" } as const
        const results = yield* Effect.forEach(
          [2, 0, 1],
          (rank) => Effect.flatMap(connect, (store) => store.gather({ ...meeting, rank }, bytes(`of ${rank}`))),
          { concurrency: 3 },
        )
        for (const values of results) assert.deepStrictEqual(values.map(text), ["of 0", "of 1", "of 2"])
        const store = yield* connect
        yield* store.forget(meeting)
        const { reason, message } = yield* Effect.flip(
          store.gather({ ...meeting, rank: 1, deadline: "1 millis" }, bytes("")),
        )
        assert.strictEqual(reason, "absent")
        assert.match(message, /^sums: ranks 0 and 2 of 3 did not arrive within 1ms; /)
      }),
    )
  })
}

describe("the deadline of a barrier", () => {
  it("follows the clock of the program, so that tests need not wait", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const store = yield* Store
        const waiting = yield* Effect.forkChild(
          Effect.flip(store.barrier({ name: "start", rank: 0, ranks: 2, deadline: "5 minutes" })),
        )
        yield* TestClock.adjust("299 seconds")
        assert.isUndefined(waiting.pollUnsafe())
        yield* TestClock.adjust("1 seconds")
        const error = yield* Fiber.join(waiting)
        assert.match(error.message, /^start: rank 1 of 2 did not arrive within 5m; /)
      }).pipe(Effect.provide(Layer.merge(Store.memory(), TestClock.layer()))),
    ))

  it("lets a rank through that finds all others there just after it", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const values = new Map<string, Uint8Array>()
        const store = storeOf({
          get: (key) => Effect.sync(() => values.get(key)),
          set: (key, value) => Effect.sync(() => void values.set(key, value)),
          // It never hears of the others in time.
          await: () => Effect.never,
          add: () => Effect.succeed(0),
          remove: () => Effect.void,
        })
        const meeting = { name: "start", ranks: 2, deadline: "1 minute" } as const
        const waiting = yield* Effect.forkChild(store.gather({ ...meeting, rank: 0 }, bytes("first")))
        yield* TestClock.adjust("59 seconds")
        values.set("start/1", bytes("second"))
        yield* TestClock.adjust("1 seconds")
        assert.deepStrictEqual((yield* Fiber.join(waiting)).map(text), ["first", "second"])
      }).pipe(Effect.provide(TestClock.layer())),
    ))
})

describe("a store in a folder", () => {
  it("leaves no half-written files behind, and names the folder that cannot be made", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const directory = yield* temporary
          yield* Effect.scoped(
            Effect.gen(function* () {
              const store = yield* connecting(
                Store.layerFileSystem({ directory }).pipe(Layer.provide(NodeServices.layer)),
              )
              yield* store.set("key", bytes("value"))
              yield* store.add("count", 1)
            }),
          )
          assert.deepStrictEqual(readdirSync(directory).toSorted(), ["counters", "values"])
          assert.deepStrictEqual(readdirSync(join(directory, "values")), ["key"])
          const below = join(directory, "values", "key", "store")
          const error = yield* Effect.flip(
            Effect.scoped(
              connecting(Store.layerFileSystem({ directory: below }).pipe(Layer.provide(NodeServices.layer))),
            ),
          )
          assert.include(error.message, `cannot open "${below}"`)
        }),
      ),
    ))
})

describe.skipIf(!hasRedis)("a store on a Redis server", () => {
  it("says that no server answers, without the password, and logs nothing besides", () => {
    const logged: Array<unknown> = []
    return Effect.runPromise(
      Effect.gen(function* () {
        const { url, stop } = yield* redisServer
        yield* stop
        const secret = url.replace("redis://", "redis://user:hidden@")
        const error = yield* Effect.flip(connecting(redisNode.layer({ url: secret, prefix: "test" })))
        assert.include(error.message, `cannot open "${url}" in the ranks' store: Redis: `)
        assert.notInclude(error.message, "hidden")
        assert.deepStrictEqual(logged, [], "the client's own warnings have stack traces")
      }).pipe(Effect.scoped, Effect.provide(Logger.layer([Logger.make(({ message }) => void logged.push(message))]))),
    )
  })

  it("is a Layer of effect-rl/node", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { url } = yield* redisServer
        const [one, other] = [
          yield* connecting(redisStore({ url, prefix: "one" })),
          yield* connecting(redisStore({ url, prefix: "other" })),
        ]
        yield* one.set("key", bytes("value"))
        assert.strictEqual(text(yield* one.get("key")), "value")
        assert.isUndefined(yield* other.get("key"))
      }).pipe(Effect.scoped),
    ))

  it("fails when the server dies, instead of waiting for it", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { url, stop } = yield* redisServer
        const store = yield* connecting(redisNode.layer({ url, prefix: "test" }))
        yield* store.set("key", bytes("value"))
        const waiting = yield* Effect.forkChild(Effect.flip(store.wait("another key", "1 hour")))
        yield* stop
        assert.match((yield* Fiber.join(waiting)).message, /^cannot get "another key" in the ranks' store: Redis: /)
        for (let attempt = 0; attempt < 100; attempt++)
          assert.match((yield* Effect.flip(store.set("key", bytes("value")))).message, /^cannot set "key" in /)
      }).pipe(Effect.scoped, Effect.provide(Logger.layer([]))),
    ))
})
