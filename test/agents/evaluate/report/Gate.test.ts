import { assert, describe, it } from "vitest"
import type { ScoreDirection } from "../../../../src/agents/evaluate/report/direction.ts"
import * as Gate from "../../../../src/agents/evaluate/report/Gate.ts"
import type { AgentReport, ComparisonReport } from "../../../../src/agents/evaluate/report/Report.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { paired } from "../../../../src/base/statistics/paired.ts"

const report = (
  mean: number,
  [low, high]: readonly [number, number],
  direction: ScoreDirection = "higher",
): { readonly agents: ReadonlyArray<AgentReport> } => ({
  agents: [
    {
      agent: "mine",
      tasks: 10,
      episodes: 10,
      failed: 0,
      scores: [{ scorer: "exact", direction, tasks: 10, mean, low, high }],
      tries: [],
      by: [],
      agreement: [],
      calls: 0,
      inputTokens: 0,
      outputTokens: 0,
      cost: null,
    },
  ],
})

const comparison = (
  difference: number,
  [low, high]: readonly [number, number],
  more: Partial<ComparisonReport> = {},
): ReadonlyArray<ComparisonReport> => [
  {
    left: "mine (before)",
    right: "mine",
    scorer: "exact",
    direction: "higher",
    tasks: 10,
    leftMean: 0.5,
    rightMean: 0.5 + difference,
    difference,
    low,
    high,
    better: 1,
    worse: 1,
    permutationP: 1,
    signP: 1,
    test: "permutation",
    p: 0.01,
    ...more,
  },
]

describe("a limit of the mean", () => {
  const cases: ReadonlyArray<readonly [string, Parameters<typeof report>, number, boolean, strict: boolean]> = [
    ["is met by an equal mean", [0.8, [0.6, 0.9]], 0.8, true, false],
    ["is met apart from rounding", [0.7999999999999999, [0.6, 0.9]], 0.8, true, false],
    ["is missed by a lower mean", [0.79, [0.6, 0.9]], 0.8, false, false],
    ["is missed by an interval that begins below it", [0.85, [0.79, 0.9]], 0.8, false, true],
    ["is met by an interval that begins at it", [0.85, [0.8, 0.9]], 0.8, true, true],
    ["of a cost is met by a lower mean", [90, [50, 200], "lower"], 100, true, false],
    ["of a cost is missed by a higher mean", [101, [50, 200], "lower"], 100, false, false],
    ["of a cost is missed by an interval that ends above it", [90, [50, 101], "lower"], 100, false, true],
    ["of a cost is met by an interval that ends at it", [90, [50, 100], "lower"], 100, true, true],
    ["of a scorer without a direction is never met", [3, [2, 4], "none"], 1, false, false],
  ]
  it.for(cases)("%s", ([, of, limit, passed, strict]) => {
    const [outcome, ...others] = Gate.score(report(...of), { limit, strict })
    assert.deepEqual([outcome.passed, others], [passed, []], outcome.message)
  })

  it("is reported in one line, and missed by an agent without a score", () => {
    const messageOf = (...args: Parameters<typeof Gate.score>) => Gate.score(...args).map(({ message }) => message)
    const of = report(0.75, [0.6, 0.875])
    assert.deepEqual(messageOf(of, { limit: 0.8 }), ["mine: exact 0.75 (0.6 to 0.875), expected at least 0.8"])
    assert.deepEqual(messageOf(of, { limit: 0.8, scorer: "f1" }), ["mine: f1 scored no episode, expected at least 0.8"])
    assert.isFalse(Gate.score(of, { limit: 0.8, scorer: "f1" })[0].passed)
    assert.deepEqual(messageOf(of, { limit: 0.8, agents: ["other"] }), [])
    assert.include(messageOf(report(1, [1, 1], "none"), { limit: 1 })[0], "add direction: higher or lower")
  })
})

