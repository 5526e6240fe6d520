import { assert, describe, it } from "vitest"
import * as Returns from "../../../src/rl/returns/Returns.ts"

const inputs = {
  rewards: Float64Array.of(1, 2, 3, 4),
  values: Float64Array.of(8, 16, 32, 64),
  lastValues: Float64Array.of(128),
  terminated: Uint8Array.of(0, 1, 0, 0),
  gamma: 0.5,
  lambda: 0.5,
}

describe("Returns", () => {
  it("has three members with the names that configs use", () => {
    assert.deepEqual(Object.keys(Returns.members), ["GAE", "LAMBDA", "NSTEP"])
    for (const [name, member] of Object.entries(Returns.members)) assert.strictEqual(member.name, name)
  })

  it("computes targets by every member from one object", () => {
    const all = { ...inputs, horizon: 1 }
    assert.deepEqual(
      [...Returns.GAE(all)],
      [...Returns.gae(inputs)].map((advantage, t) => advantage + inputs.values[t]),
    )
    assert.deepEqual(Returns.LAMBDA(all), Returns.lambdaReturn(inputs))
    assert.deepEqual(Returns.NSTEP(all), Returns.nStep({ ...inputs, horizon: 1 }))
    assert.notDeepEqual(Returns.NSTEP(all), Returns.NSTEP(inputs))
  })

  it("writes targets to the array out", () => {
    for (const member of Object.values(Returns.members)) {
      const out = new Float64Array(4)
      assert.strictEqual(member({ ...inputs, out }), out)
      assert.deepEqual(out, member(inputs))
    }
  })

  it("includes the last reward by GAE, as rlib does", () => {
    assert.deepEqual(Returns.GAE({ ...inputs, tail: "rlib" }), Returns.GAE(inputs))
    assert.strictEqual(Returns.LAMBDA({ ...inputs, tail: "rlib" })[3], 128)
    assert.strictEqual(Returns.NSTEP({ ...inputs, tail: "rlib" })[3], 128)
  })
})
