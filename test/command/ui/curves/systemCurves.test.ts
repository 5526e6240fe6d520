import { assert, describe, it } from "vitest"
import { systemCurves } from "../../../../src/command/ui/curves/systemCurves.ts"

const line = (seconds: number, speed = 1): string =>
  `${JSON.stringify({ seconds, steps_per_second: speed, rss: 10, heap: 5, buffers: 1, cpu: 0.5 })}\n`

describe("system figures", () => {
  it("are columns, what is unknown in them null, and half a line is none", () => {
    assert.deepStrictEqual(systemCurves(`${line(1)}nonsense\n{"seconds":2,"rss":7}\n${line(3).slice(0, 20)}`), {
      seconds: [1, 2],
      stepsPerSecond: [1, null],
      rss: [10, 7],
      heap: [5, null],
      buffers: [1, null],
      cpu: [0.5, null],
    })
  })

  it("of a resumed run go on where the time before ended", () => {
    assert.deepStrictEqual(systemCurves(line(1) + line(4) + line(0.5) + line(2) + line(1)).seconds, [1, 4, 4.5, 6, 7])
  })

  it("are thinned out, and the last one stays", () => {
    const { seconds, rss } = systemCurves(Array.from({ length: 1201 }, (_, index) => line(index)).join(""))
    assert.isAtMost(seconds.length, 500)
    assert.deepStrictEqual([seconds.length, seconds.at(-1)], [rss.length, 1200])
  })
})
