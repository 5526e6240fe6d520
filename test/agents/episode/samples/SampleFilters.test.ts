import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import * as SampleFilters from "../../../../src/agents/episode/samples/SampleFilters.ts"
import * as Samples from "../../../../src/agents/episode/samples/samples.ts"
import { episodeOf, scripted, withTools } from "../support.ts"

const answers = [{ act: "go" }, { fail: "what?" }, { act: "go" }]

describe("filters of samples", () => {
  it.effect("choose turns, and count what each of them leaves out", () =>
    Effect.gen(function* () {
      const agent = scripted((index) => answers[Math.min(index, 2)])
      const rollout = yield* SingleAgent.play(agent, episodeOf(withTools(3)), { maxSteps: 3 })
      const [first, failed, last] = yield* Samples.of([rollout])
      const cut = { ...first, incomplete: true, truncated: true, credit: -1 }
      const kept = (filter: SampleFilters.SampleFilter) => [first, failed, cut].map(filter)
      assert.deepStrictEqual(kept(SampleFilters.parsed), [true, false, true])
      assert.deepStrictEqual(kept(SampleFilters.complete), [true, true, false])
      assert.deepStrictEqual(kept(SampleFilters.notTruncated), [true, true, false])
      assert.deepStrictEqual(kept(SampleFilters.envTurns), [true, false, true])
      assert.deepStrictEqual(kept(SampleFilters.agentTurns), [false, true, false])
      assert.isFalse(SampleFilters.positive(cut))
      const { parsed, complete, not, any, all, everything } = SampleFilters
      assert.deepStrictEqual(kept(all(parsed, complete)), [true, false, false])
      assert.deepStrictEqual(kept(any(not(parsed), not(complete))), [false, true, true])
      assert.deepStrictEqual(kept(everything), [true, true, true])

      const both = { ...failed, incomplete: true }
      const { samples, counts } = SampleFilters.select([first, failed, cut, both, last], { complete, parsed })
      assert.deepStrictEqual(samples, [first, last])
      assert.deepStrictEqual(counts, { complete: 2, parsed: 1, kept: 2 })
    }),
  )
})
