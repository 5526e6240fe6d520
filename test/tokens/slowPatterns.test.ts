import { assert, describe, it } from "vitest"
import { patternProblem, slowPatternIn } from "../../src/tokens/slowPatterns.ts"

const published = [
  String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}`,
  String.raw` ?[^(\s|[.,!?…。，、।۔،])]+`,
  String.raw`[0-9][0-9][0-9]|\d{1,3}(?=(?:\d{3})*\b)|(?=(\d{3})+(?!\d))`,
  String.raw`\(\+\)*|[(+)]*`,
]

const slow = ["(a+)+$", "(?:a*)*b", "(a|a)*b", "((ab?)c)*", "(a?){30}a{30}", "(a{2,}){10,}", String.raw`(\p{L}+)*!`]

describe("a regular expression of a tokenizer", () => {
  it("is refused if it can take exponential time", () => {
    for (const pattern of slow) assert.include(patternProblem(pattern), "a repeated group has a repetition", pattern)
    assert.include(patternProblem("a".repeat(5000)), "it has 5000 characters")
  })

  it("is read if it is like those of published tokenizers", () => {
    for (const pattern of published) assert.isUndefined(patternProblem(pattern), pattern)
  })

  it("is found wherever it is in the settings", () => {
    const found = slowPatternIn({ pretokenizers: [{ type: "Split", pattern: { Regex: "(a+)+$" } }] })
    assert.include(found, 'the regular expression "(a+)+$": a repeated group')
    assert.isUndefined(slowPatternIn({ pattern: { String: "(a+)+$" } }))
  })
})
