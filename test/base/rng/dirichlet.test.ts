import { assert, describe, it } from "@effect/vitest"
import { dirichlet } from "../../../src/base/rng/dirichlet.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const meansOf = (alpha: number, count: number) => {
  const draws = 4000
  const out = new Float64Array(count + 1).fill(7)
  let [first, square] = [0, 0]
  for (let draw = 0; draw < draws; draw++) {
    dirichlet(stream(1, "dirichlet", draw), alpha, out, count)
    assert.closeTo(
      out.subarray(0, count).reduce((sum, one) => sum + one, 0),
      1,
      1e-12,
    )
    assert.isAtLeast(Math.min(...out), 0)
    first += out[0] / draws
    square += out[1] ** 2 / draws
  }
  assert.strictEqual(out[count], 7)
  return { first, square }
}

describe("numbers from a Dirichlet distribution", () => {
  for (const [alpha, count] of [
    [0.3, 9],
    [1, 2],
    [5, 4],
  ]) {
    it(`have its mean and its variance, for α = ${alpha} and ${count} numbers`, () => {
      const { first, square } = meansOf(alpha, count)
      assert.closeTo(first, 1 / count, 0.02)
      // E[x²] = α (α + 1) / (n α (n α + 1))
      assert.closeTo(square, (alpha * (alpha + 1)) / (count * alpha * (count * alpha + 1)), 0.02)
    })
  }

  it("are probabilities also for an α at which all draws are too small for a number", () => {
    const out = new Float64Array(2)
    dirichlet(stream(1), 1e-9, out, 2)
    assert.closeTo(out[0] + out[1], 1, 1e-12)
  })
})
