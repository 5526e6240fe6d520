import { assert, describe, it } from "vitest"
import { stream, type Stream } from "../../../src/base/rng/Rng.ts"

const take = (count: number, draw: () => number): ReadonlyArray<number> => Array.from({ length: count }, draw)

const countsOf = (size: number, count: number, draw: () => number): ReadonlyArray<number> => {
  const counts = new Array<number>(size).fill(0)
  for (let index = 0; index < count; index++) counts[draw()]++
  return counts
}

/** Pearson's statistic against expected shares, less its mean, in its standard deviations. */
const surprise = (counts: ReadonlyArray<number>, shares?: ReadonlyArray<number>): number => {
  const total = counts.reduce((a, b) => a + b)
  const freedom = counts.length - 1
  const statistic = counts.reduce((sum, count, index) => {
    const expected = total * (shares?.[index] ?? 1 / counts.length)
    return sum + (count - expected) ** 2 / expected
  }, 0)
  return (statistic - freedom) / Math.sqrt(2 * freedom)
}

const moments = (count: number, draw: () => number) => {
  const numbers = take(count, draw)
  const mean = numbers.reduce((a, b) => a + b) / count
  const central = (power: number): number => numbers.reduce((sum, x) => sum + (x - mean) ** power, 0) / count
  const variance = central(2)
  return { mean, variance, skew: central(3) / variance ** 1.5, kurtosis: central(4) / variance ** 2 }
}

describe("stream", () => {
  it("always has the same numbers", () => {
    // Any change here changes every run that anybody has recorded.
    const random = stream(1, "env", 3, "episode", 17)
    assert.deepEqual(
      take(6, () => random.uint32()),
      [249277955, 4053953559, 1078310788, 1277133086, 2511113753, 3562255958],
    )
    assert.deepEqual(
      take(2, () => random.normal()),
      [0.4527498535272734, 1.2219845566661154],
    )
    assert.deepEqual([...random.permutation(new Int32Array(8))], [5, 1, 2, 7, 3, 0, 6, 4])
  })

  it("differs for paths that are easily confused", () => {
    const paths: ReadonlyArray<ReadonlyArray<string | number>> = [
      [],
      [""],
      ["", ""],
      [0],
      [0, 0],
      ["0"],
      [1],
      ["1"],
      [-1],
      ["-1"],
      ["a", "b"],
      ["ab"],
      ["b", "a"],
      ["ab", ""],
      ["", "ab"],
      ["a\0"],
      ["a"],
      ["a\0\0\0\0"],
      ["abcd", "e"],
      ["abcde"],
      ["abcd", 1],
      [1, 2],
      [12],
      [2, 1],
      [2 ** 32],
      [2 ** 32 + 1],
      [Number.MAX_SAFE_INTEGER],
      [Number.MAX_SAFE_INTEGER - 1],
      [Number.MIN_SAFE_INTEGER],
      ["é"],
      ["e\u0301"],
      ["🙂"],
      ["🙃"],
    ]
    const firsts = new Set(paths.map((path) => take(3, drawOf(stream(5, ...path))).join()))
    assert.strictEqual(firsts.size, paths.length)
  })

  it("uses all the bits of the seed", () => {
    const seeds = [0, 1, -1, 2 ** 31, 2 ** 32, 2 ** 32 + 1, 2 ** 52, 2 ** 53 - 1, 2 ** 53 - 2, -(2 ** 53) + 1]
    assert.strictEqual(new Set(seeds.map((seed) => take(2, drawOf(stream(seed))).join())).size, seeds.length)
    assert.deepEqual(take(4, drawOf(stream(-0, -0))), take(4, drawOf(stream(0, 0))))
  })

  it("rejects a seed or a part that is not a safe integer", () => {
    for (const odd of [0.5, NaN, Infinity, 2 ** 53]) {
      assert.throws(() => stream(odd), RangeError, `seed: expected a safe integer, found ${odd}`)
      assert.throws(() => stream(1, "a", odd), RangeError, `path: expected a safe integer, found ${odd}`)
      assert.throws(() => stream(1).child(odd), RangeError, "path")
    }
  })

  it("is independent of neighbouring streams", () => {
    // Words of a thousand streams whose paths differ by one: bits, and agreement with the next stream's.
    const words = Array.from({ length: 1000 }, (_, env) => take(64, drawOf(stream(1, "env", env))))
    let ones = 0
    let same = 0
    for (const [env, row] of words.entries()) {
      for (const [at, word] of row.entries()) {
        ones += bitCount(word)
        same += bitCount(~(word ^ words[(env + 1) % 1000][at]) >>> 0)
      }
    }
    const deviation = Math.sqrt(1000 * 64 * 32) / 2
    assert.isBelow(Math.abs(ones - 1000 * 64 * 16) / deviation, 4)
    assert.isBelow(Math.abs(same - 1000 * 64 * 16) / deviation, 4)
  })
})

