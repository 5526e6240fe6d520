import { assert, describe, it } from "@effect/vitest"
import { lastNumber, numberOf } from "../../../src/agents/task/answers/number.ts"
import { exact, f1, mcq, numeric, numericWithin, type AnswerScorer } from "../../../src/agents/task/answers/score.ts"
import { boxed, normalise } from "../../../src/agents/task/answers/text.ts"

/** Each row: an answer, a target, its score. */
const table = (
  score: AnswerScorer,
  rows: ReadonlyArray<readonly [string, string, number]>,
  choices?: ReadonlyArray<string>,
) => {
  for (const [answer, target, expected] of rows) {
    const key = { targets: [target], ...(choices === undefined ? {} : { choices }) }
    assert.closeTo(score(answer, key).score, expected, 1e-12, `${answer} | ${target}`)
  }
}

describe("exact", () => {
  it("compares texts, ignoring case, spacing and quotes", () => {
    table(exact, [
      ["Paris", "Paris", 1],
      ["  paris.\n", "Paris", 1],
      ['"Paris"', "Paris", 1],
      ["**Paris**", "Paris", 1],
      ["Ｐａｒｉｓ", "Paris", 1],
      ["New\n  York", "new york", 1],
      ["it’s", "it's", 1],
      ["Paris, France", "Paris", 0],
      ["Pari", "Paris", 0],
      ["", "Paris", 0],
      ["Therefore \\boxed{42}.", "42", 1],
      ["42", "\\boxed{42}", 1],
      ["first \\boxed{1}, no: \\boxed{2}", "2", 1],
      ["\\boxed{\\frac{1}{2}}", "\\frac{1}{2}", 1],
      // Other programs fail on the word without a box, and on a box that is never closed.
      ["it is boxed", "it is boxed", 1],
      ["\\boxed", "4", 0],
      ["\\boxed{4", "4", 0],
      ["...", "...", 1],
      [".", "!", 0],
    ])
  })

  it("accepts any of several targets", () => {
    const key = { targets: ["Rome", "Roma"] }
    assert.deepStrictEqual(exact("roma", key), { score: 1, target: "Roma", message: "Correct." })
    assert.deepStrictEqual(exact("Milan", key), {
      score: 0,
      target: "Rome",
      message: "Incorrect. Your answer was: Milan. The answer is: Rome",
    })
    assert.match(exact("", key).message, /Your answer was: \(empty\)/)
    assert.isBelow(exact("x".repeat(10_000), key).message.length, 300)
  })
})

describe("f1", () => {
  it("measures the share of common words", () => {
    table(f1, [
      ["the cat sat", "cat sat", 1],
      ["Cat, sat!", "the cat sat", 1],
      ["cat", "cat sat", 2 / 3],
      ["a dog sat", "cat sat", 1 / 2],
      ["cat cat cat", "cat", 1 / 2],
      ["cat", "cat cat cat", 1 / 2],
      ["dog", "cat", 0],
      ["", "cat", 0],
      ["the", "cat", 0],
      ["the", "a", 1],
    ])
  })

  it("reports the share that is right, for the best target", () => {
    assert.deepStrictEqual(f1("cat sat", { targets: ["dog", "the cat sat down"] }), {
      score: 4 / 5,
      target: "the cat sat down",
      message: "Partly correct (0.80). The answer is: the cat sat down",
    })
  })
})

describe("numeric", () => {
  it("compares numbers in any form", () => {
    table(numeric, [
      ["4", "4", 1],
      ["4.0", "4", 1],
      ["4.0000005", "4", 1],
      ["4.00001", "4", 0],
      ["+4", "4", 1],
      ["-4", "4", 0],
      ["−4", "-4", 1],
      ["1,234,567", "1234567", 1],
      ["12,34,567", "1234567", 1],
      ["1234567", "1,234,567", 1],
      ["1{,}234", "1234", 1],
      ["$1{,}234$", "1234", 1],
      ["\\$5.50", "5.5", 1],
      ["50\\%", "50%", 1],
      ["1.5e3", "1500", 1],
      ["1.5 \\times 10^{3}", "1500", 1],
      ["\\boxed{7}", "7", 1],
      ["\\boxed{x = 7}", "7", 1],
      ["$\\boxed{1{,}000}$", "1000", 1],
      ["\\frac{1}{2}", "0.5", 1],
      ["-\\dfrac{1}{2}", "-0.5", 1],
      ["\\frac12", "1/2", 1],
      ["1/0", "0", 0],
      ["\\text{7}", "7", 1],
      ["The sum of 3 and 4 is 7.", "7", 1],
      ["It is 3, not 7", "3", 0],
      ["3-7", "7", 1],
      ["= -7", "-7", 1],
      ["one half, 1/2", "0.5", 1],
      ["seven", "7", 0],
      ["", "7", 0],
      ["Infinity", "7", 0],
      ["NaN", "7", 0],
      // A target that is no number must be the same text.
      ["x + 1", "x + 1", 1],
      ["1", "x + 1", 0],
    ])
  })

  it("accepts numbers within the tolerance, including its bound", () => {
    table(numericWithin(0.5), [
      ["7.5", "7", 1],
      ["7.51", "7", 0],
      ["6.5", "7", 1],
    ])
    table(numericWithin(0), [
      ["7", "7", 1],
      ["7.0000001", "7", 0],
    ])
  })

  it("distinguishes a text that is a number from one that contains it", () => {
    assert.strictEqual(numberOf("7 apples"), undefined)
    assert.strictEqual(lastNumber("7 apples"), 7)
    assert.strictEqual(numberOf("1,23"), undefined)
    assert.strictEqual(numberOf("1/3"), 1 / 3)
    assert.strictEqual(numberOf("1 \\times 10^ { 3 }"), 1000)
    assert.strictEqual(numberOf(`1×10^${" ".repeat(1_000_000)}x`), undefined)
    assert.strictEqual(lastNumber("none"), undefined)
  })
})

