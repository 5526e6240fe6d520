import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { Record } from "effect"
import { descriptionOf } from "../src/tensor/graph/descriptionOf.ts"
import { simplify } from "../src/tensor/graph/simplify.ts"
import type { ProgramSpec } from "../src/tensor/graph/Program.ts"
import { compileAll, type CompiledModule } from "../src/tensor/graph/wasm/compile.ts"
import { choices, grow } from "./support/randomGraph.ts"
import { tries } from "../test/house/tries.ts"

const groups = fc.dictionary(fc.constantFrom("act", "update"), choices, { minKeys: 1 })

const grown = (picked: Readonly<Record<string, Parameters<typeof grow>[0]>>): Record<string, ProgramSpec> =>
  Record.map(picked, (one) => grow(one, { bytes: true }))

const compiled = (specs: Readonly<Record<string, ProgramSpec>>): CompiledModule =>
  compileAll(Record.map(specs, simplify))

describe("the description of programs", () => {
  it("is the same for the same programs made again, and so is their module", () => {
    fc.assert(
      fc.property(groups, (picked) => {
        const [one, other] = [grown(picked), grown(picked)]
        assert.strictEqual(descriptionOf(one), descriptionOf(other))
        assert.deepEqual(compiled(one), compiled(other))
      }),
      { numRuns: tries(40) },
    )
  })

  it("differs where the modules differ", () => {
    fc.assert(
      fc.property(groups, groups, (left, right) => {
        const [one, other] = [grown(left), grown(right)]
        if (descriptionOf(one) === descriptionOf(other)) assert.deepEqual(compiled(one), compiled(other))
      }),
      { numRuns: tries(40) },
    )
  })
})
