import { assert, describe, it } from "vitest"
import * as Gate from "../../../../src/agents/evaluate/report/Gate.ts"
import { junit } from "../../../../src/agents/evaluate/report/junit.ts"
import type { EpisodeRow } from "../../../../src/agents/evaluate/rows.ts"
import { markdown } from "../../../../src/agents/evaluate/report/markdown.ts"
import * as Report from "../../../../src/agents/evaluate/report/Report.ts"

const row = (id: string, score: number | null, more: Partial<EpisodeRow> = {}): EpisodeRow => ({
  agent: "mine",
  episode_index: 1,
  task: id.length,
  repeat: 0,
  env_id: id,
  env_type: "qa",
  metadata: {},
  answer: "Rome",
  target: "Paris",
  score: score ?? 0,
  scores: { exact: score },
  steps: 1,
  terminated: true,
  truncated: false,
  truncation_reason: null,
  calls: 1,
  retries: 0,
  input_tokens: 1,
  output_tokens: 1,
  cost: null,
  duration_ms: 1500,
  error: null,
  ...more,
})

const failed = { error: "LmError", message: "no <connection> & more" } as const

const rows = [
  row("a", 1),
  row("bb", 0),
  row("bb", 1, { repeat: 1 }),
  row("ccc", null),
  row("dddd", null, { error: failed, answer: null }),
]
const options = { name: "capitals", scorer: "exact", direction: "higher", threshold: 1 } as const

