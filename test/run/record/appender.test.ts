import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RunStoreError } from "../../../src/run/store/RunStoreError.ts"
import { appender } from "../../../src/run/record/appender.ts"
import { memoryRun } from "../store/disk.ts"

describe("a file that grows", () => {
  it.effect("is written on flush, once", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      const file = yield* appender(run, "file")
      file.buffer.text("one\n")
      yield* file.flush
      yield* file.flush
      file.buffer.text("two\n")
      yield* file.flush
      assert.strictEqual(yield* run.readText("file"), "one\ntwo\n")
    }),
  )

  it.effect("is left alone after an append that failed: half a line must stay the last", () =>
    Effect.gen(function* () {
      const run = yield* memoryRun
      let appends = 0
      const full = new RunStoreError({ path: "file", operation: "append to", message: "no space left on device" })
      const file = yield* appender(
        { ...run, appending: () => Effect.succeed(() => Effect.suspend(() => (appends++, Effect.fail(full)))) },
        "file",
      )
      file.buffer.text("one\n")
      assert.strictEqual(yield* Effect.flip(file.flush), full)
      file.buffer.text("two\n")
      yield* file.flush
      assert.strictEqual(appends, 1)
    }),
  )
})
