import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { bootstrap, meanOf } from "../../../src/base/statistics/resampling.ts"
import { promptsComparisons } from "../../../src/command/promptsComparisons.ts"
import { makePromptsReports, promptsReport } from "../../../src/command/ui/promptsReport.ts"
import { summaryOf } from "../../../src/command/ui/RunSummary.ts"
import { unplacedEntry } from "../../../src/run/find/RunEntry.ts"
import { over } from "../../../src/run/RunReader.ts"
import { memorySource } from "../../run/read/memorySource.ts"

const candidate = (text: string, parents: ReadonlyArray<number>, scores: ReadonlyArray<number>) => ({
  texts: { system_prompt: text },
  parents,
  scores,
  nextText: 0,
  foundAfter: 4 * parents.length,
})
const file = (candidates: ReadonlyArray<object>, best = 0) =>
  JSON.stringify({
    best,
    candidates,
    iterations: [],
    metricCalls: 12,
    tokens: 5,
    merges: { due: 0, accepted: 0, isNext: false, triplets: [], origins: [] },
  })

describe("the candidates on a run's page", () => {
  it("have their scores with intervals, and the number of tasks on which none is better", () => {
    const report = promptsReport(file([candidate("a", [], [0, 1, 0]), candidate("b", [0], [1, 1, 0])], 1))
    assert.deepInclude(report, { best: 1, metricCalls: 12, iterations: 0, left: 0 })
    assert.deepStrictEqual(
      report?.candidates.map(({ mean, inFront, tasks, parents }) => [Number(mean.toFixed(3)), inFront, tasks, parents]),
      [
        [0.333, 2, 3, []],
        [0.667, 3, 3, [0]],
      ],
    )
  })

  it("are compared on validation and test tasks when the run is finished", () => {
    const compared = {
      tasks: 2,
      seed: { mean: 0.5, low: 0, high: 1 },
      best: { mean: 1, low: 0.2, high: 1 },
      difference: { tasks: 2, difference: 0.5, low: -0.3, high: 0.9 },
    }
    const setsIn = (metrics: unknown) => promptsComparisons(metrics).map(({ set, difference }) => [set, difference])
    const difference = { mean: 0.5, low: -0.3, high: 0.9 }
    const of = (test_scores: unknown) => setsIn({ validation_scores: compared, test_scores })
    assert.deepStrictEqual(of(compared), [
      ["validation", difference],
      ["test", difference],
    ])
    assert.deepStrictEqual(of(null), [["validation", difference]])
    // Whoever sends a run may have written anything into its files.
    assert.deepStrictEqual(of({ ...compared, seed: { mean: "<b>", low: 0, high: 1 } }), [])
    assert.deepStrictEqual(setsIn({ validation_scores: null }), [])
  })

  it("may be more than a call may have arguments", { tags: "slow" }, () => {
    const many = Array.from({ length: 130_000 }, (_, index) => candidate("", index === 0 ? [] : [0], [index % 2]))
    const report = promptsReport(file(many))
    assert.deepInclude(report, { left: 129_500 })
    assert.deepStrictEqual(
      report?.candidates.slice(0, 3).map(({ inFront }) => inFront),
      [0, 1, 0],
    )
  })

  it("have intervals of few samples, or normal ones for many tasks, so that the page does not wait", () => {
    const scores = Array.from({ length: 300 }, (_, task) => (task % 10) / 10)
    const of = (values: ReadonlyArray<number>) => promptsReport(file([candidate("a", [], values)]))?.candidates[0]
    const { mean = NaN, low, high } = of(scores) ?? {}
    const half = (1.959964 * Math.sqrt((300 * 0.0825) / 299)) / Math.sqrt(300)
    assert.closeTo(low ?? NaN, mean - half, 1e-6)
    assert.closeTo(high ?? NaN, mean + half, 1e-6)
    const few = of(scores.slice(0, 20))
    const [lowest, highest] = bootstrap(scores.slice(0, 20), meanOf, { resamples: 200 })
    assert.deepInclude(few, { low: lowest, high: highest })
  })

  it("are left out if the file is missing or damaged", () => {
    const seed = candidate("a", [], [0, 1])
    assert.isNull(promptsReport(undefined))
    for (const text of [
      "{",
      "{}",
      file([]),
      file([seed], 1),
      file([seed], -1),
      file([candidate("a", [0], [0, 1])]),
      file([seed, candidate("b", [2], [1, 1]), candidate("c", [1], [1, 1])]),
      file([seed, candidate("b", [0], [1])]),
    ])
      assert.isNull(promptsReport(text), text)
  })

  it.effect("are computed again only if their file has changed", () =>
    Effect.gen(function* () {
      const texts = [file([candidate("a", [], [0.5, 1])]), file([candidate("a", [], [0, 1])])]
      const reads: Array<string> = []
      let version = 0
      const read = makePromptsReports({
        stamp: (path) => Effect.sync(() => `${path} ${version}`),
        text: (path) => Effect.sync(() => (reads.push(path), texts[version])),
      })
      const first = yield* read("run")
      assert.strictEqual(yield* read("run"), first)
      assert.deepStrictEqual(reads, ["run/candidates.json"])
      version = 1
      assert.strictEqual((yield* read("run"))?.candidates[0].mean, 0.5)
      yield* read("other")
      assert.lengthOf(reads, 3)
    }),
  )

  it.effect("give the row of their run the score of the best one", () =>
    Effect.gen(function* () {
      const candidates = file([candidate("a", [], [0, 1]), candidate("b", [0], [1, 1]), candidate("c", [0], [0, 0])], 1)
      const source = memorySource({ "run/config.yaml": "kind: prompts\n", "run/candidates.json": candidates })
      const summary = yield* summaryOf(over(source)(unplacedEntry("run")), { hasOnlyRollouts: false })
      assert.deepInclude(summary, { score: 1, scoreStd: 0 })
    }),
  )
})
