import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { guarded, notATraining, placeIn, strayError } from "../../../../src/command/cli/userCode/userCode.ts"

const messageOf = <A, E extends { readonly message: string }>(training: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(guarded("train.ts", training)), ({ message }) => message)

/** Makes an error as if it had been thrown in a file. */
const thrownIn = (file: string): Error =>
  Object.assign(new Error("boom"), { stack: `Error: boom\n    at step (${file}:12:3)\n    at node:internal/x:1:1` })

class Simulator extends Context.Service<Simulator, { readonly speed: number }>()("Simulator") {}

describe("a default export", () => {
  it.effect("that gives the result of a run is that result", () =>
    Effect.gen(function* () {
      assert.deepEqual(yield* guarded("train.ts", Effect.succeed({ runDir: "x" })), { runDir: "x" })
    }),
  )

  it.effect("that returns something else fails with one line", () =>
    Effect.gen(function* () {
      const expected =
        "train.ts: expected a default export that returns the result of a run, as Train.run({ … }) does, found 1"
      assert.strictEqual(yield* messageOf(Effect.succeed(1)), expected)
    }),
  )

  it.effect("that dies of its own code fails with one line", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* messageOf(Effect.die("boom")), "train.ts: its default export died of boom")
      const own = yield* messageOf(Effect.die(thrownIn("file:///home/me/train.ts")))
      assert.strictEqual(own, "train.ts: its default export died of Error: boom (/home/me/train.ts:12:3)")
    }),
  )

  it.effect("that dies of an error with a very long message fails with a line of limited length", () =>
    Effect.gen(function* () {
      const long = Object.assign(thrownIn("file:///home/me/train.ts"), { message: "x".repeat(5000) })
      const message = yield* messageOf(Effect.die(long))
      assert.match(message, /^train\.ts: its default export died of Error: x+… \(\/home\/me\/train\.ts:12:3\)$/)
      assert.isBelow(message.length, 1200)
    }),
  )

  it.effect("that lacks a service fails with the service's name", () =>
    Effect.gen(function* () {
      const training: Effect.Effect<unknown, never, never> = Effect.suspend(() =>
        Effect.die(new Error("Service not found: Simulator")),
      )
      assert.strictEqual(Simulator.key, "Simulator")
      const expected = "train.ts: its default export needs the service Simulator; provide it there by Effect.provide"
      assert.strictEqual(yield* messageOf(training), expected)
    }),
  )

  it.effect("that dies where it imports another copy of the library names both copies", () =>
    Effect.gen(function* () {
      const folder = realpathSync(mkdtempSync(join(tmpdir(), "copies-")))
      yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true, force: true })))
      const other = join(folder, "node_modules/effect-rl")
      mkdirSync(other, { recursive: true })
      writeFileSync(join(other, "package.json"), '{ "name": "effect-rl" }')
      const file = join(folder, "train.ts")
      const bug = thrownIn(new URL("../../../../src/rl/train/Train.ts", import.meta.url).href)
      const error = yield* Effect.flip(guarded(file, Effect.die(bug)))
      const expected = `${file}: its default export died of Error: boom; it imports the effect-rl in ${other}, but this command is that of `
      assert.include(error.message, expected)
    }),
  )

  it.effect("that dies of a bug of the library's keeps the stack", () =>
    Effect.gen(function* () {
      const bug = thrownIn(new URL("../../../../src/rl/train/Train.ts", import.meta.url).href)
      const exit = yield* Effect.exit(guarded("train.ts", Effect.die(bug)))
      assert.deepEqual(exit, yield* Effect.exit(Effect.die(bug)))
    }),
  )

  it("that is no training is named", () => {
    assert.include(
      notATraining(Promise.resolve(1), "Train.run({ … })"),
      "a promise; expected Train.run({ … }) itself, or export default await …",
    )
    assert.include(
      notATraining(() => 1, "Train.run({ … })"),
      "a function; expected Train.run({ … }) itself, not a function that returns it",
    )
    assert.include(notATraining(null, "Train.run({ … })"), "null; expected Train.run({ … })")
  })
})

describe("an error that nothing could catch", () => {
  it("is reported with its place in the user's files", () => {
    assert.strictEqual(placeIn(thrownIn("file:///home/me/train.ts?compiled").stack), "/home/me/train.ts:12:3")
  })

  it.effect("names what was thrown and where", () =>
    Effect.gen(function* () {
      const rest = "nothing could catch it: it was thrown in a timer, or in a promise that is not awaited"
      const messageOf = (thrown: unknown) => Effect.map(Effect.flip(strayError(thrown)), ({ message }) => message)
      const own = yield* messageOf(thrownIn("file:///home/me/train.ts"))
      assert.strictEqual(own, `/home/me/train.ts:12:3: Error: boom; ${rest}`)
      assert.strictEqual(yield* messageOf(undefined), `nothing; ${rest}`)
      assert.isBelow((yield* messageOf("x".repeat(5000))).length, 200)
      assert.isBelow((yield* messageOf(new Error("x".repeat(5000)))).length, 1200)
    }),
  )

  it.effect("is a bug where it is the library's own", () =>
    Effect.gen(function* () {
      const bug = thrownIn(new URL("../../../../src/rl/train/Train.ts", import.meta.url).href)
      assert.deepEqual(yield* Effect.exit(strayError(bug)), yield* Effect.exit(Effect.die(bug)))
    }),
  )
})