/** The elements of an XML text as a tree; throws if it isn't well-formed. */
interface Node {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly children: Array<Node>
  text: string
}
const unescaped = (text: string): string => {
  assert.notMatch(text, /[<>"]|&(?!#\d+;)/)
  return text.replace(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)))
}
const parsed = (xml: string): Node => {
  assert.isTrue(xml.startsWith('<?xml version="1.0" encoding="UTF-8"?>\n'))
  assert.notMatch(xml, /[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u)
  const top: Node = { name: "", attributes: {}, children: [], text: "" }
  const open = [top]
  for (const [, end, name, inside, single, text] of xml
    .slice(xml.indexOf("\n"))
    .matchAll(/<(\/?)(\w+)((?: \w+="[^"<]*")*)(\/?)>|([^<]+)/g)) {
    // prettier-ignore
    const parent = open[open.length - 1]
    if (text !== undefined) {
      parent.text += unescaped(text.trim())
      continue
    }
    if (end === "/") {
      assert.strictEqual(open.pop()?.name, name)
      continue
    }
    const pairs = [...inside.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, unescaped(value)] as const)
    const node: Node = { name, attributes: Object.fromEntries(pairs), children: [], text: "" }
    parent.children.push(node)
    if (single === "") open.push(node)
  }
  assert.strictEqual(open.length, 1)
  return top.children[0]
}

describe("JUnit XML", () => {
  it("has a test for each task: failures, errors of failed episodes, and tasks without a score", () => {
    const root = parsed(junit(rows, options))
    assert.deepEqual(root.attributes, { name: "capitals", tests: "4", failures: "1", errors: "1", time: "7.500" })
    const [suite, ...others] = root.children
    assert.deepEqual(others, [])
    assert.deepEqual(suite.attributes, {
      name: "capitals: mine",
      tests: "4",
      failures: "1",
      errors: "1",
      skipped: "1",
      time: "7.500",
    })
    const outcomes = suite.children.map(({ attributes: { name, classname, time }, children }) => [
      name,
      classname,
      time,
      ...children.map((one) => `${one.name}: ${one.attributes["message"]}`),
    ])
    assert.deepEqual(outcomes, [
      ["a", "capitals: mine", "1.500"],
      ["bb", "capitals: mine", "3.000", "failure: exact 0.5, expected at least 1"],
      ["ccc", "capitals: mine", "1.500", "skipped: exact had nothing to score"],
      ["dddd", "capitals: mine", "1.500", "error: 1 of 1 episodes failed: no <connection> & more"],
    ])
    const [failure] = suite.children[1].children
    assert.strictEqual(failure.attributes["type"], "exact")
    assert.strictEqual(failure.text, "answer: Rome\nright answer: Paris\n\nanswer: Rome\nright answer: Paris")
  })

  it("passes a task whose mean reaches the threshold apart from rounding, as gates do", () => {
    const values = [0.7, 0.8, 0.9].map((score, repeat) => row("a", score, { repeat }))
    const [suite] = parsed(junit(values, { ...options, threshold: 0.8 })).children
    assert.isBelow((0.7 + 0.8 + 0.9) / 3, 0.8)
    assert.deepInclude(suite.attributes, { failures: "0" })
  })

  it("only has errors if the first scorer has no higher values that are better, and has gates as tests", () => {
    const gates = Gate.score({ agents: [] }, { limit: 1 })
    assert.deepEqual(gates, [])
    const outcome = { gate: "score", agent: "mine", scorer: "exact", limit: 1, value: null, tasks: 0 } as const
    const text = junit(rows, {
      ...options,
      direction: "lower",
      gates: [{ ...outcome, passed: false, message: "mine: too low" }],
    })
    const [gate, suite] = parsed(text).children
    assert.deepInclude(gate.attributes, { name: "capitals: gates", failures: "1" })
    assert.strictEqual(gate.children[0].children[0].attributes["message"], "mine: too low")
    assert.deepInclude(suite.attributes, { failures: "0", errors: "1" })
  })

  it("stays well-formed whatever the names and answers are", () => {
    const wild = `]]><a b="c">&amp;'\u0000\u001b[31m${String.fromCharCode(0xd800)}\u{1f600}\ufffe\n\t`
    const text = junit([row(wild, 0, { answer: wild.repeat(1000), agent: wild })], { ...options, name: wild })
    const [suite] = parsed(text).children
    const shown = `]]><a b="c">&amp;'\ufffd\ufffd[31m\ufffd\u{1f600}\ufffd\n\t`
    assert.strictEqual(suite.children[0].attributes["name"], shown)
    assert.isBelow(text.length, 20_000)
  })
})

describe("a summary in Markdown", () => {
  it("shows names and reasons of others as they are", () => {
    const wild = "**x** | <img src=x> `y`\n# [z](http://a) $1$ @me"
    const report = Report.of([row("a", 1, { agent: wild })], { scorers: ["exact"] })
    const text = markdown({ name: wild, report, confidence: 0.95, failures: [{ reason: wild, count: 2 }] })
    const escaped = "\\*\\*x\\*\\* \\| &lt;img src=x\\> \\`y\\` \\#&#8203; \\[z\\]\\(http\\://a\\) \\$1\\$ \\@&#8203;me"
    assert.isTrue(text.startsWith(`### Evaluation ${escaped}\n\n| agent | score | mean | 95 % | tasks |\n`), text)
    assert.include(text, `| ${escaped} | exact | 1.000 | 0.207 to 1.000 | 1 |`)
    assert.include(text, `| 2 | ${escaped} |`)
    assert.notInclude(text, "compared")
    assert.notInclude(text, "gate")
  })

  it("has the gates and the comparisons with a baseline", () => {
    const rowsWith = (score: number) =>
      ["a", "b", "c", "d", "e", "f"].map((id) => row(id, score, { task: id.charCodeAt(0) }))
    const report = Report.of(rowsWith(1), { scorers: ["exact"] })
    const baseline = Report.against(rowsWith(0), rowsWith(1), { scorers: ["exact"] })
    const gates = Gate.regression(baseline, { limit: 0 })
    const text = markdown({ name: "capitals", report, confidence: 0.95, gates, baseline, runDir: "results/0" })
    assert.include(text, "### Evaluation capitals: passed")
    assert.match(
      text,
      /\| mine: exact \+1 \\\(0\.2193 to 1\\\) against mine \\\(before\\\); a fall by more than .* is ruled out \| passed \|/,
    )
    assert.include(
      text,
      "| mine − mine \\(before\\) | exact | +1.000 | 0.219 to 1.000 | 6 | 0 | 6 | 0.03125 | McNemar |",
    )
    assert.isTrue(text.endsWith("\n\nresults/0\n\n"))
  })
})
