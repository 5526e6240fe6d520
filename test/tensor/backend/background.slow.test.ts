import { readdirSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger } from "effect"
import { background } from "../../../src/tensor/backend/background-node.ts"
import { usualLimits } from "../../../src/tensor/backend/compiler-node.ts"
import { nodeThreads } from "../../../src/tensor/backend/threads-node.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { plainModules } from "../../../src/tensor/backend/wasmModules.ts"
import { start, until, withFolder, write } from "../../command/cli/effect.ts"
import { numbers } from "../graph/wasm/support.ts"
import { layerProgram } from "./layerProgram.ts"
import { hasNative } from "./nativeAvailable.ts"
import {
  answering,
  compilerIn,
  hangingIn,
  isAlive,
  productsAs,
  withVariables,
  wrongProducts,
} from "./nativeCompilers.ts"

const isAvailable = await hasNative()

/** The line that announces a compilation. The line after it says how that ended. */
const announced = /^layer on wasm until machine code of .+ is ready$/

/** Computes until the background logs how a compilation ended, and five runs more. Returns the line, and what was computed. */
const computedBeside = (caches: string, variables: Readonly<Record<string, string>> = {}, threads?: Wasm.Threads) =>
  Effect.gen(function* () {
    const { improve, opened } = background({ caches, limits: usualLimits, patience: { seconds: 0.01, computed: 0 } })
    const line = yield* Deferred.make<string>()
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => {
      const text = String(message)
      lines.push(text)
      if (!announced.test(text)) Deferred.doneUnsafe(line, Effect.succeed(text))
    })
    const { feeds, read, results, runSync, write } = yield* Wasm.make({ ...plainModules, opened }, threads).compile(
      layerProgram(33, 12, 20),
    )
    feeds["x"].set(numbers(33 * 12))
    yield* write("w", numbers(12 * 20, 2))
    const improving = yield* Effect.forkChild(
      withVariables(variables, improve).pipe(Effect.provideService(Logger.CurrentLoggers, new Set([logger]))),
    )
    let runs = 0
    const compute = (): void => {
      runs++
      runSync?.()
    }
    const computing = Effect.sync(compute).pipe(Effect.andThen(Effect.sleep("1 millis")), Effect.forever)
    const said = yield* Effect.raceFirst(Deferred.await(line), computing)
    for (let more = 0; more < 5; more++) compute()
    yield* Fiber.interrupt(improving)
    assert.match(lines[0], announced)
    return { line: said, runs, bits: [Array.from(results["sum"]), Array.from(yield* read("w"))] }
  }).pipe(Effect.scoped)

/** Computes as often on WebAssembly alone. */
const computedOnWasm = (runs: number) =>
  Effect.gen(function* () {
    const { feeds, read, results, runSync, write } = yield* Wasm.make().compile(layerProgram(33, 12, 20))
    feeds["x"].set(numbers(33 * 12))
    yield* write("w", numbers(12 * 20, 2))
    for (let run = 0; run < runs; run++) runSync?.()
    return [Array.from(results["sum"]), Array.from(yield* read("w"))]
  }).pipe(Effect.scoped)

const assertSwapped = (
  caches: string,
  variables: Readonly<Record<string, string>>,
  expected: RegExp,
  threads?: Wasm.Threads,
) =>
  Effect.gen(function* () {
    const { bits, line, runs } = yield* computedBeside(caches, variables, threads)
    assert.match(line, expected)
    assert.deepStrictEqual(bits, yield* computedOnWasm(runs))
  })

const replaced =
  / on machine code of .*, with vectors of \d+ bits from here on, after \d+ runs on wasm; no result changes$/

describe.skipIf(!isAvailable)("programs that machine code replaces while they are in use", () => {
  it("have the bits of WebAssembly, with new, kept, cut and foreign libraries", () =>
    withFolder((caches) =>
      Effect.runPromise(
        Effect.gen(function* () {
          const folder = join(caches, "effect-rl/native")
          const libraries = () => readdirSync(folder).filter((name) => name.endsWith(".so"))
          yield* assertSwapped(caches, {}, replaced)
          const kept = libraries()
          assert.lengthOf(kept, 2)
          yield* assertSwapped(caches, {}, replaced)
          assert.deepStrictEqual(libraries(), kept)
          for (const [i, name] of kept.entries()) {
            // The file is mapped into this process.
            rmSync(join(folder, name))
            writeFileSync(join(folder, name), "\x7fELF of another processor")
            if (i === 0) truncateSync(join(folder, name), 3)
          }
          yield* assertSwapped(caches, {}, replaced)
          assert.deepStrictEqual(libraries(), kept)
          assert.isUndefined(readdirSync(folder).find((name) => name.startsWith("compiling-")))
        }),
      ),
    ))

  it("have the bits of one thread if several divide them, before and after", () =>
    withFolder((caches) =>
      Effect.runPromise(assertSwapped(caches, {}, replaced, { ...nodeThreads(3), worth: { slice: 1e-6, run: 0 } })),
    ))

  const failures: ReadonlyArray<readonly [string, string, RegExp]> = [
    ["gives other results", wrongProducts, /code has other results than WebAssembly: in a check, element /],
    ["uses an instruction that is illegal", productsAs("(__builtin_trap(), (a))"), /ended with status 1\d\d/],
    ["finds a full disk", `${answering}echo "cc: error: No space left on device" >&2; exit 1`, /No space left/],
    [
      "makes an empty file",
      `${answering}for one; do [ "$last" = -o ] \u0026\u0026 : > "$one"; last="$one"; done; exit 0`,
      /load/,
    ],
  ]
  for (const [what, lines, expected] of failures)
    it(`stay on WebAssembly if the compiler ${what}`, () =>
      withFolder((caches) => Effect.runPromise(assertSwapped(caches, { CC: compilerIn(caches, lines) }, expected))))

  it("stay on WebAssembly if the compiler does not end, which ends with the run", () =>
    withFolder(async (caches) => {
      const { compiler: CC, pids } = hangingIn(caches, answering)
      await Effect.runPromise(
        Effect.gen(function* () {
          const computing = yield* Effect.forkChild(computedBeside(caches, { CC }))
          yield* Effect.promise(() => until(() => pids().length > 0))
          yield* Fiber.interrupt(computing)
        }),
      )
      await until(() => !pids().some(isAlive))
    }))

  it("leave a run its digest", () =>
    withFolder(async (folder) => {
      const config = write(
        folder,
        "train.yaml",
        "env: Pendulum-v1\nalgorithm: { name: ppo, nsteps: 64 }\nnum_envs: 2\ntotal_steps: 120000\nseed: 3\n",
      )
      const train = async (native: string, backend: string) => {
        const env = { ...process.env, XDG_CACHE_HOME: folder, EFFECT_RL_NATIVE: native }
        const args = [
          "run",
          config,
          "--backend",
          backend,
          "--json",
          "--results-dir",
          join(folder, `${native}${backend}`),
        ]
        const { stdout } = await start(args, undefined, { env }).ended
        return /"digest":"(\w+)"/.exec(stdout)?.[1]
      }
      const expected = await train("0", "wasm")
      assert.isString(expected)
      assert.deepStrictEqual([await train("1", "native"), await train("wait", "native")], [expected, expected])
    }))
})
