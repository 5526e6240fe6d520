/** Checks how the page writes numbers. The page's modules are plain scripts, and these need no browser. */
import { assert, describe, it } from "vitest"

const format = new URL("../../../src/command/ui/page/parts/format.js", import.meta.url).href
const { bytes, counted, duration, number, tickTexts, time } = await import(/* @vite-ignore */ format)

describe("the page writes", () => {
  it.for([
    [0, "0"],
    [4096, "4,096"],
    [100_000, "100,000"],
    [-12, "-12"],
    [4.0774, "4.077"],
    [499.2, "499.2"],
    [999.96, "1,000"],
    [12_345.6, "12,346"],
    [0.012345, "0.01235"],
    [0.0001, "1.00e-4"],
    [NaN, "–"],
    [null, "–"],
    [undefined, "–"],
  ] as const)("the number %j as %s", ([value, text]) => assert.strictEqual(number(value), text))

  it.for([
    [[0, 20_000, 40_000], "0 20k 40k"],
    [[2500, 5000, 7500, 10_000], "2.5k 5k 7.5k 10k"],
    [[0, 0.5, 1], "0 0.5 1"],
    [[-1500, -1000, -500, 0], "-1.5k -1k -0.5k 0"],
    [[500_000, 1_000_000], "0.5M 1M"],
    [[0.01, 1, 100, 10_000, 1_000_000], "0.01 1 100 10k 1M"],
    [[4096], "4,096"],
    [[1_024_000, 1_025_000], "1,024,000 1,025,000"],
    [[2e9], "2G"],
    [[], ""],
  ] as const)("the ticks %j as %s", ([ticks, texts]) => assert.strictEqual(tickTexts(ticks).join(" "), texts))

  it.for([
    [0.04, "0.04 s"],
    [29.34, "29.3 s"],
    [59.97, "1 min"],
    [71.2, "1 min 11 s"],
    [119.7, "2 min"],
    [3599.8, "1 h"],
    [3900, "1 h 5 min"],
    [90_000, "25 h"],
    [undefined, "–"],
  ] as const)("%j seconds as %s", ([seconds, text]) => assert.strictEqual(duration(seconds), text))

  it.for([
    [0, "0 B"],
    [999, "999 B"],
    [1000, "1 kB"],
    [1536, "1.54 kB"],
    [999_950, "1 MB"],
    [468_000_000, "468 MB"],
    [3.1e9, "3.1 GB"],
  ] as const)("%j bytes as %s", ([size, text]) => assert.strictEqual(bytes(size), text))

  it("how many there are, and an identifier's time", () => {
    assert.deepStrictEqual([counted(1, "run"), counted(1000, "run")], ["1 run", "1,000 runs"])
    assert.strictEqual(time("2026-01-31_12-00-05"), "2026-01-31 12:00:05")
  })
})
