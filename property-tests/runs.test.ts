import * as fc from "fast-check"
import { describe, it } from "vitest"
import { followsModel, turns } from "./support/runsLaw.ts"
import { tries } from "../test/house/tries.ts"

describe("runs that are added, deleted, broken, repaired and evicted in any order", () => {
  it.for([1, 2, 4])("keep indices, queue, progress and hooks as a simple model says, on %i ranks", (ranks) =>
    fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), turns(60), (maxRuns, all) => followsModel(ranks, maxRuns, all)),
      { numRuns: tries(10) },
    ),
  )
})
