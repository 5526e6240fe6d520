import { Tokenizer } from "@huggingface/tokenizers"
import { assert, describe, it } from "vitest"
import { patternProblem, slowPatternIn } from "../../../src/base/tokens/slowPatterns.ts"

const published = [
  String.raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
  String.raw`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
  String.raw`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}`,
  String.raw` ?[^(\s|[.,!?…。，、।۔،])]+`,
  String.raw`[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re)?`,
  String.raw`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+`,
  String.raw`^[\p{L}\w]+$|[\s\W]+|[a[^b]]+!`,
  String.raw`[0-9][0-9][0-9]|\d{1,3}(?=(?:\d{3})*\b)|(?=(\d{3})+(?!\d))`,
  String.raw`\(\+\)*|[(+)]*`,
  String.raw`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`,
  "(IMGIMG)(A|B|C|D|E|F|G|H|I){1,4}Z",
]

const slow = [
  "(a+)+$",
  "(?:a*)*b",
  "(a|a)*b",
  "((ab?)c)*d",
  "(a?){30}a{30}",
  "(a{2,}){10,}",
  String.raw`(\p{L}+)*!`,
  "(a+){2,000000000000000000000000000099}!",
  "(a+){,30}!",
  "(?:a{1,30})+!",
  "(?<name>a+)+!",
  "(?:(?:(?:a{1,3}){3}){3}){3}!",
]

const inARow = [
  `${"(?:a|a)".repeat(24)}b`,
  "a*a*b",
  "a{0,10000}a{0,10000}b",
  "(?:a(?=a*b))*c",
  `${"a?".repeat(30)}${"a".repeat(30)}`,
  `${"a*".repeat(20)}!`,
]

const nested = `${"(?:a(?=".repeat(12)}b${"))*".repeat(12)}`

/** Returns the part of a tokenizer that splits texts by an expression. */
const splitBy = (pattern: object): unknown =>
  new Tokenizer(
    {
      model: { type: "BPE", vocab: {}, merges: [] },
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: {
        type: "Sequence",
        pretokenizers: [{ type: "Split", pattern, behavior: "Isolated", invert: false }],
      },
      post_processor: null,
      decoder: { type: "ByteLevel" },
    },
    {},
  ).pre_tokenizer

describe("a regular expression of a tokenizer", () => {
  it("is refused if it can take exponential time", () => {
    for (const pattern of slow)
      assert.include(slowPatternIn(splitBy({ Regex: pattern })), "a repeated group has a repetition", pattern)
    for (const pattern of [...inARow, nested])
      assert.include(slowPatternIn(splitBy({ Regex: pattern })), "in very many ways", pattern)
    assert.include(patternProblem("a".repeat(5000)), "it has 5000 characters")
    assert.include(patternProblem("(a*)\\1b"), "it refers to what a group has matched")
    assert.include(patternProblem(`${"(".repeat(100)}a${")".repeat(100)}`), "groups inside each other")
  })

  it("is read if it is like those of published tokenizers", () => {
    for (const pattern of published) assert.isUndefined(slowPatternIn(splitBy({ Regex: pattern })), pattern)
  })

  it("is no problem as a text", () => {
    assert.isUndefined(slowPatternIn(splitBy({ String: "(a+)+$" })))
  })
})
