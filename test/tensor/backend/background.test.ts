import { chmodSync, existsSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger } from "effect"
import { TestClock } from "effect/testing"
import { background } from "../../../src/tensor/backend/background-node.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { type LoadedGroup, plainModules } from "../../../src/tensor/backend/wasmModules.ts"
import { withFolder, write } from "../../command/cli/effect.ts"
import { numbers } from "../graph/wasm/support.ts"
import { layerProgram } from "./layerProgram.ts"
import { withVariables } from "./nativeCompilers.ts"

/** Runs a program once, beside the search for a compiler; returns the line that it logs, and the results before and after it. */
const lineWith = (options: Parameters<typeof background>[0], variables: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { improve, opened } = background({ patience: { seconds: 10, computed: 1e-9 }, ...options })
    const line = yield* Deferred.make<string>()
    const logger = Logger.make(({ message }) => void Deferred.doneUnsafe(line, Effect.succeed(String(message))))
    const { device, feeds, results, runSync } = yield* Wasm.make({ ...plainModules, opened }).compile(
      layerProgram(5, 4, 3),
    )
    feeds["x"].set(numbers(5 * 4))
    runSync?.()
    const before = Array.from(results["sum"])
    const improving = yield* Effect.forkChild(
      withVariables(variables, improve).pipe(Effect.provideService(Logger.CurrentLoggers, new Set([logger]))),
    )
    yield* TestClock.adjust("10 seconds")
    const said = yield* Deferred.await(line)
    yield* Fiber.join(improving)
    runSync?.()
    assert.deepStrictEqual(Array.from(results["sum"]), before)
    assert.strictEqual(device, "wasm")
    return said
  }).pipe(Effect.scoped)

const isWindows = process.platform === "win32"

describe.skipIf(isWindows)("a run goes on as WebAssembly, with one line in its log,", () => {
  const cases: ReadonlyArray<readonly [string, string, RegExp]> = [
    ["without a compiler", "/nowhere/cc", /there is no C compiler "\/nowhere\/cc"/],
    ["with a compiler that is none", "/bin/true", /"\/bin\/true" is not a C compiler like GCC or Clang|no C compiler/],
  ]
  for (const [title, CC, expected] of cases)
    it.effect(title, () =>
      Effect.promise(() =>
        withFolder((caches) => Effect.runPromise(Effect.provide(lineWith({ caches }, { CC }), TestClock.layer()))),
      ).pipe(
        Effect.map((line) => {
          assert.match(line, /^programs stay on WebAssembly, with the same results: /)
          assert.match(line, expected)
        }),
      ),
    )

  it.effect("with a cache folder to which others may write", () =>
    Effect.promise(() =>
      withFolder((folder) => {
        const caches = join(folder, "open")
        mkdirSync(caches)
        chmodSync(folder, 0o755)
        chmodSync(caches, 0o777)
        return Effect.runPromise(Effect.provide(lineWith({ caches }, {}), TestClock.layer()))
      }),
    ).pipe(Effect.map((line) => assert.match(line, /others can write to /))),
  )
})

describe("programs that other functions replace", () => {
  it.effect("stop their threads when their scope closes, and start none afterwards", () =>
    Effect.gen(function* () {
      const groups: Array<LoadedGroup> = []
      const opened = (group: LoadedGroup) => {
        groups.push(group)
        return () => {}
      }
      const calls: Array<string> = []
      const team = { start: () => void calls.push("start"), stop: () => void calls.push("stop") }
      const run = () => calls.push("run")
      const by = { functions: { program: { prepare: () => {}, run } }, team }
      yield* Effect.gen(function* () {
        const { runSync } = yield* Wasm.make({ ...plainModules, opened }).compile(layerProgram(5, 4, 3))
        assert.isTrue(yield* groups[0].replace(by, groups[0].compiled.constants))
        runSync?.()
      }).pipe(Effect.scoped)
      assert.isFalse(yield* groups[0].replace(by, groups[0].compiled.constants))
      assert.deepStrictEqual(calls, ["start", "run", "stop"])
    }),
  )
})

describe.skipIf(isWindows)("the background", () => {
  it("asks no compiler for programs that have computed little", () =>
    withFolder((folder) =>
      Effect.runPromise(
        Effect.gen(function* () {
          const called = join(folder, "called")
          const CC = write(folder, "cc", `#!/bin/sh\ntouch ${called}\n`)
          chmodSync(CC, 0o700)
          const { improve, opened } = background({ caches: folder })
          const { runSync } = yield* Wasm.make({ ...plainModules, opened }).compile(layerProgram(5, 4, 3))
          const improving = yield* Effect.forkChild(withVariables({ CC }, improve))
          for (let looks = 0; looks < 100; looks++) {
            runSync?.()
            yield* TestClock.adjust("10 seconds")
          }
          assert.isFalse(existsSync(called))
          yield* Fiber.interrupt(improving)
        }).pipe(Effect.scoped, Effect.provide(TestClock.layer())),
      ),
    ))
})
