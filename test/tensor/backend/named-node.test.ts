import { availableParallelism } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import { backend, type NamedBackendOptions, threadsOf } from "../../../src/tensor/backend/named-node.ts"
import { numbers } from "../graph/wasm/support.ts"
import { layerProgram } from "./layerProgram.ts"

/** Enough that several threads compute a layer. */
const rows = 1024

/** Runs the program five times. Returns its results, its last weights, and whether threads share its memory. */
const computedOn = (name: "auto" | "wasm" | "cpu", options: NamedBackendOptions) =>
  Effect.gen(function* () {
    const { compile } = yield* Backend
    const { feeds, read, results, run, write } = yield* compile(layerProgram(rows, 128, 256))
    feeds["x"].set(numbers(rows * 128))
    yield* write("w", numbers(128 * 256, 2))
    for (let runs = 0; runs < 5; runs++) yield* run
    const bits = [Array.from(results["sum"]), Array.from(yield* read("w"))]
    return { bits, isShared: feeds["x"].buffer instanceof SharedArrayBuffer }
  }).pipe(Effect.scoped, Effect.provide(backend(name, options)))

describe("threads: auto", () => {
  it("is one thread for each processor on wasm, at most 8, and one in a session", () => {
    const resolved = [1, 2, 8, 64].map((processors) => threadsOf("auto", processors))
    assert.deepStrictEqual(
      resolved,
      [1, 2, 8, 8].map((wasm) => ({ wasm, session: 1 })),
    )
  })

  it("differs from a number, which stays as it is", () => {
    assert.deepStrictEqual(threadsOf(1, 4), { wasm: 1, session: 1 })
    assert.deepStrictEqual(threadsOf(12, 4), { wasm: 12, session: 12 })
  })

  for (const name of ["wasm", "cpu", "auto"] as const)
    it.effect(`computes the bits of one thread on ${name}`, () =>
      Effect.gen(function* () {
        const one = yield* computedOn(name, {})
        const several = yield* computedOn(name, { threads: "auto" })
        assert.deepStrictEqual(several.bits, one.bits)
        assert.isFalse(one.isShared)
        if (name === "wasm") assert.strictEqual(several.isShared, availableParallelism() > 1)
      }),
    )
})
