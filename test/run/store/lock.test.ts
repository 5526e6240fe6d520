import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Owner, refuseHeld, tryLock } from "../../../src/run/store/lock.ts"
import { disk } from "./disk.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "lock-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
)

const living = ["process 1 on here", "process 2 on here"]
const [first, second] = living.map((name): Owner => ({
  name,
  isAlive: (other) => Effect.succeed(living.includes(other)),
}))

describe("a lock", () => {
  it.effect("of a dead process is taken over, that of a living one is not", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const file = join(directory, "player.lock")
      writeFileSync(file, "process 9 on here")
      assert.isUndefined(yield* tryLock(file, first))
      assert.strictEqual(yield* tryLock(file, second), first.name)
      assert.strictEqual(readFileSync(file, "utf8"), first.name)
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.effect("is refused to others by a look that changes nothing", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const file = join(directory, "run.lock")
      yield* refuseHeld(file, first)
      writeFileSync(file, "process 9 on here")
      yield* refuseHeld(file, first)
      assert.strictEqual(readFileSync(file, "utf8"), "process 9 on here")
      writeFileSync(file, first.name)
      yield* refuseHeld(file, first)
      assert.strictEqual((yield* Effect.flip(refuseHeld(file, second))).holder, first.name)
      writeFileSync(file, new Uint8Array([0xff, 0xfe, 0xfd]))
      yield* refuseHeld(file, second)
      assert.deepStrictEqual(readdirSync(directory), ["run.lock"])
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.effect("of a dead process is taken over by one of two that find it at the same moment", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const file = join(directory, "player.lock")
      writeFileSync(file, "process 9 on here")
      // While the second owner learns that the process is dead, the first takes its lock over.
      const context = yield* Effect.context<Effect.Services<ReturnType<typeof tryLock>>>()
      const late: Owner = {
        ...second,
        isAlive: (name) =>
          name === first.name
            ? Effect.succeed(true)
            : tryLock(file, first).pipe(Effect.orDie, Effect.as(false), Effect.provideContext(context)),
      }
      assert.strictEqual(yield* tryLock(file, late), first.name)
      assert.strictEqual(readFileSync(file, "utf8"), first.name)
      assert.deepStrictEqual(readdirSync(directory), ["player.lock"])
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.effect("is removed when its scope closes", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      yield* Effect.scoped(tryLock(join(directory, "player.lock"), first))
      assert.deepStrictEqual(readdirSync(directory), [])
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )

  it.effect("that another process has taken over stays when the scope of its first holder closes", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const file = join(directory, "player.lock")
      yield* Effect.andThen(
        tryLock(file, first),
        Effect.sync(() => writeFileSync(file, second.name)),
      ).pipe(Effect.scoped)
      assert.strictEqual(readFileSync(file, "utf8"), second.name)
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )
})
