import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { auto, prefersWasm } from "../../src/backend/auto.ts"
import { Backend, BackendUnavailable } from "../../src/backend/Backend.ts"
import * as Wasm from "../../src/backend/wasm.ts"
import * as G from "../../src/graph/ops.ts"
import type { ProgramSpec } from "../../src/graph/Program.ts"

const product = (name: string, size: number): ProgramSpec => {
  const inputs = { x: G.input("x", [size, size]), y: G.input("y", [size, size]) }
  return { name, inputs, state: {}, outputs: { z: G.matmul(inputs.x, inputs.y) } }
}

const missing = new BackendUnavailable({
  backend: "cpu",
  missing: "the package onnxruntime-node is not installed",
  remedy: "Add it.",
})

describe("auto without ONNX Runtime", () => {
  it.effect("runs everything on wasm, and says which programs would have run in a session", () =>
    Effect.gen(function* () {
      const wasm = Context.get(yield* Layer.build(Wasm.layer), Backend)
      const backend = auto({ wasm, session: Effect.fail(missing) })
      const [small, large] = [product("act", 8), product("update", 512)]
      assert.isTrue(prefersWasm(small))
      assert.isFalse(prefersWasm(large))

      assert.strictEqual((yield* backend.compile(small)).device, "wasm")
      assert.deepStrictEqual(yield* backend.warnings ?? Effect.succeed([]), [])

      assert.strictEqual((yield* backend.compile(large)).device, "wasm")
      assert.deepStrictEqual(yield* backend.warnings ?? Effect.succeed([]), [
        `on "wasm" instead of "cpu", with other last bits: update. ${missing.message}`,
      ])
    }).pipe(Effect.scoped),
  )
})
