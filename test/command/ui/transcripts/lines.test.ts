import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { forEachLine, type WholeLine, longest } from "../../../../src/command/ui/transcripts/wholeLines.ts"

/** A file that is only there as far as it is read. */
const reading = (...parts: ReadonlyArray<Uint8Array | number>) => ({
  part: (_: string, from: number, most = Infinity) =>
    Effect.sync(() => {
      let begin = 0
      for (const part of parts) {
        const length = typeof part === "number" ? part : part.length
        if (from < begin + length) {
          const size = Math.min(most, begin + length - from)
          return typeof part === "number"
            ? new Uint8Array(size).fill(120)
            : part.subarray(from - begin, from - begin + size)
        }
        begin += length
      }
      return new Uint8Array(0)
    }),
})

const utf8 = new TextEncoder()
const wholeLines = async (file: ReturnType<typeof reading>, from = 0, to = Infinity) => {
  const found: Array<WholeLine> = []
  const take = (line: WholeLine) => void found.push(line)
  await Effect.runPromise(forEachLine(file, "f", { from, to }, take))
  return found.map((line) => [line.text, line.from, line.to])
}

describe("whole lines", () => {
  it("are those with an end, at their places, empty ones left out, letters whole wherever blocks end", async () => {
    const text = "first\n\n\u{1f469}é\nlast"
    const expected = [["first", 0, 6], ["\u{1f469}é", 7, 14]] // prettier-ignore
    const bytes = utf8.encode(text)
    assert.deepStrictEqual(await wholeLines(reading(bytes)), expected)
    const single = Array.from(bytes, (byte) => Uint8Array.of(byte))
    assert.deepStrictEqual(await wholeLines(reading(...single)), expected)
    assert.deepStrictEqual(await wholeLines(reading(bytes), 7, 14), [["\u{1f469}é", 7, 14]])
    assert.deepStrictEqual(await wholeLines(reading(bytes), 7, 13), [])
  })

  it("are passed over where they are too long for the memory, and those behind them are there", async () => {
    const file = reading(utf8.encode("a\n"), longest + 1, utf8.encode("\nb\n"))
    assert.deepStrictEqual(await wholeLines(file), [
      ["a", 0, 2],
      ["b", longest + 4, longest + 6],
    ])
  })
})