describe("a limit of the regression", () => {
  const lower = { direction: "lower" } as const
  const cases: ReadonlyArray<readonly [string, Parameters<typeof comparison>, boolean, strict: boolean]> = [
    ["is not exceeded if the interval reaches it", [-0.1, [-0.2, -0.02]], true, false],
    ["is exceeded if the whole interval is worse", [-0.1, [-0.2, -0.021]], false, false],
    ["is not exceeded by an improvement", [0.1, [0.05, 0.2]], true, false],
    ["is not ruled out if a part of the interval is worse", [0.05, [-0.03, 0.2]], false, true],
    ["is ruled out if no part of the interval is worse", [0, [-0.02, 0.2]], true, true],
    ["is ruled out by no difference at all", [0, [0, 0]], true, true],
    ["of a cost is exceeded if the whole interval is higher", [0.1, [0.021, 0.2], lower], false, false],
    ["of a cost is not exceeded by savings", [-0.1, [-0.2, -0.05], lower], true, false],
    ["of a cost is not ruled out if a part of the interval is higher", [0, [-0.2, 0.021], lower], false, true],
    ["of a scorer without a direction is never met", [0, [0, 0], { direction: "none" }], false, false],
    ["is not exceeded by a difference that is not significant", [-0.1, [-0.2, -0.021], { p: 0.0501 }], true, false],
    ["is not ruled out by a difference that is not significant", [-0.1, [-0.2, -0.021], { p: 0.0501 }], false, true],
    ["needs six tasks", [0, [0, 0], { tasks: 5 }], false, false],
    ["needs no more than six tasks", [0, [0, 0], { tasks: 6 }], true, false],
  ]
  it.for(cases)("%s", ([, of, passed, strict]) => {
    const [outcome, ...others] = Gate.regression(comparison(...of), { limit: 0.02, strict })
    assert.deepEqual([outcome.passed, others], [passed, []], outcome.message)
  })

  it("is reported in one line, with the agents and the difference", () => {
    const [{ message }] = Gate.regression(comparison(-0.1, [-0.2, -0.05]), { limit: 0.02 })
    assert.strictEqual(
      message,
      "mine: exact -0.1 (-0.2 to -0.05) against mine (before); a fall by more than 0.02 is shown",
    )
    const [strict] = Gate.regression(comparison(5, [2, 9], lower), { limit: 1, strict: true })
    assert.include(strict.message, "exact +5 (2 to 9) against mine (before); a rise by more")
    assert.deepEqual(Gate.regression(comparison(0, [0, 0]), { limit: 0, scorer: "f1" }), [])
    const [few] = Gate.regression(comparison(0, [0, 0], { tasks: 7 }), { limit: 0, confidence: 0.99 })
    assert.strictEqual(
      few.message,
      "mine: exact has a value on both sides for only 7 tasks; a regression can be shown with 8 or more",
    )
  })

  it("is missed by an agent that has no comparison", () => {
    const [mine, other, ...rest] = Gate.regression(comparison(0, [0, 0]), { limit: 0, agents: ["mine", "other"] })
    assert.deepEqual([mine.passed, rest], [true, []])
    assert.deepInclude(other, { agent: "other", scorer: "exact", passed: false, value: null, tasks: 0 })
    assert.strictEqual(other.message, "other: no task has a value of exact on both sides, expected a comparison")
    assert.lengthOf(Gate.regression([], { limit: 0, agents: ["mine"], scorer: "exact" }), 1)
  })

  const random = stream(11, "gates")
  /** The share of evaluations of `tasks` tasks that pass, if a task rises or falls by `size` with these chances. */
  const passing = (tasks: number, [rise, fall, size]: readonly [number, number, number], options: { limit: number; strict: boolean }) => {
    const evaluations = 400
    let passed = 0
    for (let at = 0; at < evaluations; at++) {
      const draws = Array.from({ length: tasks }, () => random.uniform())
      const before = new Map(draws.map((draw, task) => [String(task), draw < fall ? size : 0]))
      const after = new Map(draws.map((draw, task) => [String(task), draw > 1 - rise ? size : 0]))
      const result = paired(before, after)
      if (result === null) return assert.fail("there are no tasks")
      const [base] = comparison(0, [0, 0])
      const [outcome] = Gate.regression([{ ...base, ...result }], options)
      if (outcome.passed) passed++
    }
    return passed / evaluations
  } // prettier-ignore

  it("is rarely exceeded by chance, and rarely ruled out by chance", { tags: "slow" }, () => {
    for (const size of [1, 0.5]) {
      for (const tasks of [6, 9, 14]) {
        assert.isAtLeast(passing(tasks, [0.3, 0.3, size], { limit: 0, strict: false }), 0.95, `${tasks} tasks`)
        // Here, the real fall is twice the limit.
        assert.isAtMost(passing(tasks, [0, 0.2, size], { limit: 0.1 * size, strict: true }), 0.05, `${tasks} tasks`)
      }
    }
    assert.isAtMost(passing(14, [0, 0.9, 1], { limit: 0, strict: false }), 0.01, "a real fall is found")
    assert.isAtLeast(passing(60, [0.1, 0.1, 1], { limit: 0.25, strict: true }), 0.9, "a small change is ruled out")
  })
})
