import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger } from "effect"
import { backend } from "../../../src/tensor/backend/named-node.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import { nodeThreads } from "../../../src/tensor/backend/threads-node.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { plainModules, type SharedModule } from "../../../src/tensor/backend/wasmModules.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import type { BandSizes } from "../../../src/tensor/graph/wasm/bands.ts"
import { helpedExport } from "../../../src/tensor/graph/wasm/slices.ts"
import { functionOf, numbers } from "../graph/wasm/support.ts"
import { layerProgram } from "./layerProgram.ts"

/** The engine, as far as this test uses it. */
declare const WebAssembly: {
  readonly Instance: new (module: object, imports: object) => { readonly exports: Readonly<Record<string, unknown>> }
}

/** Two minibatches of a layer. */
const twoMinibatches: ProgramSpec = {
  ...layerProgram(160, 40, 48),
  minibatches: { rows: 200, batch: 160, count: 2, gathered: ["x"] },
}

/** Threads of Node that divide all that can be divided, and a function that tells how many slices the others computed. */
const counted = (count: number) => {
  const { start } = nodeThreads(count)
  let helped = (): number => 0
  const threads: Wasm.Threads = {
    count,
    worth: { slice: 1e-6, run: 0 },
    start: (shared: SharedModule, helpers, failed) => {
      const { exports } = new WebAssembly.Instance(shared.module, { env: { memory: shared.memory } })
      helped = functionOf(exports, helpedExport)
      return start(shared, helpers, failed)
    },
  }
  return { threads, helped: () => helped() }
}

const opened = Effect.fnUntraced(function* (threads?: Wasm.Threads, sizes?: BandSizes) {
  const program = yield* Wasm.make(plainModules, threads, sizes).compile(twoMinibatches)
  program.feeds["x"].set(numbers(200 * 40))
  program.feeds["indices"].forEach((_, i, indices) => (indices[i] = (i * 37) % 200))
  yield* program.write("w", numbers(40 * 48, 2))
  return program
})

/** Lets events happen, such as the start of a thread. */
const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

describe("several threads", () => {
  /** Bands of 16 rows, of which each thread computes its own; without them, threads divide each group. */
  const bands: BandSizes = { worth: 0, band: 1, rows: 16, weights: Infinity }
  for (const [what, sizes, count] of [
    ["groups", undefined, 2],
    ["groups", undefined, 4],
    ["bands", bands, 2],
    ["bands", bands, 4],
  ] as const)
    it.effect(`compute the bits of one thread, of ${count} in all, in ${what}`, () =>
      Effect.gen(function* () {
        const { helped, threads } = counted(count)
        const several = yield* opened(threads, sizes)
        const one = yield* opened()
        // Until other threads have computed some slices, and then some more.
        for (let runs = 0; runs < 20 || helped() < 20; runs++) {
          several.runSync?.()
          one.runSync?.()
          assert.deepStrictEqual(Array.from(several.results["sum"]), Array.from(one.results["sum"]))
          assert.deepStrictEqual(yield* several.read("w"), yield* one.read("w"))
          yield* turn
        }
      }),
    )

  it.effect("compute groups that could have more slices than a ticket can count", () =>
    Effect.gen(function* () {
      const x = G.input("x", [1100 * 64])
      const spec: ProgramSpec = { name: "square", inputs: { x }, state: {}, outputs: { y: G.square(x) } }
      const threads: Wasm.Threads = { count: 1100, worth: { slice: 1e-6, run: 0 }, start: () => Effect.void }
      const { feeds, results, runSync } = yield* Wasm.make(plainModules, threads).compile(spec)
      feeds["x"].set(numbers(1100 * 64))
      runSync?.()
      assert.deepStrictEqual(
        results["y"],
        feeds["x"].map((value) => value * value),
      )
    }),
  )

  it.effect("end when the scope of their program is closed, even if its fiber is interrupted", () =>
    Effect.gen(function* () {
      let ended = 0
      const { threads } = counted(3)
      const start: Wasm.Threads["start"] = (shared, helpers, failed) =>
        Effect.andThen(
          threads.start(shared, helpers, failed),
          Effect.sync(() => (ended += helpers)),
        )
      const training = Effect.gen(function* () {
        const program = yield* opened({ ...threads, start })
        for (;;) {
          program.runSync?.()
          yield* turn
        }
      })
      const fiber = yield* Effect.forkChild(Effect.scoped(training))
      for (let turns = 0; turns < 5; turns++) yield* turn
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(ended, 2)
    }),
  )

  // A function cannot be sent to a thread, so it is not even made; a string can, but the thread cannot instantiate it.
  for (const [when, module] of [
    ["is made", () => undefined],
    ["begins", "no module"],
  ] as const)
    it.effect(`warn if one fails when it ${when}, and compute without it`, () =>
      Effect.gen(function* () {
        const warned = yield* Deferred.make<string>()
        const logger = Logger.make<unknown, void>(({ message }) => {
          Deferred.doneUnsafe(warned, Effect.succeed(String(message)))
        })
        const { threads } = counted(3)
        const start: Wasm.Threads["start"] = ({ memory }, helpers, failed) =>
          nodeThreads(3).start({ module: Object(module), memory }, helpers, failed)
        yield* Effect.gen(function* () {
          const several = yield* opened({ ...threads, start })
          const one = yield* opened()
          several.runSync?.()
          one.runSync?.()
          assert.deepStrictEqual(yield* several.read("w"), yield* one.read("w"))
          assert.include(yield* Deferred.await(warned), "a thread of the backend wasm failed")
        }).pipe(Effect.scoped, Effect.provide(Logger.layer([logger])))
      }),
    )

  it.effect("are not started for small programs, whose arrays stay ordinary ones", () =>
    Effect.gen(function* () {
      const { compile } = yield* Backend
      const x = G.input("x", [64, 4])
      const w = G.state("w", [4, 64])
      const y = G.tanh(G.matmul(x, w))
      const small = yield* compile({ name: "act", inputs: { x }, state: { w: { tensor: w } }, outputs: { y } })
      assert.isFalse(small.feeds["x"].buffer instanceof SharedArrayBuffer)
      const rows = G.input("x", [4096, 256])
      const large = yield* compile({
        name: "square",
        inputs: { x: rows },
        state: {},
        outputs: { y: G.matmul(rows, rows, { transposeA: true }) },
      })
      assert.isTrue(large.feeds["x"].buffer instanceof SharedArrayBuffer)
    }).pipe(Effect.provide(backend("wasm", { threads: 2 }))),
  )
})
