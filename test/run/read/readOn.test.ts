import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { type ReadPosition, readOn, start, wholeLines } from "../../../src/run/read/readOn.ts"
import { memorySource } from "./memorySource.ts"

/** Reads whole lines of a file that changes, and counts the bytes that were taken. */
const following = () => {
  let position: ReadPosition = start
  let lines: Array<string> = []
  let taken = 0
  const read = (text: string) => {
    position = Effect.runSync(
      readOn(memorySource({ file: text }), "file", position, {
        take: (bytes) => {
          const whole = wholeLines(bytes)
          taken += whole
          lines.push(...new TextDecoder().decode(bytes.subarray(0, whole)).split("\n").slice(0, -1))
          return whole
        },
        restart: () => void (lines = []),
      }),
    )
    return lines
  }
  return { read, taken: () => taken }
}

describe("a growing file", () => {
  it("is read on from where the last whole line ended", () => {
    const { read, taken } = following()
    assert.deepStrictEqual(read("a\nb\nha"), ["a", "b"])
    assert.deepStrictEqual(read("a\nb\nhalf\nc\n"), ["a", "b", "half", "c"])
    assert.strictEqual(taken(), "a\nb\nhalf\nc\n".length)
    assert.deepStrictEqual(read("a\nb\nhalf\nc\n"), ["a", "b", "half", "c"])
  })

  it("is read from its beginning when it was cut back or written anew", () => {
    const { read } = following()
    read("a\nb\nc\n")
    assert.deepStrictEqual(read("a\n"), ["a"])
    assert.deepStrictEqual(read("x\ny\nz\n"), ["x", "y", "z"])
    assert.deepStrictEqual(read("1\n2\n3\n"), ["1", "2", "3"])
  })

  it("may have a line that is longer than what is read at a time", () => {
    const long = "x".repeat(5 << 20)
    assert.deepStrictEqual(
      following()
        .read(`a\n${long}\nb\n`)
        .map(({ length }) => length),
      [1, long.length, 1],
    )
  })
})
