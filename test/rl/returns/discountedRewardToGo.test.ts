import { assert, describe, it } from "vitest"
import { discountedRewardToGo } from "../../../src/rl/returns/discountedRewardToGo.ts"

describe("discountedRewardToGo", () => {
  it("sums up the rewards to the end of the episode, for each env", () => {
    const inputs = {
      rewards: Float64Array.of(1, 10, 2, 20, 4, 40, 8, 80),
      terminated: Uint8Array.of(0, 0, 1, 0, 0, 0, 0, 1),
      truncated: Uint8Array.of(0, 1, 0, 0, 0, 0, 0, 0),
      numEnvs: 2,
      gamma: 0.5,
    }
    assert.deepEqual([...discountedRewardToGo(inputs)], [2, 10, 2, 20 + 20 + 20, 8, 80, 8, 80])
    const out = new Float64Array(8)
    assert.strictEqual(discountedRewardToGo({ ...inputs, out }), out)
    assert.deepEqual(out, discountedRewardToGo(inputs))
  })

  it("returns an array of the rewards' kind", () => {
    const inputs = { terminated: new Uint8Array(1), numEnvs: 1, gamma: 1 }
    assert.instanceOf(discountedRewardToGo({ ...inputs, rewards: Float32Array.of(1) }), Float32Array)
    assert.instanceOf(discountedRewardToGo({ ...inputs, rewards: Float64Array.of(1) }), Float64Array)
  })

  it("rejects arrays whose lengths do not fit", () => {
    const rewards = new Float32Array(6)
    const terminated = new Uint8Array(6)
    for (const numEnvs of [4, 0, -0.5]) {
      const refused = () => discountedRewardToGo({ rewards, terminated, numEnvs, gamma: 1 })
      assert.throws(refused, RangeError, `rewards: expected a multiple of ${numEnvs} envs, found 6 rows`)
    }
    const short = { rewards, terminated: new Uint8Array(5), numEnvs: 2, gamma: 1 }
    assert.throws(() => discountedRewardToGo(short), RangeError, "terminated: expected 6 rows, found 5")
  })
})
