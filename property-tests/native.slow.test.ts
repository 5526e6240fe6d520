import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import * as Native from "../src/tensor/backend/native-node.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { withFolder } from "../test/command/cli/effect.ts"
import { tries } from "../test/house/tries.ts"
import { compileWith, firstDifference, identical } from "./support/agreement.ts"
import { checkEveryOp } from "./support/everyOp.ts"
import { choices, grow } from "./support/randomGraph.ts"

const isAvailable = Exit.isSuccess(await Effect.runPromise(Effect.exit(Native.make())))

/** Compiles programs to C, one after another, and compares each with its WebAssembly. */
const assertSameBits = (specs: ReadonlyArray<ProgramSpec>, lanes: 4 | 8 | 16): Promise<void> =>
  withFolder((caches) =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const native = yield* Native.make({ caches, lanes })
          for (const spec of specs) {
            const program = yield* native.compile(spec)
            assert.isUndefined(firstDifference(program, compileWith(Wasm.layer, spec), spec, identical), spec.name)
          }
        }),
      ),
    ),
  )

describe.skipIf(!isAvailable)("programs that a C compiler has made compute the bits of WebAssembly", () => {
  for (const lanes of [4, 8, 16] as const)
    it(`of any graph, for results, gradients and states, in every run, with vectors of ${32 * lanes} bits`, async () => {
      const specs = fc.sample(choices.map(grow), tries(20))
      await assertSameBits(specs, lanes)
    })

  it("of every op and its gradients, in any size", async () => {
    const specs: Array<ProgramSpec> = []
    checkEveryOp([35, 35], 1, (spec) => void specs.push(spec))
    await assertSameBits(specs, 16)
  })
})
