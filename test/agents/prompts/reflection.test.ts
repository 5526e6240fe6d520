import { assert, describe, it } from "@effect/vitest"
import { exampleText, shortened, shotOf } from "../../../src/agents/prompts/examples.ts"
import { defaultPrompt, promptFor, reflectionOf, textIn } from "../../../src/agents/prompts/reflection.ts"
import { answered } from "../evaluate/support.ts"
import { trial } from "./world.ts"

describe("the text in a reflection", () => {
  // The statements are those of the reference implementation's test_instruction_proposal.py.
  for (const [what, answer, text] of [
    [
      "is the fenced block, without the name of a language",
      "Here:\n```markdown\nBe brief.\nBe kind.\n```\n",
      "Be brief.\nBe kind.",
    ],
    ["may have no language", "Here:\n```\nBe brief.\n```\nDone.", "Be brief."],
    ["may contain a fence", "```markdown\nNever write ```\n```", "Never write ```"],
    ["is trimmed", "```\n\nBe brief.\n\n```", "Be brief."],
    ["is the outermost block", "So\n```plain\nA\n\n```\nB\n```\n\nC\n```\nEnd\n", "A\n\n```\nB\n```\n\nC"],
    ["may lack the closing fence", "```text\nBe brief.", "Be brief."],
    ["may lack the opening fence", "Be brief.\n```", "Be brief."],
    [
      "is the answer, with a fence in its middle",
      "\nSome backticks:\n```\nNot confused.\n   ",
      "Some backticks:\n```\nNot confused.",
    ],
    ["is the whole answer without a fence", "\n   Be brief.\n", "Be brief."],
  ] as const)
    it(what, () => assert.strictEqual(textIn(answer), text))

  it("is refused with a reason", () => {
    const of = (content: string, finishReason: "stop" | "length" | "content_filter" = "stop") =>
      reflectionOf({ content, finishReason }, "Old.")
    assert.deepStrictEqual(of("```\nNew.\n```"), { _tag: "Text", text: "New." })
    assert.deepStrictEqual(of("``````"), { _tag: "None", reason: "no_text" })
    assert.deepStrictEqual(of("```\nOld.\n```"), { _tag: "None", reason: "same_text" })
    assert.deepStrictEqual(of("x".repeat(100_001)), { _tag: "None", reason: "too_long" })
    assert.deepStrictEqual(of("```\nNew", "length"), { _tag: "None", reason: "cut_off" })
    assert.deepStrictEqual(of("", "content_filter"), { _tag: "None", reason: "withheld" })
  })
})

describe("the prompt for a reflection", () => {
  it("shows the text and the examples, and inserts them unchanged", () => {
    const texts = { system_prompt: "Say {examples} $& twice." }
    const trials = [{ ...trial(0, 0.5), example: "OBSERVATION: {text}" }]
    const request = { place: "", name: "system_prompt", texts, trials, metricCalls: 0 }
    assert.strictEqual(
      promptFor(request, "{name}|{text}|{examples}"),
      "system_prompt|Say {examples} $& twice.|Example 1 (score 0.5)\n\nOBSERVATION: {text}",
    )
    assert.include(promptFor(request, defaultPrompt), "```\nSay {examples} $& twice.\n```")
  })

  it("shows what the agent saw and did, the feedback on it, and failures", () => {
    const played = answered("Lyon", "Paris")
    const [step] = played.steps
    const told = { ...step, feedback: { score: 0, target: "Paris", message: "No.\n\nIt is Paris." } }
    assert.strictEqual(
      exampleText({ ...played, steps: [told] }),
      "OBSERVATION: What?\nACTION: Lyon\nFEEDBACK: No.\nIt is Paris.",
    )
    const failed = { ...played, steps: [], error: { error: "AgentError", message: "it threw" } }
    assert.strictEqual(exampleText(failed), "FEEDBACK: the episode failed: it threw")
    // The address of a server is no business of another model, and must not change the search.
    const at = (address: string) =>
      exampleText({ ...failed, error: { ...failed.error, message: `m: ${address}: the model declined: no` } })
    assert.strictEqual(
      at("http://10.0.0.7:8000/v1"),
      "FEEDBACK: the episode failed: m: its server: the model declined: no",
    )
    assert.strictEqual(at("https://llm.example/v1"), at("http://127.0.0.1:41235/v1"))
    assert.deepStrictEqual(shotOf(played), { input: "What?", output: "Lyon" })
    assert.isNull(shotOf(failed))
    assert.strictEqual(shortened("abcdefghij", 4), "ab [… 6 characters left out …] ij")
  })
})
