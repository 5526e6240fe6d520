import * as fc from "fast-check"
import { gradients } from "../../src/tensor/graph/gradients.ts"
import * as G from "../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../src/tensor/graph/Program.ts"
import { tries } from "../../test/house/tries.ts"
import { opCases } from "./opCases.ts"

/** Checks a program of each op and its gradients, each in `numRuns` random sizes of at most `most`. */
export const checkEveryOp = (
  [mostM, mostN]: readonly [number, number],
  numRuns: number,
  check: (spec: ProgramSpec) => void,
): void => {
  for (const [name, { build, noSlope, shapes }] of Object.entries(opCases)) {
    const property = fc.property(fc.integer({ min: 1, max: mostM }), fc.integer({ min: 1, max: mostN }), (m, n) => {
      const inputs = Object.fromEntries(shapes(m, n).map((shape, i) => [`x${i}`, G.input(`x${i}`, shape)]))
      const y = build(...Object.values(inputs))
      const slopes = noSlope === true ? [] : gradients(G.mean(G.square(y)), Object.values(inputs))
      const outputs = Object.fromEntries([y, ...slopes].map((tensor, i) => [`y${i}`, tensor]))
      check({ name, inputs, state: {}, outputs })
    })
    fc.assert(property, { numRuns: tries(numRuns) })
  }
}
