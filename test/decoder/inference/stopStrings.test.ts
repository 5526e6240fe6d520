import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { makeStopSearch } from "../../../src/decoder/inference/stopStrings.ts"

const search = (stops: ReadonlyArray<string>, pieces: ReadonlyArray<string>) => {
  const stopSearch = makeStopSearch(stops)
  const texts = pieces.map(stopSearch.push)
  return { texts, found: stopSearch.found(), end: stopSearch.end() }
}

describe("a search for stop strings", () => {
  it.each([
    { title: "passes a text on without stops", stops: [], pieces: ["a", "b"], texts: ["a", "b"], found: null, end: "" },
    { title: "finds a stop in one piece", stops: ["\n"], pieces: ["ab\ncd"], texts: ["ab"], found: "\n", end: "" },
    {
      title: "finds a stop over pieces",
      stops: ["END"],
      pieces: ["x E", "N", "Dy"],
      texts: ["x ", "", ""],
      found: "END",
      end: "",
    },
    {
      title: "gives a beginning back",
      stops: ["END"],
      pieces: ["xE", "N", "E"],
      texts: ["x", "", "EN"],
      found: null,
      end: "E",
    },
    {
      title: "takes the stop that ends first",
      stops: ["abc", "b"],
      pieces: ["abc"],
      texts: ["a"],
      found: "b",
      end: "",
    },
    { title: "takes the longest at an end", stops: ["b", "ab"], pieces: ["xab"], texts: ["x"], found: "ab", end: "" },
    {
      title: "finds a stop that begins again",
      stops: ["aab"],
      pieces: ["aa", "ab"],
      texts: ["", "a"],
      found: "aab",
      end: "",
    },
    { title: "says nothing after the stop", stops: ["."], pieces: ["a.", "b"], texts: ["a", ""], found: ".", end: "" },
  ])("$title", ({ stops, pieces, texts, found, end }) => {
    assert.deepStrictEqual(search(stops, pieces), { texts, found, end })
  })

  it("does not depend on where the pieces end, and cuts before the first stop", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 0, maxLength: 30 })
    const stop = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(fc.array(text, { maxLength: 8 }), fc.array(stop, { maxLength: 3 }), (pieces, stops) => {
        const whole = pieces.join("")
        const { texts, found, end } = search(stops, pieces)
        // The definition: the first end of any stop; at this end, the longest stop.
        let cut = whole
        let expected: string | null = null
        for (let at = 1; at <= whole.length && expected === null; at++) {
          for (const one of stops)
            if (whole.slice(0, at).endsWith(one) && one.length > (expected?.length ?? 0)) expected = one
          if (expected !== null) cut = whole.slice(0, at - expected.length)
        }
        assert.strictEqual(texts.join("") + end, cut)
        assert.strictEqual(found, expected)
      }),
      { numRuns: 500 },
    )
  })
})
