import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { interquartileMean } from "../../src/base/statistics/resampling.ts"
import { probabilityOfImprovement } from "../../src/base/statistics/unpaired.ts"
import { compareGroup, normalisedScores, profileOf } from "../../scripts/scores/groups.ts"
import { comparePeers, stepAt } from "../../scripts/scores/peers.ts"
import type { ScoreResult } from "../../scripts/scores/ScoreResult.ts"

const result = (algorithm: string, env: string, seed: number, score: number): ScoreResult => ({
  trainer: "effect-rl",
  algorithm,
  env,
  seed,
  steps: 100,
  episodes: 10,
  evaluation: [score],
  training: score,
  curve: [{ step: 50, value: 0 }, { step: 100, value: score }], // prettier-ignore
  seconds: 20,
  cpu_seconds: 10,
  machine: "a machine",
  command: "npx effect run",
  version: "0",
  digest: null,
})

const group = { name: "two", title: "Two envs", algorithms: ["a", "b", "c"], envs: ["x", "y"] }

const resultsOf = (scores: Readonly<Record<string, Readonly<Record<string, ReadonlyArray<number>>>>>) =>
  Object.entries(scores).flatMap(([algorithm, envs]) =>
    Object.entries(envs).flatMap(([env, some]) => some.map((score, seed) => result(algorithm, env, seed, score))),
  )

const scores = fc.array(fc.integer({ min: -100, max: 100 }), { minLength: 2, maxLength: 6 })

describe("algorithms over several envs", () => {
  it("are compared by normalised scores, as the definitions say", () => {
    const all = resultsOf({ a: { x: [0, 10], y: [100, 300] }, b: { x: [5, 10], y: [200, 300] }, c: { x: [1] } })
    const comparison = compareGroup(group, all)
    assert.deepStrictEqual(
      comparison?.algorithms.map(({ algorithm, scores, mean }) => [algorithm, scores, mean.value]),
      [
        ["a", [[0, 1], [0, 1]], 0.5], // prettier-ignore
        ["b", [[0.5, 1], [0.5, 1]], 0.75], // prettier-ignore
      ],
    )
    // In each env, the pairs of a against b are 0 to 0.5, 0 to 1, 1 to 0.5 and 1 to 1: 1.5 of 4.
    assert.deepStrictEqual(
      comparison?.improvements.map(({ better, than, chance }) => [better, than, chance.value]),
      [["a", "b", 0.375]],
    )
  })

  it("need two of them, with two trainings in each env", () => {
    assert.isUndefined(compareGroup(group, resultsOf({ a: { x: [0, 10], y: [1, 3] }, b: { x: [5, 10], y: [2] } })))
  })

  it("have profiles that fall from the share above the lowest score to none", { tags: "slow" }, () => {
    fc.assert(
      fc.property(fc.array(scores, { minLength: 1, maxLength: 3 }), (strata) => {
        const [{ scores: normalised }] = normalisedScores([{ algorithm: "a", scores: strata }])
        const profile = profileOf(normalised)
        const all = normalised.flat()
        assert.strictEqual(profile[0].value, all.filter((score) => score > 0).length / all.length)
        assert.strictEqual(profile[20].value, 0)
        for (const [index, { value, low, high }] of profile.entries()) {
          assert.isTrue(low <= value + 1e-9 && value <= high + 1e-9)
          assert.isTrue(index === 0 || value <= profile[index - 1].value)
        }
        // The area below the profile is the mean score, as far as the thresholds tell.
        const area = profile.reduce((sum, { value }) => sum + value / 20, 0)
        const mean = all.reduce((sum, score) => sum + score, 0) / all.length
        assert.isTrue(area >= mean - 1e-9 && area <= mean + 0.05 + 1e-9)
      }),
      { numRuns: 10 },
    )
  })

  it("have scores that are normalised in each env, whatever its scale", () => {
    fc.assert(
      fc.property(scores, scores, fc.integer({ min: 1, max: 9 }), fc.integer(), (one, other, factor, shift) => {
        const of = (change: (score: number) => number) =>
          normalisedScores([
            { algorithm: "a", scores: [one.map(change)] },
            { algorithm: "b", scores: [other.map(change)] },
          ]).map(({ scores: [values] }) => values)
        const [before, after] = [of((score) => score), of((score) => factor * score + (shift % 1000))]
        assert.closeTo(interquartileMean(before[0]), interquartileMean(after[0]), 1e-9)
        const improvement = ([left, right]: ReadonlyArray<ReadonlyArray<number>>) =>
          probabilityOfImprovement({ left, right })
        assert.strictEqual(improvement(before), improvement([one, other]))
      }),
    )
  })
})

describe("a row beside Stable-Baselines3", () => {
  it("has the time until the score that both curves reach", () => {
    const own = [result("a", "x", 1, 100), result("a", "x", 2, 100)]
    const peers = [result("a", "x", 1, 50), result("a", "x", 2, 50)].map((one) => ({ ...one, cpu_seconds: 40 }))
    const { difference, score, ownSeconds, peerSeconds } = comparePeers({ own, peers })
    assert.deepStrictEqual([difference.value, score], [50, 45])
    // Our curve is at 45 after 72.5 of 100 steps, theirs after 95.
    assert.closeTo(ownSeconds, 7.25, 1e-9)
    assert.closeTo(peerSeconds, 38, 1e-9)
  })

  it("has a step at which its curve reaches a score: the first one, or the last if it never does", () => {
    const curve = [{ step: 10, value: 0 }, { step: 20, value: 10 }, { step: 30, value: 5 }] // prettier-ignore
    assert.deepStrictEqual(
      [-1, 0, 5, 10, 11].map((score) => stepAt(curve, score)),
      [10, 10, 15, 20, 30],
    )
  })
})