describe("mcq", () => {
  const cities = ["London", "Paris", "Rome", "a: b"]

  it("accepts a letter or a choice's text", () => {
    table(
      mcq,
      [
        ["B", "Paris", 1],
        ["b", "B", 1],
        ["paris", "B", 1],
        ["(B)", "B", 1],
        ["B.", "B", 1],
        ["B)", "B", 1],
        ["B: Paris", "B", 1],
        ["b) paris.", "Paris", 1],
        ["**B**", "B", 1],
        ["\\boxed{B}", "B", 1],
        ["The answer is B.", "B", 1],
        ["the answer is (b), since …", "B", 1],
        ["Answer: Paris", "B", 1],
        ["A is wrong. My choice: C", "Rome", 1],
        ["a: b", "D", 1],
        // A target that is no choice's text or letter counts from 0, as in many data sets.
        ["B", "1", 1],
        ["A", "0", 1],
        // Neither its letter nor its text.
        ["A: Paris", "A", 0],
        ["A: Paris", "B", 0],
        ["Paris or Rome", "Paris", 0],
        ["E", "B", 0],
        ["", "B", 0],
        ["The capital", "C", 0],
        ["Bee", "B", 0],
      ],
      cities,
    )
  })

  it("reports the choice with its letter, and an answer that names none", () => {
    const key = { targets: ["1"], choices: cities }
    assert.strictEqual(mcq("B", key).target, "B. Paris")
    assert.match(mcq("C", key).message, /^Incorrect\. Your answer was: C\. The answer is: B\. Paris$/)
    assert.match(mcq("none", key).message, /^Incorrect: it names none of the choices\./)
  })

  it("reads many line ends in little time", () => {
    const flood = `The answer${"\n".repeat(10_000)}`
    table(mcq, [[flood, "Paris", 0]], cities)
    table(mcq, [[`${flood}B`, "Paris", 1]], cities)
  })

  it("compares letters if the choices are in the question, and texts if the target isn't a letter", () => {
    table(mcq, [
      ["(c)", "C", 1],
      ["The answer is D", "C", 0],
      ["paris", "Paris", 1],
      ["Rome", "Paris", 0],
      ["0", "0", 1],
      ["A", "0", 1],
      ["1", "0", 0],
    ])
  })
})

describe("answers", () => {
  it("are the last boxed text, with nested braces", () => {
    assert.strictEqual(boxed("so \\boxed{\\frac{1}{2}}."), "\\frac{1}{2}")
    assert.strictEqual(boxed("\\boxed{\\{1, 2\\}}"), "\\{1, 2\\}")
    assert.strictEqual(boxed("\\fbox{1} \\boxed {2}"), "2")
    assert.strictEqual(boxed("\\boxed{1} and \\boxed{2"), "1")
    assert.strictEqual(boxed("\\boxed{\\}} }"), "\\}")
    assert.strictEqual(boxed("boxed"), undefined)
    assert.strictEqual(boxed(`\\boxed{7} ${"\\boxed{".repeat(50_000)}`), "7")
  })

  it("have a normal form, which is stable", () => {
    for (const text of ["'Yes!'", " `a  b`. ", "«x»", "...", "'", "**", "don't."]) {
      assert.strictEqual(normalise(normalise(text)), normalise(text))
    }
    assert.strictEqual(normalise("'Yes!'"), "yes")
    assert.strictEqual(normalise("don't."), "don't")
  })
})
