import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { rolloutsOf, trajectoryOf } from "../src/agents/interchange/atif/readAtif.ts"
import { trajectoriesOf } from "../src/agents/interchange/atif/writeAtif.ts"
import type { Rollout } from "../src/agents/episode/Rollout.ts"
import { tries } from "../test/house/tries.ts"
import { play, world } from "./support/episodes.ts"

const byId = (rollouts: ReadonlyArray<Rollout>): ReadonlyArray<Rollout> =>
  rollouts.toSorted((one, other) => (one.id < other.id ? -1 : 1))
const unused = { id: "unused", type: "unused", reward: null }

describe("ATIF", () => {
  it("keeps everything of any rollouts", () =>
    fc.assert(
      fc.asyncProperty(world, fc.boolean(), (made, hasTokens) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const { rollouts } = yield* play(made, hasTokens)
            const text = JSON.stringify(trajectoriesOf(rollouts, { version: "1" }))
            const values: ReadonlyArray<unknown> = JSON.parse(text)
            const read = yield* Effect.forEach(values, (value) => trajectoryOf(value, "trajectory.json"))
            const again = (yield* Effect.forEach(read, (trajectory) => rolloutsOf(trajectory, unused))).flat()
            assert.deepStrictEqual(byId(again), byId(JSON.parse(JSON.stringify(rollouts))))
          }),
        ),
      ),
      { numRuns: tries(200) },
    ))
})