const drawOf = (random: Stream) => (): number => random.uint32()

const bitCount = (word: number): number => word.toString(2).replaceAll("0", "").length

describe("Stream", () => {
  it("continues from any position, also from large ones", () => {
    const random = stream(3)
    for (const position of [0, 1, 5, 2 ** 31 - 1, 2 ** 32, 2 ** 34 + 3, 2 ** 52 + 2, Number.MAX_SAFE_INTEGER - 9]) {
      const expected = Array.from({ length: 6 }, (_, index) => stream(3).uint32At(position + index))
      random.position = position
      assert.strictEqual(random.position, position)
      assert.deepEqual(take(6, drawOf(random)), expected)
      assert.strictEqual(random.position, position + 6)
      assert.strictEqual(new Set(expected).size, 6)
    }
  })

  it("has different words where only the upper bits of the index differ", () => {
    const random = stream(3)
    const words = [0, 2 ** 32, 2 ** 33, 2 ** 34, 2 ** 35, 2 ** 52].map((index) => random.uint32At(index))
    assert.strictEqual(new Set(words).size, words.length)
  })

  it("rejects an invalid position", () => {
    const random = stream(3)
    for (const odd of [-1, 0.5, NaN, 2 ** 53]) {
      assert.throws(() => (random.position = odd), RangeError, `position: expected an integer from 0 on, found ${odd}`)
      assert.throws(() => random.uint32At(odd), RangeError)
      assert.throws(() => random.uniformAt(odd), RangeError)
    }
    assert.strictEqual(random.position, 0)
  })

  it("counts the words that each draw takes", () => {
    const random = stream(3)
    const used = (draw: () => unknown): number => {
      const before = random.position
      draw()
      return random.position - before
    }
    assert.strictEqual(
      used(() => random.uint32()),
      1,
    )
    assert.strictEqual(
      used(() => random.uniform()),
      1,
    )
    assert.strictEqual(
      used(() => random.uniformDouble()),
      2,
    )
    assert.strictEqual(
      used(() => random.between(1, 2)),
      2,
    )
    assert.strictEqual(
      used(() => random.normal()),
      2,
    )
    assert.strictEqual(
      used(() => random.gumbel()),
      2,
    )
    assert.strictEqual(
      used(() => random.categorical([1, 1])),
      2,
    )
    assert.strictEqual(
      used(() => random.integer(8)),
      1,
    )
    assert.strictEqual(
      used(() => random.fillNormal(new Float32Array(5))),
      10,
    )
    assert.strictEqual(
      used(() => random.child("a").uint32()),
      0,
    )
    assert.strictEqual(
      used(() => random.uint32At(99)),
      0,
    )
  })

  it("draws uniform numbers that are exact in float32, and doubles with 53 random bits", () => {
    const random = stream(4)
    for (let draw = 0; draw < 10_000; draw++) {
      const uniform = random.uniform()
      assert.isTrue(uniform >= 0 && uniform < 1 && Math.fround(uniform) === uniform)
      const double = random.uniformDouble()
      assert.isTrue(double >= 0 && double < 1)
    }
    assert.isTrue(take(1000, () => random.uniformDouble()).some((double) => Math.fround(double) !== double))
  })

  it("is uniform", () => {
    const random = stream(4, "uniform")
    assert.isBelow(Math.abs(surprise(countsOf(100, 100_000, () => Math.floor(random.uniform() * 100)))), 4)
    assert.isBelow(Math.abs(surprise(countsOf(100, 100_000, () => Math.floor(random.uniformDouble() * 100)))), 4)
    // Successive draws, as pairs.
    assert.isBelow(
      Math.abs(surprise(countsOf(100, 100_000, () => (random.uint32() % 10) * 10 + (random.uint32() % 10)))),
      4,
    )
  })

  it("is normal", () => {
    const random = stream(4, "normal")
    const { mean, variance, skew, kurtosis } = moments(200_000, () => random.normal())
    assert.approximately(mean, 0, 4 / Math.sqrt(200_000))
    assert.approximately(variance, 1, 4 * Math.sqrt(2 / 200_000))
    assert.approximately(skew, 0, 4 * Math.sqrt(6 / 200_000))
    assert.approximately(kurtosis, 3, 4 * Math.sqrt(24 / 200_000))
    const counts = countsOf(4, 200_000, () => Math.min(3, Math.floor(Math.abs(random.normal()))))
    assert.isBelow(Math.abs(surprise(counts, [0.6826895, 0.2718102, 0.0428005, 0.0026998])), 4)
  })

  it("is Gumbel", () => {
    const random = stream(4, "gumbel")
    const { mean, variance } = moments(200_000, () => random.gumbel())
    assert.approximately(mean, 0.5772156649, (4 * 1.2825) / Math.sqrt(200_000))
    assert.approximately(variance, Math.PI ** 2 / 6, 0.04)
  })

  it("draws integers without bias, even where a remainder would prefer half of them", () => {
    const random = stream(4, "integer")
    for (const n of [1, 2, 3, 7, 10, 1000]) {
      const counts = countsOf(n, 100_000, () => random.integer(n))
      assert.strictEqual(counts.length, n)
      if (n > 1) assert.isBelow(Math.abs(surprise(counts)), 4, `n = ${n}`)
    }
    // A remainder would draw the lower half of these twice as often; the upper half of a product, each third one.
    const n = 3 * 2 ** 30
    assert.isBelow(Math.abs(surprise(countsOf(2, 100_000, () => (random.integer(n) < n / 2 ? 0 : 1)))), 4)
    assert.isBelow(Math.abs(surprise(countsOf(3, 100_000, () => random.integer(n) % 3))), 4)
  })

  it("draws integers below any n up to 2³², and rejects other n", () => {
    const random = stream(4, "wide")
    const wide = take(1000, () => random.integer(2 ** 32))
    assert.isTrue(Math.max(...wide) > 0.99 * 2 ** 32 && Math.min(...wide) < 0.01 * 2 ** 32)
    for (const odd of [0, -1, 1.5, NaN, 2 ** 32 + 1, Infinity])
      assert.throws(() => random.integer(odd), RangeError, "integer")
  })

  it("stays between its bounds, and below the upper one", () => {
    const random = stream(4, "between")
    const low = 1
    const high = 1 + 2 * Number.EPSILON
    for (let draw = 0; draw < 1000; draw++) {
      const value = random.between(low, high)
      assert.isTrue(value >= low && value < high)
    }
    assert.approximately(moments(50_000, () => random.between(-3, 5)).mean, 1, 0.05)
  })

  it("draws categories by their probabilities, and never one with probability 0", () => {
    const random = stream(4, "categorical")
    const shares = [0.1, 0, 0.6, 0.25, 0.05, 0]
    const counts = countsOf(6, 100_000, () => random.categorical(shares))
    assert.strictEqual(counts[1] + counts[5], 0)
    const possible = [0, 2, 3, 4]
    assert.isBelow(
      Math.abs(
        surprise(
          possible.map((index) => counts[index]),
          possible.map((index) => shares[index]),
        ),
      ),
      4,
    )
    // Weights that add up to something else count by their shares.
    const weighed = countsOf(2, 30_000, () => random.categorical(Float32Array.of(30, 10)))
    assert.isBelow(Math.abs(surprise(weighed, [0.75, 0.25])), 4)
  })

  it("rejects probabilities without a positive, finite sum", () => {
    const random = stream(4)
    for (const odd of [[], [0, 0], [NaN, 1], [Infinity, 1]]) {
      assert.throws(
        () => random.categorical(odd),
        RangeError,
        "categorical: expected probabilities with a positive, finite sum",
      )
    }
  })

  it("shuffles without bias", () => {
    const random = stream(4, "permutation")
    const out = new Int32Array(4)
    const counts = countsOf(24, 48_000, () => {
      random.permutation(out)
      // The index of this order among all 24.
      return [...out.keys()].reduce((rank, at) => {
        const smaller = [...out.subarray(at + 1)].filter((other) => other < out[at]).length
        return rank * (out.length - at) + smaller
      }, 0)
    })
    assert.isBelow(Math.abs(surprise(counts)), 4)
  })

  it("shuffles by draws of `integer`, and draws a word anew that would cause a bias", () => {
    const count = 200_000
    const drawer = stream(4, "large")
    const expected = new Int32Array(count)
    for (let index = 0; index < count; index++) {
      const other = drawer.integer(index + 1)
      expected[index] = expected[other]
      expected[other] = index
    }
    const random = stream(4, "large")
    assert.deepEqual(random.permutation(new Int32Array(count)), expected)
    assert.strictEqual(random.position, drawer.position)
    assert.isAbove(random.position, count)
  })

  it("rejects a range outside of the array", () => {
    const random = stream(4)
    for (const [start, end] of [
      [-1, 2],
      [3, 2],
      [0, 5],
      [NaN, 2],
    ]) {
      assert.throws(() => random.fillUniform(new Float32Array(4), start, end), RangeError, "fill")
      assert.throws(() => random.fillNormal(new Float32Array(4), start, end), RangeError, "fill")
    }
    assert.strictEqual(random.position, 0)
  })
})
