import { Schema } from "effect"
import { assert, describe, it } from "vitest"
import * as Parser from "../../../src/agents/agent/Parser.ts"
import { fromConfig } from "../../../src/agents/agent/Parser.ts"

const ok = (action: string, reward = 0): Parser.ParseResult => ({ _tag: "Parsed", action, reward })
const no = (feedback: string, reward = -0.1): Parser.ParseResult => ({ _tag: "Failed", feedback, reward })

const table = (parse: Parser.Parser, rows: ReadonlyArray<readonly [string, Parser.ParseResult]>) => {
  for (const [text, expected] of rows) assert.deepStrictEqual(parse(text), expected, JSON.stringify(text))
}

describe("a tag in other letters", () => {
  it("is found as in small ones, and the action keeps its own", () => {
    const parse = Parser.tagged("move")
    assert.deepStrictEqual(parse("<MOVE> Go North </Move>"), Parser.parsed("Go North"))
    assert.deepStrictEqual(parse("İİ <think>a</think><Move>İ b2</MOVE>"), Parser.parsed("İ b2"))
    assert.deepStrictEqual(Parser.tagged("Answer")("<answer>7</answer>"), Parser.parsed("7"))
  })
})

describe("a tagged action", () => {
  const missing = no("Answer with <move>…</move>.")
  it("is the content of the last pair of tags", () => {
    table(Parser.tagged("move"), [
      ["<move>b2</move>", ok("b2")],
      ["<think>or <move>a1</move>?</think>\n<move>\n b2 \n</move>.", ok("b2")],
      ["<move>two\nlines</move>", ok("two\nlines")],
      ["<move><b>x</b></move>", ok("<b>x</b>")],
      ["<move>a1</move> <move>", ok("a1")],
      ["<move>b2</move></move>", ok("b2")],
      ["<move>a1 <move>b2</move></move>", ok("b2")],
      ["b2", missing],
      ["<move>b2", missing],
      ["b2</move>", missing],
      ["<move></move>", missing],
      ["<move>  </move>", missing],
      ["<MOVE>b2</Move>", ok("b2")],
      ["</move><move>", missing],
      ["<move</move>", missing],
    ])
  })

  it("has the configured reward and penalty", () => {
    const parse = Parser.tagged("a", { reward: 0.2, penalty: -1, feedback: "Tags!" })
    table(parse, [
      ["<a>x</a>", ok("x", 0.2)],
      ["x", no("Tags!", -1)],
    ])
  })
})

describe("a boxed action", () => {
  it("is the content of the last closed box", () => {
    const missing = no("Put your answer into \\boxed{…}.")
    table(Parser.boxed(), [
      ["so \\boxed{7}.", ok("7")],
      ["\\boxed{1} no, \\boxed{\\frac{1}{2}}", ok("\\frac{1}{2}")],
      ["boxed", missing],
      ["\\boxed{7", missing],
      ["\\boxed{}", missing],
      ["", missing],
    ])
  })
})

describe("an action in JSON", () => {
  const Move = Schema.Struct({ from: Schema.String, to: Schema.String })
  const parse = Parser.json(Move, { action: ({ from, to }) => from + to })

  it("is found by itself, in a fence, and within text", () => {
    table(parse, [
      ['{"from": "e1", "to": "g1"}', ok("e1g1")],
      ['I castle.\n```json\n{"from": "e1", "to": "g1"}\n```\nDone.', ok("e1g1")],
      ['He said "ha {" and {x} then {"from": "}", "to": "\\"{"} !', ok('}"{')],
      ['{"from": "a", "to": "b"} or rather {"from": "c", "to": "d"}', ok("cd")],
      ['{"from": "a", "to": "b"} as {"why": 1}', ok("ab")],
      ['{ { {"from": "a", "to": "b"}', ok("ab")],
    ])
  })

  it("explains what is wrong with it", () => {
    table(parse, [
      ["e1g1", no("Answer with JSON; there was none in your answer.")],
      ['{"from": "e1", "to": ', no("Answer with JSON; there was none in your answer.")],
      ['{"from": "e1"}', no('Your JSON is invalid: Missing key at ["to"]; found {"from":"e1"}.')],
    ])
  })

  it("is JSON by default, of lists too", () => {
    table(Parser.json(Schema.Array(Schema.Int)), [["take [1, 2] and", ok("[1,2]")]])
    table(Parser.json(Schema.Int), [[" 7 ", ok("7")]])
  })

  it("is found in reasonable time", { tags: "slow" }, () => {
    const text = "[{".repeat(250_000)
    // Were every bracket followed to the end, this would take minutes, and the test its time-out.
    assert.strictEqual(parse(text)._tag, "Failed")
  })
})

describe("parsers together", () => {
  const either = Parser.orElse(Parser.tagged("a"), Parser.boxed({ penalty: -0.5 }))

  it("take the first match, or describe all formats at the highest penalty", () => {
    table(either, [
      ["<a>x</a> \\boxed{y}", ok("x")],
      ["\\boxed{y}", ok("y")],
      ["z", no("Answer with <a>…</a>. Or: Put your answer into \\boxed{…}.", -0.5)],
    ])
  })

  it("change an action, refuse it, or reward it", () => {
    const parse = Parser.map(Parser.tagged("a", { reward: 0.1 }), (action) => {
      if (action === "bad") return Parser.refused("Not that.", -2)
      return action === "good" ? Parser.parsed("GOOD", 1) : action.toUpperCase()
    })
    table(parse, [
      ["<a>x</a>", ok("X", 0.1)],
      ["<a>good</a>", ok("GOOD", 1.1)],
      ["<a>bad</a>", no("Not that.", -2)],
      ["x", no("Answer with <a>…</a>.")],
    ])
  })

  it("require all of several parts, and name all that are missing", () => {
    const parse = Parser.all(
      { thought: Parser.tagged("think", { reward: 0.1 }), move: Parser.tagged("move", { reward: 0.2, penalty: -0.3 }) },
      ({ thought, move }) => `${move} (${thought})`,
    )
    const [think, move] = ["Answer with <think>…</think>.", "Answer with <move>…</move>."]
    table(parse, [
      ["<think>t</think><move>m</move>", ok("m (t)", 0.1 + 0.2)],
      ["<move>m</move>", no(think)],
      ["<think>t</think>", no(move, -0.3)],
      ["", no(`${think} ${move}`, -0.1 - 0.3)],
    ])
  })

  it("come from a config", () => {
    const missing =
      "Answer with <a>…</a>. Or: Put your answer into \\boxed{…}. Or: Answer with JSON; there was none in your answer."
    table(fromConfig([{ tag: "a" }, "boxed", { json: "answer" }]), [
      ["<a>x</a>", ok("x")],
      ["\\boxed{y}", ok("y")],
      ['so {"answer": 7}', ok("7")],
      ["z", no(missing)],
    ])
    table(fromConfig("whole"), [[" z ", ok("z")]])
    table(fromConfig("boxed"), [["\\boxed{z}", ok("z")]])
  })
})
