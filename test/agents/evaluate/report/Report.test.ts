import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as Report from "../../../../src/agents/evaluate/report/Report.ts"
import { csv, type EpisodeRow } from "../../../../src/agents/evaluate/rows.ts"
import * as Scorer from "../../../../src/agents/evaluate/Scorer.ts"

const row = (agent: string, task: number, value: number | null, more: Partial<EpisodeRow> = {}): EpisodeRow => ({
  agent,
  episode_index: task + 1,
  task,
  repeat: 0,
  env_id: `task-${task}`,
  env_type: "test",
  metadata: { topic: task < 2 ? "low" : "high" },
  answer: "a",
  target: "b",
  score: value ?? 0,
  scores: value === null ? {} : { exact: value },
  steps: 1,
  terminated: true,
  truncated: false,
  truncation_reason: null,
  calls: 2,
  retries: 0,
  input_tokens: 10,
  output_tokens: 5,
  cost: 0.5,
  duration_ms: 1,
  error: value === null ? { error: "LmError", message: "broken" } : null,
  ...more,
})

const options = { scorers: ["exact"], passAt: [1, 2], by: ["topic"] }

describe("reports", () => {
  it("have a mean over tasks with Wilson's interval, means by metadata, and costs", () => {
    const [report] = Report.of(
      [0, 1, 2, 3].map((task) => row("one", task, task === 0 ? 0 : 1)),
      options,
    ).agents
    assert.deepInclude(report, { agent: "one", tasks: 4, episodes: 4, failed: 0, tries: [], calls: 8, cost: 2 })
    assert.deepInclude(report, { inputTokens: 40, outputTokens: 20 })
    const [exact] = report.scores
    assert.deepInclude(exact, { scorer: "exact", tasks: 4, mean: 0.75 })
    // Wilson's for 3 of 4.
    assert.closeTo(exact.low, 0.3006, 5e-5)
    assert.closeTo(exact.high, 0.9544, 5e-5)
    assert.deepStrictEqual(
      report.by.map(({ key, value, mean, tasks }) => [key, value, mean, tasks]),
      [
        ["topic", "high", 1, 2],
        ["topic", "low", 0.5, 2],
      ],
    )
  })

  it("count each task once, and leave failures out of means", () => {
    const rows = [
      ...[1, 1, 0, 1].map((value, repeat) => row("one", 0, value, { repeat, answer: value === 1 ? "b" : "c" })),
      ...[0, 0, 1, null].map((value, repeat) => row("one", 1, value, { repeat, answer: value === 1 ? "b" : "c" })),
    ]
    const [report] = Report.of(rows, { ...options, passAt: [1, 2, 4] }).agents
    assert.strictEqual(report.failed, 1)
    assert.closeTo(report.scores[0].mean, (3 / 4 + 1 / 3) / 2, 1e-12)
    assert.deepStrictEqual(
      report.tries.map(({ reducer, at, mean, tasks }) => [reducer, at, Number(mean.toFixed(6)), tasks]),
      [
        ["pass", 1, Number(((3 / 4 + 1 / 3) / 2).toFixed(6)), 2],
        ["pass", 2, Number(((1 + 2 / 3) / 2).toFixed(6)), 2],
        // The second task has three tries only.
        ["pass", 4, 1, 1],
        ["majority", 4, 0.5, 2],
      ],
    )
  })

  it("have the best of several if scores can be fractions", () => {
    const rows = [0, 0.5, 1, 0.5].map((value, repeat) => row("one", 0, value, { repeat }))
    const [{ tries }] = Report.of(rows, { scorers: ["exact"], passAt: [2] }).agents
    assert.deepStrictEqual(
      tries.map(({ reducer, at, mean }) => [reducer, at, mean]),
      [
        ["pass", 2, 0.5],
        ["best", 4, 1],
        ["majority", 4, 0.5],
      ],
    )
  })

  it("work for more tasks than a call can have arguments", { tags: "slow" }, () => {
    const rows = Array.from({ length: 130_000 }, (_, task) => row("only", task, task % 2))
    const [report] = Report.of(rows, { scorers: ["exact"] }).agents
    assert.deepInclude(report, { tasks: 130_000, episodes: 130_000 })
    assert.deepInclude(report.scores[0], { tasks: 130_000, mean: 0.5 })
  })

  it("have no cost without a price, and no mean without scores", () => {
    const [report] = Report.of([row("one", 0, 1), row("one", 1, null, { cost: null })], options).agents
    assert.isNull(report.cost)
    const [nothing] = Report.of([row("one", 0, null)], options).agents
    assert.deepStrictEqual([nothing.scores, nothing.by, nothing.failed], [[], [], 1])
  })

  it("compare each agent with the first, task by task", () => {
    const rows = [
      ...[0, 0, 0, 1].map((value, task) => row("one", task, value)),
      ...[1, 1, 0, 1].map((value, task) => row("two", task, value)),
    ]
    const { comparisons } = Report.of(rows, options)
    assert.strictEqual(comparisons.length, 1)
    assert.deepInclude(comparisons[0], { left: "one", right: "two", scorer: "exact", difference: 0.5, tasks: 4 })
    assert.deepInclude(comparisons[0], { better: 2, worse: 0, test: "mcnemar", p: 0.5 })
  })

  it("call fewer tokens better, and more steps neither, by the directions of the scorers", () => {
    const rows = [
      ...[10, 20, 30].map((tokens, task) => row("one", task, 0, { scores: { tokens, steps: 1, exact: 0 } })),
      ...[11, 25, 30].map((tokens, task) => row("two", task, 0, { scores: { tokens, steps: 2, exact: 1 } })),
    ]
    const directions = new Map(
      [Scorer.tokens(), Scorer.steps(), Scorer.exact()].map(({ name, direction }) => [name, direction]),
    )
    const report = Report.of(rows, { scorers: [...directions.keys()], directions })
    const changed = report.comparisons.map(({ scorer, direction, better, worse }) => [scorer, direction, better, worse])
    assert.deepStrictEqual(changed, [
      ["tokens", "lower", 0, 2],
      ["steps", "none", 3, 0],
      ["exact", "higher", 3, 0],
    ])
    const lines = Report.comparisonText(report.comparisons).split("\n")
    assert.match(lines[1], /two − one +tokens \(lower is better\) +\+2\.000 .* 0 +2 +3 /)
    assert.match(lines[2], /steps .* 3 higher +0 lower /)
    // A saved report has the directions; one of an earlier version has none.
    const saved = Schema.encodeSync(Report.Report)(report)
    assert.strictEqual(saved.agents[0].scores[0].direction, "lower")
    const { direction: _, ...earlier } = saved.comparisons[0]
    const read = Schema.decodeUnknownSync(Report.Report)({ ...saved, comparisons: [earlier] })
    assert.strictEqual(read.comparisons[0].direction, "none")
  })

  it("compare with another evaluation by the names of agents, or else with its first agent, over shared tasks", () => {
    const before = [row("one", 0, 0), row("one", 1, 0), row("two", 0, 1)]
    const now = [row("two", 0, 0), row("new", 1, 1), row("new", 7, 1)]
    const found = Report.against(before, now, { scorers: ["exact", "other"] })
    assert.deepStrictEqual(
      found.map(({ left, right, difference, tasks }) => [left, right, difference, tasks]),
      [
        ["two (before)", "two", -1, 1],
        ["one (before)", "new", 1, 1],
      ],
    )
  })

  it("are tables for people", () => {
    const rows = [
      ...[0, 0, 0, 1].map((value, task) => row("one", task, value)),
      ...[1, 1, 0, 1].map((value, task) => row("two", task, value)),
    ]
    const lines = Report.text(Report.of(rows, { scorers: ["exact"] })).split("\n")
    assert.deepStrictEqual(
      lines.map((line) => line.replace(/ {2,}/g, " | ")),
      [
        "agent | score | mean | 95 % | tasks",
        "one | exact | 0.250 | 0.046 to 0.699 | 4",
        "two | exact | 0.750 | 0.301 to 0.954 | 4",
        "",
        "agent | episodes | failed | calls | input tokens | output tokens | cost",
        "one | 4 | 0 | 8 | 40 | 20 | 2",
        "two | 4 | 0 | 8 | 40 | 20 | 2",
        "",
        "compared | score | difference | 95 % | better | worse | tasks | p | by",
        "two − one | exact | +0.500 | -0.235 to 0.850 | 2 | 0 | 4 | 0.5 | McNemar",
        "",
      ],
    )
  })
})

describe("tables as CSV", () => {
  it("have a column for every key, and quotes where a field needs them", () => {
    const text = csv([
      row("one", 0, 1, { answer: 'say "a, b"\nor c', metadata: { topic: "x" } }),
      row("one", 1, null, { metadata: { level: 3 } }),
    ])
    const [heading, ...rest] = text.split("\n")
    assert.include(heading, "metadata.topic,")
    assert.include(heading, "scores.exact")
    assert.include(heading, "error.message")
    assert.include(rest.join("\n"), '"say ""a, b""\nor c"')
    assert.include(rest.join("\n"), "broken")
  })
})
