import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { diff, diffOfRuns, leaves } from "../../../src/run/find/diff.ts"

const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null), fc.array(fc.integer()))
const name = fc.stringMatching(/^[a-z_]{1,5}$/).filter((key) => key !== "__proto__")
const config = fc.dictionary(name, fc.oneof(leaf, fc.dictionary(name, leaf, { noNullPrototype: true })), {
  noNullPrototype: true,
})

describe("the difference of two configs", () => {
  it("is said key by key", () => {
    const left = { env: "CartPole-v1", algorithm: { name: "ppo", clip: 0.2, hidden: [64, 64] }, seed: 1 }
    const right = { env: "CartPole-v1", algorithm: { name: "a2c", hidden: [64] }, seed: 1, workers: null }
    assert.deepEqual(diff(left, right), [
      { key: "algorithm.name", left: "ppo", right: "a2c" },
      { key: "algorithm.clip", left: 0.2 },
      { key: "algorithm.hidden", left: [64, 64], right: [64] },
      { key: "workers", right: null },
    ])
  })

  it("compares runs of a trainer key by key, whatever their names are", () => {
    const of = (runs: object) => ({ kind: "multirun", seed: 1, runs })
    const [letters, words] = [{ letters: { lr: 0.1, steps: 3 } }, { words: { lr: 0.2, steps: 3 } }]
    assert.deepEqual(diffOfRuns(of(letters), of(words)), [
      { key: "runs", left: "letters", right: "words" },
      { key: "runs.*.lr", left: 0.1, right: 0.2 },
    ])
    assert.deepEqual(diffOfRuns(of(letters), of({ letters: { lr: 0.2, steps: 3 } })), [
      { key: "runs.letters.lr", left: 0.1, right: 0.2 },
    ])
    assert.deepEqual(
      diffOfRuns(of(letters), of({ ...letters, ...words })),
      diff(of(letters), of({ ...letters, ...words })),
    )
  })

  it("is nothing between equal ones, in whatever order their keys are", () => {
    fc.assert(
      fc.property(config, (one) => {
        assert.deepEqual(diff(one, Object.fromEntries(Object.entries(one).reverse())), [])
      }),
    )
  })

  it("is the other way round from the other side", () => {
    fc.assert(
      fc.property(config, config, (one, other) => {
        const keys = (found: ReturnType<typeof diff>) => found.map(({ key }) => key).sort()
        assert.deepEqual(keys(diff(one, other)), keys(diff(other, one)))
        for (const { key, ...sides } of diff(one, other)) {
          assert.strictEqual("left" in sides, leaves(one).has(key))
          assert.strictEqual("right" in sides, leaves(other).has(key))
        }
      }),
    )
  })

  it("knows numbers that JSON doesn't", () => {
    assert.deepEqual(diff({ a: NaN, b: Infinity }, { a: NaN, b: null }), [{ key: "b", left: Infinity, right: null }])
  })
})
