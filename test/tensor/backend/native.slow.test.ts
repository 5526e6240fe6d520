import { spawn } from "node:child_process"
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Backend } from "../../../src/tensor/backend/Backend.ts"
import { usualLimits } from "../../../src/tensor/backend/compiler-node.ts"
import * as Native from "../../../src/tensor/backend/native-node.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import { until, withFolder, write } from "../../command/cli/effect.ts"
import { numbers } from "../graph/wasm/support.ts"
import { layerProgram } from "./layerProgram.ts"
import { hasNative } from "./nativeAvailable.ts"
import { answering, compilerIn, hangingIn, isAlive, withVariables, wrongProducts } from "./nativeCompilers.ts"

const isAvailable = await hasNative()
const computingProgram = fileURLToPath(new URL("computingForEver.ts", import.meta.url))

/** Runs a program five times; returns its results and weights. */
const computedOn = ({ compile }: Backend["Service"]) =>
  Effect.gen(function* () {
    const { device, feeds, read, results, run, write: set } = yield* compile(layerProgram(33, 12, 20))
    feeds["x"].set(numbers(33 * 12))
    yield* set("w", numbers(12 * 20, 2))
    for (let runs = 0; runs < 5; runs++) yield* run
    return { device, bits: [Array.from(results["sum"]), Array.from(yield* read("w"))] }
  }).pipe(Effect.scoped)

const objectsIn = (caches: string): ReadonlyArray<string> => readdirSync(join(caches, "effect-rl/native")).toSorted()

