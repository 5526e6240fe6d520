import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { multiplyHigh } from "../src/base/rng/Philox.ts"
import { stream, type PathPart, type Stream } from "../src/base/rng/Rng.ts"

const seed = fc.maxSafeInteger()
const part: fc.Arbitrary<PathPart> = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -3, max: 40 }),
  fc.string(),
  fc.string({ unit: "binary" }),
)
const path = fc.array(part, { maxLength: 5 })
const index = fc.oneof(fc.nat({ max: 300 }), fc.maxSafeNat())

const words = (random: Stream, count = 8): ReadonlyArray<number> => Array.from({ length: count }, () => random.uint32())

describe("randomness", () => {
  it("gives any word of a stream without the words before it", () => {
    fc.assert(
      fc.property(seed, path, fc.array(fc.nat({ max: 400 })), (seed, path, indices) => {
        const inOrder = words(stream(seed, ...path), 401)
        const random = stream(seed, ...path)
        for (const index of indices) {
          assert.strictEqual(random.uint32At(index), inOrder[index])
          assert.strictEqual(random.uniformAt(index), (inOrder[index] >>> 8) / 2 ** 24)
        }
      }),
    )
  })

  it("continues from a position as if it had never stopped", () => {
    fc.assert(
      fc.property(seed, path, index, index, (seed, path, position, elsewhere) => {
        fc.pre(position < Number.MAX_SAFE_INTEGER - 16)
        const random = stream(seed, ...path)
        random.position = elsewhere
        random.uint32()
        random.position = position
        const expected = Array.from({ length: 8 }, (_, offset) => stream(seed, ...path).uint32At(position + offset))
        assert.deepEqual(words(random), expected)
      }),
    )
  })

  it("does not depend on the order of draws from several streams", () => {
    fc.assert(
      fc.property(seed, path, path, fc.array(fc.boolean(), { maxLength: 40 }), (seed, one, other, turns) => {
        const streams = [stream(seed, ...one), stream(seed, ...other)]
        const drawn: ReadonlyArray<Array<number>> = [[], []]
        for (const turn of turns) drawn[Number(turn)].push(streams[Number(turn)].uint32())
        assert.deepEqual(drawn[0], words(stream(seed, ...one), drawn[0].length))
        assert.deepEqual(drawn[1], words(stream(seed, ...other), drawn[1].length))
      }),
    )
  })

  it("has a child for a path below it, whatever was drawn before", () => {
    fc.assert(
      fc.property(seed, path, path, fc.nat({ max: 9 }), (seed, above, below, draws) => {
        const parent = stream(seed, ...above)
        words(parent, draws)
        assert.deepEqual(words(parent.child(...below)), words(stream(seed, ...above, ...below)))
        for (const part of below)
          assert.strictEqual(parent.childUniformDouble(part), parent.child(part).uniformDouble())
      }),
    )
  })

  it("has different streams for different paths and seeds", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(seed, path), { minLength: 2, maxLength: 60 }), (addresses) => {
        const distinct = new Set(addresses.map(([seed, path]) => JSON.stringify([seed, path])))
        const streams = new Set(addresses.map(([seed, path]) => words(stream(seed, ...path), 4).join()))
        assert.strictEqual(streams.size, distinct.size)
      }),
    )
  })

  it("has a hundred thousand different streams for as many neighbouring paths", { tags: "slow" }, () => {
    const firsts = new Set<number>()
    for (let env = 0; env < 250; env++) {
      const parent = stream(1, "env", env, "episode")
      for (let episode = 0; episode < 400; episode++) {
        const child = parent.child(episode)
        firsts.add(child.uint32() * 2 ** 21 + (child.uint32() >>> 11))
      }
    }
    assert.strictEqual(firsts.size, 100_000)
  })

  it("fills an array with the numbers of single draws, from any position, and does not change the rest", () => {
    const range = fc.tuple(fc.nat({ max: 40 }), fc.nat({ max: 40 }), fc.nat({ max: 10 }))
    fc.assert(
      fc.property(
        seed,
        fc.nat({ max: 12 }),
        range,
        fc.constantFrom(Float32Array, Float64Array),
        (seed, from, [start, count, rest], Kind) => {
          for (const kind of ["uniform", "normal"] as const) {
            const [filled, single] = [new Kind(start + count + rest).fill(9), new Kind(start + count + rest).fill(9)]
            const [filler, drawer] = [stream(seed), stream(seed)]
            filler.position = from
            drawer.position = from
            if (kind === "uniform") filler.fillUniform(filled, start, start + count)
            else filler.fillNormal(filled, start, start + count)
            for (let at = start; at < start + count; at++) single[at] = drawer[kind]()
            assert.deepEqual(filled, single)
            assert.strictEqual(filler.position, drawer.position)
            assert.strictEqual(filler.uint32(), drawer.uint32())
          }
        },
      ),
    )
  })

  it("draws integers below n, and eventually all of them", () => {
    fc.assert(
      fc.property(seed, fc.integer({ min: 1, max: 2 ** 32 }), (seed, n) => {
        const random = stream(seed)
        for (let draw = 0; draw < 20; draw++) {
          const drawn = random.integer(n)
          assert.isTrue(Number.isInteger(drawn) && drawn >= 0 && drawn < n)
        }
      }),
    )
    fc.assert(
      fc.property(seed, fc.integer({ min: 1, max: 12 }), (seed, n) => {
        const random = stream(seed)
        assert.strictEqual(new Set(Array.from({ length: 40 * n }, () => random.integer(n))).size, n)
      }),
    )
  })

  it("makes permutations with every number once", () => {
    fc.assert(
      fc.property(seed, fc.nat({ max: 300 }), (seed, n) => {
        const out = stream(seed).permutation(new Int32Array(n).fill(-7))
        assert.deepEqual(
          [...out].sort((a, b) => a - b),
          Array.from({ length: n }, (_, at) => at),
        )
      }),
    )
  })

  it("draws finite normal and Gumbel numbers", () => {
    fc.assert(
      fc.property(seed, index, (seed, position) => {
        fc.pre(position < Number.MAX_SAFE_INTEGER - 100)
        const random = stream(seed)
        random.position = position
        for (let draw = 0; draw < 20; draw++) {
          assert.isBelow(Math.abs(random.normal()), 6.7)
          assert.isTrue(Number.isFinite(random.gumbel()))
        }
      }),
    )
  })

  it("multiplies words exactly", () => {
    const word = fc.integer({ min: 0, max: 2 ** 32 - 1 })
    fc.assert(
      fc.property(word, word, (a, b) => {
        assert.strictEqual(multiplyHigh(a, b) >>> 0, Number((BigInt(a) * BigInt(b)) >> 32n))
      }),
    )
  })
})
