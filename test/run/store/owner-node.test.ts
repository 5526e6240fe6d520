import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { type Machine, owner, ownerName, ownerOn } from "../../../src/run/store/owner-node.ts"
import { holdLease } from "../../../src/run/store/objects/lease.ts"
import { ObjectStore } from "../../../src/run/store/objects/ObjectStore.ts"

/** A machine on which processes run, by their ids, since some time. */
const machineWith = (running: Readonly<Record<number, string>>, identity: Partial<Machine> = {}): Machine => ({
  host: "localhost",
  id: "a1",
  boot: "b1",
  begun: (pid) => running[pid],
  ...identity,
})

const here = ownerOn(machineWith({ 1: "10", 2: "20" }), 1)

/** Tells what `here` knows about a process: whether it may be alive, and whether it has certainly ended. */
const about = (name: string) => Effect.all([here.isAlive(name), here.hasEnded(name)])

describe("the owner of a lock", () => {
  it.effect("tells living processes of its machine from dead ones, also if their number was given to another one", () =>
    Effect.gen(function* () {
      assert.strictEqual(here.name, "process 1 on localhost (a1-b1-10)")
      assert.deepStrictEqual(yield* about(here.name), [true, false])
      assert.deepStrictEqual(yield* about("process 2 on localhost (a1-b1-20)"), [true, false])
      assert.deepStrictEqual(yield* about("process 2 on localhost (a1-b1-15)"), [false, true])
      assert.deepStrictEqual(yield* about("process 3 on localhost (a1-b1-15)"), [false, true])
    }),
  )

  it.effect("knows nothing of other machines, also if they have the same hostname", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* about("process 3 on elsewhere (a1-b1-15)"), [true, false])
      assert.deepStrictEqual(yield* about("process 3 on localhost (a2-b2-15)"), [true, false])
      assert.deepStrictEqual(yield* about("somebody"), [true, false])
    }),
  )

  it.effect("takes a process for dead that began before this machine did, but is not certain of it", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* about("process 1 on localhost (a1-b0-10)"), [false, false])
    }),
  )

  it.effect("does without the ids of the machine and the times of processes where the system has none", () =>
    Effect.gen(function* () {
      const simple = ownerOn(machineWith({ 1: "", 2: "" }, { id: "", boot: "" }), 1)
      assert.strictEqual(simple.name, "process 1 on localhost (--)")
      assert.isTrue(yield* simple.isAlive("process 2 on localhost (--)"))
      assert.isTrue(yield* simple.hasEnded("process 3 on localhost (--)"))
      const hidden = ownerOn(machineWith({ 1: "10", 2: "" }), 1)
      assert.isTrue(yield* hidden.isAlive("process 2 on localhost (a1-b1-20)"))
    }),
  )

  it.effect("is this process, in real ids of the system", () =>
    Effect.gen(function* () {
      assert.strictEqual(owner.name, ownerName(process.pid))
      assert.isTrue(yield* owner.isAlive(ownerName(process.ppid)))
      assert.isTrue(yield* owner.hasEnded(ownerName(2147483646)))
      if (process.platform === "linux") assert.match(owner.name, /\(\w*-[0-9a-f]{8}-\d+\)$/)
    }),
  )

  it.effect("does not take the lock of a run in a bucket from a machine with its hostname that renews it", () =>
    Effect.gen(function* () {
      const store = yield* ObjectStore
      const { versions } = store
      if (versions === undefined) return yield* Effect.die("the store in memory has versions")
      const hold = (machine: Machine, pid: number) => {
        const options = { store: { ...store, versions }, key: "run.lock", address: "s3://runs/run.lock" }
        return Effect.scoped(Effect.andThen(holdLease({ ...options, owner: ownerOn(machine, pid) }), Effect.never))
      }
      const first = machineWith({ 7: "70" })
      const twin = machineWith({ 1: "10" }, { boot: "b2" })
      const holding = yield* Effect.forkChild(hold(first, 7), { startImmediately: true })
      const refused = yield* Effect.forkChild(Effect.exit(hold(twin, 1)), { startImmediately: true })
      yield* TestClock.adjust("1 minute")
      const exit = yield* Fiber.join(refused)
      assert.isTrue(Exit.isFailure(exit))
      assert.include(String(exit), "process 7 on localhost (a1-b1-70) is writing this run")
      assert.isUndefined(holding.pollUnsafe())
    }).pipe(Effect.provide(ObjectStore.layerMemory)),
  )
})
