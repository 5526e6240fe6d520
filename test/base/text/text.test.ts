import { assert, it } from "vitest"
import {
  jsonValue,
  markdownText,
  messageOf,
  oneLine,
  parsedJson,
  roundedSpeed,
  shownScore,
  shownSpread,
} from "../../../src/base/text/text.ts"

it("speeds have a digit after the point if they are low, so that a slow run is not shown as one that stands still", () => {
  assert.deepStrictEqual([0, 0.26, 1, 9.94, 10.4, 2500.5].map(roundedSpeed), [0, 0.3, 1, 9.9, 10, 2501])
})

const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}1${"}]".repeat(levels / 2)}`

it("JSON is refused if its lists and objects are nested so deep that walks over it would overflow the stack", () => {
  assert.strictEqual(JSON.stringify(jsonValue(nested(256))), nested(256))
  const lists = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`
  assert.strictEqual(JSON.stringify(jsonValue(lists(256))), lists(256))
  assert.throws(() => jsonValue(lists(257)), RangeError)
  assert.throws(() => jsonValue(`{"b":1,"__proto__":${lists(256)}}`), RangeError)
  for (const levels of [258, 100_000]) {
    assert.throws(
      () => jsonValue(nested(levels)),
      RangeError,
      "expected at most 256 lists and objects inside each other",
    )
    assert.isUndefined(parsedJson(nested(levels)))
  }
  assert.throws(() => jsonValue("{"), SyntaxError)
})

it("JSON that would take far more memory than its text is refused before it is parsed", () => {
  // A text that is no JSON shows that nothing was parsed: the parser would throw a SyntaxError.
  assert.throws(() => jsonValue("[".repeat(1_000_000)), RangeError, "inside each other")
  assert.throws(() => jsonValue(`${"[],".repeat(1_000_000)}?`, 1000), RangeError, "expected at most 1000 lists")
  const texts = ["[".repeat(300), '\\"[[', "\\", "]]]]", "\\\\"]
  assert.deepStrictEqual(jsonValue(JSON.stringify({ texts, more: texts.join("[").repeat(100) }), 2), {
    texts,
    more: texts.join("[").repeat(100),
  })
  for (const wrong of [`"${"\\".repeat(1001)}"`, `["${"[".repeat(1000)}`, "}".repeat(1000)]) {
    assert.throws(() => jsonValue(wrong), SyntaxError)
  }
})

it("lines are joined in one pass", () => {
  assert.strictEqual(oneLine(" a \r\n\n\t b\u2028c\n"), "a; b\u2028c")
  const spaces = " ".repeat(5_000_000)
  assert.strictEqual(oneLine(`a${spaces}b`), `a${spaces}b`)
})

it("a mean and its deviation have as many digits after the point as the mean needs", () => {
  assert.deepStrictEqual([1, 0.0625, -1, 1.25, 500].map(shownScore), ["1.000", "0.063", "-1.000", "1.3", "500.0"])
  assert.strictEqual(shownSpread(1, 0), "1.000 ± 0.000")
  assert.strictEqual(shownSpread(0.5, 12.25), "0.500 ± 12.250")
  assert.strictEqual(shownSpread(498.7, 0.04), "498.7 ± 0.0")
})

it("a name of somebody else mentions nobody, refers to no issue and links nowhere in Markdown", () => {
  const shown = markdownText(
    "@octocat, team#1 at www.evil.example, WWW.a.example, http://b.example and me@c.example & co",
  )
  // GitHub looks for mentions and references in what is shown, where the backslashes are gone.
  assert.notMatch(shown.replaceAll("\\", "").replaceAll("&#8203;", "\u200b"), /[@#]\w|www\./i)
  assert.strictEqual(
    shown,
    "\\@&#8203;octocat, team\\#&#8203;1 at www&#8203;.evil.example, WWW&#8203;.a.example, http\\://b.example and me\\@&#8203;c.example &amp; co",
  )
  assert.strictEqual(markdownText("a swww of <b>"), "a swww of &lt;b\\>")
  assert.strictEqual(markdownText("GH-12, gh-a and high-5"), "GH-&#8203;12, gh-a and high-5")
})

it("the message of whatever was thrown can be shown", () => {
  assert.strictEqual(messageOf(new Error("one\ntwo")), "one; two")
  assert.strictEqual(messageOf(Object.assign(new Error("a"), { message: 5 })), "5")
  assert.strictEqual(messageOf(null), "null")
  assert.strictEqual(messageOf(Object.create(null)), "what was thrown cannot be read")
})
