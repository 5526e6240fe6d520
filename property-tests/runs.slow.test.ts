import * as fc from "fast-check"
import { describe, it } from "vitest"
import { tries } from "../test/house/tries.ts"
import { followsModel, turns } from "./support/runsLaw.ts"

describe("runs that are added, deleted, broken, repaired and evicted in any order for 500 turns", () => {
  // The shorter law in runs.test.ts also tries 2 ranks.
  it.for([1, 4])("keep indices, queue, progress and hooks as a simple model says, on %i ranks", (ranks) =>
    fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), turns(500, 500), (maxRuns, all) =>
        followsModel(ranks, maxRuns, all),
      ),
      // A counterexample of this length shrinks for minutes; the printed seed repeats it.
      { numRuns: tries(2), endOnFailure: true },
    ),
  )
})
