import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import * as Native from "../src/tensor/backend/native-node.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { withFolder } from "../test/command/cli/effect.ts"
import { tries } from "../test/house/tries.ts"
import { hasNative } from "../test/tensor/backend/nativeAvailable.ts"
import { compileWith, firstDifference, identical } from "./support/agreement.ts"
import { checkEveryOp } from "./support/everyOp.ts"
import { choices, grow } from "./support/randomGraph.ts"

const isAvailable = await hasNative()

/** Compiles groups of programs to C, each as one file, and compares each program with its WebAssembly. */
const assertSameBits = (groups: ReadonlyArray<ReadonlyArray<ProgramSpec>>, lanes: 4 | 8 | 16): Promise<void> =>
  withFolder((caches) =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const native = yield* Native.make({ caches, lanes })
          for (const group of groups) {
            const specs = Object.fromEntries(group.map((spec, i) => [`program${i}`, spec]))
            const programs = yield* native.compileAll(specs)
            for (const [name, spec] of Object.entries(specs)) {
              const difference = firstDifference(programs[name], compileWith(Wasm.layer, spec), spec, identical)
              assert.isUndefined(difference, spec.name)
            }
          }
        }),
      ),
    ),
  )

describe.skipIf(!isAvailable)("programs that a C compiler has made compute the bits of WebAssembly", () => {
  for (const lanes of [4, 8, 16] as const)
    it(`of any graph, for results, gradients and states, in every run, with vectors of ${32 * lanes} bits`, async () => {
      const graphs = choices.map((picked) => grow(picked, { bytes: true }))
      const specs = fc.sample(graphs, tries(5))
      // Programs of a group share the states of the same name, so each of these is a group of its own.
      const groups = specs.map((spec) => [spec])
      await assertSameBits(groups, lanes)
    })

  it("of every op and its gradients, in any size", async () => {
    const specs: Array<ProgramSpec> = []
    checkEveryOp([35, 35], 1, (spec) => void specs.push(spec))
    // The compiler reads the definitions of vectors once for each file.
    const groups = Array.from({ length: Math.ceil(specs.length / 16) }, (_, i) => specs.slice(16 * i, 16 * i + 16))
    await assertSameBits(groups, 16)
  })
})
