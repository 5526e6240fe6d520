import { assert, describe, it } from "vitest"
import { make } from "../../../src/rl/env/RunningMoments.ts"

describe("running moments", () => {
  it("equal those of all rows, per column", () => {
    const moments = make(2, 0)
    moments.update(Float32Array.of(1, 10, 3, 30))
    moments.update(Float32Array.of(5, 50))
    assert.deepEqual([...moments.count], [3])
    assert.approximately(moments.mean[0], 3, 1e-12)
    assert.approximately(moments.mean[1], 30, 1e-12)
    assert.approximately(moments.variance[0], 8 / 3, 1e-12)
    assert.approximately(moments.variance[1], 800 / 3, 1e-9)
  })

  it("start from mean 0 and variance 1 with the weight of a ten-thousandth row", () => {
    const moments = make(1)
    assert.deepEqual([moments.mean[0], moments.variance[0], moments.count[0]], [0, 1, 1e-4])
    moments.update(Float32Array.of(1, 3))
    // Two sums of squares, and between their means 0 and 2.
    assert.approximately(moments.mean[0], (2 * 2) / 2.0001, 1e-12)
    assert.approximately(moments.variance[0], (1e-4 + 2 + (4 * 1e-4 * 2) / 2.0001) / 2.0001, 1e-12)
  })

  it("count only the rows of a mask", () => {
    const moments = make(1, 0)
    moments.update(Float32Array.of(1, 100, 3), Uint8Array.of(1, 0, 1))
    assert.deepEqual([moments.count[0], moments.mean[0], moments.variance[0]], [2, 2, 1])
    moments.update(Float32Array.of(9, 9, 9), new Uint8Array(3))
    assert.deepEqual([moments.count[0], moments.mean[0], moments.variance[0]], [2, 2, 1])
  })

  it("can be copied", () => {
    const from = make(1)
    from.update(Float32Array.of(4, 5))
    const to = make(1)
    to.copyFrom(from)
    from.update(Float32Array.of(9))
    assert.approximately(to.mean[0], 4.5, 1e-3)
  })

  it("keep a small variance at a large mean", () => {
    const moments = make(1, 0)
    for (let batch = 0; batch < 100; batch++) moments.update(Float64Array.of(1e9, 1e9 + 1, 1e9 + 2))
    assert.approximately(moments.variance[0], 2 / 3, 1e-6)
  })
})
