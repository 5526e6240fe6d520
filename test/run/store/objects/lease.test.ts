import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import type { LeaseOwner } from "../../../../src/run/store/lock.ts"
import { guarded, holdLease } from "../../../../src/run/store/objects/lease.ts"
import { ObjectStore, type Versions } from "../../../../src/run/store/objects/ObjectStore.ts"
import { utf8 } from "../../../../src/base/text/utf8.ts"

const key = "team/run.lock"
const address = "s3://runs/team/run.lock"

/** The owner of a process on a machine of its own, which knows that some processes have ended. */
const ownerNamed = (name: string, dead: ReadonlyArray<string> = []): LeaseOwner => ({
  name,
  hasEnded: (other) => Effect.succeed(dead.includes(other)),
})

type Store = ObjectStore["Service"] & { readonly versions: Versions }

const memory = Effect.gen(function* () {
  const store = yield* ObjectStore
  const { versions } = store
  if (versions === undefined) return yield* Effect.die("the store in memory has versions")
  return { ...store, versions } satisfies Store
}).pipe(Effect.provide(ObjectStore.layerMemory))

/** A store that ignores the conditions of puts, as some servers do. */
const ignoring = (store: Store): Store => ({
  ...store,
  versions: {
    ...store.versions,
    put: (key, bytes) =>
      Effect.flatMap(store.versions.get(key), (held) => store.versions.put(key, bytes, held?.version)),
  },
})

const take = (store: Store, name: string, dead?: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const waited: Array<string> = []
    const lease = yield* Effect.forkChild(
      Effect.exit(
        Scope.provide(
          holdLease({
            store,
            key,
            address,
            owner: ownerNamed(name, dead),
            onWait: (message) => Effect.sync(() => void waited.push(message)),
          }),
          scope,
        ),
      ),
      { startImmediately: true },
    )
    return { lease, waited, end: Scope.close(scope, Exit.void) }
  })

const nameIn = (store: Store) =>
  Effect.map(store.get(key), (bytes) => (bytes === undefined ? undefined : utf8.decode(bytes).split("\n")[0]))

const messageOf = <A>(exit: Exit.Exit<A, { readonly message: string }>) =>
  Effect.map(Effect.flip(exit), ({ message }) => message)

describe("a lock in an object store", () => {
  it.effect("is held while it is renewed, and removed at the end", () =>
    Effect.gen(function* () {
      const store = yield* memory
      const one = yield* take(store, "one")
      const lease = yield* yield* Fiber.join(one.lease)
      yield* TestClock.adjust("10 minutes")
      yield* lease.confirm
      assert.strictEqual(yield* nameIn(store), "one")
      assert.deepStrictEqual(one.waited, [])
      yield* one.end
      assert.isUndefined(yield* nameIn(store))
    }),
  )

  it.effect("goes to one of two processes that try at the same moment; the other says who has it", () =>
    Effect.gen(function* () {
      const store = yield* memory
      const both = [yield* take(store, "one"), yield* take(store, "two")]
      yield* TestClock.adjust("1 minute")
      const exits = yield* Effect.forEach(both, ({ lease }) => Fiber.join(lease))
      assert.lengthOf(exits.filter(Exit.isSuccess), 1)
      const [winner, loser] = Exit.isSuccess(exits[0]) ? [0, 1] : [1, 0]
      const name = ["one", "two"][winner]
      assert.strictEqual(yield* nameIn(store), name)
      assert.strictEqual(
        yield* messageOf(exits[loser]),
        `${address}: ${name} is writing this run; wait until it ends, or stop it`,
      )
      assert.deepStrictEqual(both[loser].waited, [
        `${address}: waiting up to 60 s to see whether ${name} is still writing this run`,
      ])
      yield* both[loser].end
      assert.strictEqual(yield* nameIn(store), name, "the loser removed the lock of the winner")
      yield* both[winner].end
    }),
  )

  it.effect("of a process that no longer renews it is taken over, and that process writes nothing any more", () =>
    Effect.gen(function* () {
      const store = yield* memory
      let isFrozen = false
      const frozen: Store = {
        ...store,
        versions: {
          ...store.versions,
          put: (...put) => Effect.suspend(() => (isFrozen ? Effect.never : store.versions.put(...put))),
        },
      }
      const one = yield* take(frozen, "one")
      const lease = yield* yield* Fiber.join(one.lease)
      const writes = guarded(frozen, lease)
      yield* writes.put("team/config.yaml", Uint8Array.of(1))
      isFrozen = true
      const two = yield* take(store, "two")
      yield* TestClock.adjust("70 seconds")
      yield* (yield* yield* Fiber.join(two.lease)).confirm
      assert.strictEqual(yield* nameIn(store), "two")

      isFrozen = false
      const message = yield* messageOf(yield* Effect.exit(writes.put("team/config.yaml", Uint8Array.of(2))))
      assert.include(message, "this process lost the lock: two took it over")
      assert.include(yield* messageOf(yield* Effect.exit(writes.remove("team/config.yaml"))), "lost the lock")
      assert.deepStrictEqual(yield* store.get("team/config.yaml"), Uint8Array.of(1))
      yield* one.end
      assert.strictEqual(yield* nameIn(store), "two")
      yield* two.end
    }),
  )

  it.effect("of a process that died on the same machine is taken over at once", () =>
    Effect.gen(function* () {
      const store = yield* memory
      yield* store.put(key, utf8.encode("one\ntoken\n1\n"))
      const two = yield* take(store, "two", ["one"])
      yield* yield* Fiber.join(two.lease)
      assert.strictEqual(yield* nameIn(store), "two")
      assert.deepStrictEqual(two.waited, [])
      yield* two.end
    }),
  )

  it.effect("is taken although the answer to the put was lost", () =>
    Effect.gen(function* () {
      const store = yield* memory
      let puts = 0
      const losing: Store = {
        ...store,
        versions: {
          ...store.versions,
          // The first put reaches the store, but its sender repeats it, and the store then refuses the repetition.
          put: (...put) => Effect.map(store.versions.put(...put), (version) => (++puts === 1 ? undefined : version)),
        },
      }
      const one = yield* take(losing, "one")
      yield* (yield* yield* Fiber.join(one.lease)).confirm
      assert.deepStrictEqual(one.waited, [])
      yield* one.end
      assert.isUndefined(yield* nameIn(store))
    }),
  )

  it.effect("in a store that ignores conditions is noticed as lost at the next renewal", () =>
    Effect.gen(function* () {
      const store = yield* memory
      const one = yield* take(ignoring(store), "one")
      const lease = yield* yield* Fiber.join(one.lease)
      yield* store.put(key, utf8.encode("two\nother\n1\n"))
      yield* TestClock.adjust("20 seconds")
      assert.include(yield* messageOf(yield* Effect.exit(lease.confirm)), "two took it over")
      assert.strictEqual(yield* nameIn(store), "two")
      yield* one.end
    }),
  )
})