describe.skipIf(!isAvailable)("the backend native", () => {
  it("computes the bits of wasm, and keeps what it has compiled; a damaged object is compiled again", () =>
    withFolder((caches) =>
      Effect.runPromise(
        Effect.gen(function* () {
          const expected = yield* computedOn(Wasm.make())
          const first = yield* computedOn(yield* Native.make({ caches }))
          assert.deepStrictEqual(first, { device: "wasm", bits: expected.bits })
          const objects = objectsIn(caches)
          // Two libraries, and the passed check.
          assert.lengthOf(objects, 3)
          assert.deepStrictEqual((yield* computedOn(yield* Native.make({ caches }))).bits, expected.bits)
          assert.deepStrictEqual(objectsIn(caches), objects)
          const contents = () => objectsIn(caches).map((name) => readFileSync(join(caches, "effect-rl/native", name)))
          const before = contents()
          for (const name of objects.filter((one) => one.endsWith(".so"))) {
            const file = join(caches, "effect-rl/native", name)
            const bytes = readFileSync(file)
            // The old file is loaded, so another one takes its place.
            rmSync(file)
            writeFileSync(file, bytes.fill(0, 64, bytes.length - 64))
          }
          assert.deepStrictEqual((yield* computedOn(yield* Native.make({ caches }))).bits, expected.bits)
          assert.deepStrictEqual(contents(), before)
        }),
      ),
    ))

  for (const [what, sizes] of [
    ["groups", {}],
    ["bands", { bandSizes: { worth: 0, band: 1, rows: 16, weights: Infinity } }],
  ] as const)
    it(`computes the bits of one thread in 2 and 4 threads, which divide ${what}`, () =>
      withFolder((caches) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const spec: ProgramSpec = {
              ...layerProgram(160, 40, 48),
              minibatches: { rows: 200, batch: 160, count: 2, gathered: ["x"] },
            }
            const computed = ({ compile }: Backend["Service"]) =>
              Effect.gen(function* () {
                const { feeds, read, results, runSync, write: set } = yield* compile(spec)
                feeds["x"].set(numbers(200 * 40))
                feeds["indices"].forEach((_, i, indices) => (indices[i] = (i * 37) % 200))
                yield* set("w", numbers(40 * 48, 2))
                for (let runs = 0; runs < 300; runs++) runSync?.()
                return [Array.from(results["sum"]), Array.from(yield* read("w"))]
              }).pipe(Effect.scoped)
            const expected = yield* computed(Wasm.make())
            for (const threads of [2, 4]) {
              const native = yield* Native.make({ caches, threads, worth: { slice: 1e-6, run: 0 }, ...sizes })
              assert.deepStrictEqual(yield* computed(native), expected)
            }
          }),
        ),
      ))

  it("refuses a cache folder to which others may write", () =>
    withFolder(async (folder) => {
      const caches = join(folder, "open")
      mkdirSync(caches)
      chmodSync(folder, 0o755)
      chmodSync(caches, 0o777)
      const error = await Effect.runPromise(Effect.flip(Native.make({ caches })))
      assert.match(error.message, /there is no private folder for compiled programs \(others can write to /)
    }))

  it("says what the compiler says when it fails", () =>
    withFolder(async (folder) => {
      const messages = "program.c: In function 'f':\\nprogram.c:1: error: No space left on device"
      const compiler = compilerIn(folder, `${answering}printf "${messages}" >&2\nexit 1`)
      const made = withVariables({ CC: compiler }, Effect.flatMap(Native.make({ caches: folder }), computedOn))
      const error = await Effect.runPromise(Effect.flip(made))
      assert.match(error.message, /cc" failed: program.c:1: error: No space left on device/)
      assert.deepStrictEqual(objectsIn(folder), [])
    }))

  it("refuses a compiler whose code has other results", () =>
    withFolder(async (folder) => {
      const compiler = compilerIn(folder, wrongProducts)
      const made = withVariables({ CC: compiler }, Effect.flatMap(Native.make({ caches: folder }), computedOn))
      const error = await Effect.runPromise(Effect.flip(made))
      assert.match(error.message, /the C compiler's code has other results than WebAssembly: in a check, element /)
    }))

  it("checks each width of vectors, and remembers for which the check has passed", () =>
    withFolder((folder) =>
      Effect.runPromise(
        Effect.gen(function* () {
          const CC = compilerIn(folder, `if grep -q "^#define LANES 4" "$source"; then\n${wrongProducts}\nfi`)
          const computed = (lanes: 4 | 8) =>
            withVariables({ CC }, Effect.flatMap(Native.make({ caches: folder, lanes }), computedOn))
          yield* computed(8)
          assert.lengthOf(objectsIn(folder), 3)
          const error = yield* Effect.flip(computed(4))
          assert.match(error.message, /has other results than WebAssembly/)
        }),
      ),
    ))

  it.skipIf(process.arch !== "x64")("compiles vectors that are wider than those of the processor", () =>
    withFolder((folder) =>
      Effect.runPromise(
        Effect.gen(function* () {
          const CC = compilerIn(folder, "", "-mno-avx512f -mno-avx2 -mno-avx")
          const made = withVariables({ CC }, Effect.flatMap(Native.make({ caches: folder, lanes: 16 }), computedOn))
          assert.deepStrictEqual((yield* made).bits, (yield* computedOn(Wasm.make())).bits)
        }),
      ),
    ),
  )

  it("compiles the same programs twice at once in one folder", () =>
    withFolder((caches) =>
      Effect.runPromise(
        Effect.gen(function* () {
          const expected = yield* computedOn(Wasm.make())
          const once = Effect.flatMap(Native.make({ caches }), computedOn)
          const [one, other] = yield* Effect.all([once, once], { concurrency: 2 })
          assert.deepStrictEqual([one.bits, other.bits], [expected.bits, expected.bits])
          assert.lengthOf(objectsIn(caches), 3)
        }),
      ),
    ))

  it("keeps 200 programs, what it has just compiled, and the passed check; and removes what killed compilers left", () =>
    withFolder((caches) =>
      Effect.runPromise(
        Effect.gen(function* () {
          yield* Native.make({ caches })
          const folder = join(caches, "effect-rl/native")
          const old = new Date(Date.now() - 2 * 86_400_000)
          const future = new Date(Date.now() + 86_400_000)
          const add = (name: string, time: Date): void => utimesSync(write(folder, name, ""), time, time)
          // The clock of a machine can be wrong.
          for (let i = 0; i < 210; i++) add(`${i}.so`, future)
          add("effect-rl-widens-0", old)
          mkdirSync(join(folder, "compiling-0"))
          utimesSync(join(folder, "compiling-0"), old, old)
          yield* computedOn(yield* Native.make({ caches }))
          const names = objectsIn(caches)
          assert.include(names, "effect-rl-widens-0")
          assert.notInclude(names, "compiling-0")
          assert.lengthOf(
            names.filter((name) => name.endsWith(".so")),
            201,
          )
        }),
      ),
    ))

  it("ends a compiler that does not answer, with the processes that it has started", () =>
    withFolder(async (folder) => {
      const { compiler, pids } = hangingIn(folder)
      const limits = { ...usualLimits, question: 2 }
      const made = withVariables({ CC: compiler }, Native.make({ caches: folder, limits }))
      const error = await Effect.runPromise(Effect.flip(made))
      assert.match(error.message, /the C compiler did not answer within 2 seconds/)
      await until(() => !pids().some(isAlive))
    }))

  for (const [what, before] of [
    ["that does not answer", ""],
    ["that compiles", answering],
  ] as const)
    it(`leaves no compiler ${what} behind when the process of a run is killed`, () =>
      withFolder(async (folder) => {
        const { compiler, pids } = hangingIn(folder, before)
        const child = spawn(process.execPath, [computingProgram, folder], {
          env: { ...process.env, CC: compiler },
          stdio: ["ignore", "inherit", "inherit"],
        })
        const ended = new Promise<string>((resolve) => child.once("exit", () => resolve("the process ended")))
        assert.isUndefined(await Promise.race([ended, until(() => pids().length > 0)]))
        child.kill("SIGKILL")
        await ended
        await until(() => !pids().some(isAlive))
      }))
})
