import { assert, describe, it } from "vitest"
import { oneAtATime, stallMeter } from "../../../../src/command/cli/userCode/stall.ts"

describe("a call of the user's code", () => {
  it("that computes for ten seconds of CPU time is stalled, however long that took", () => {
    const now = { cpuMillis: 500, wallMillis: 70_000, steps: 3 }
    const meter = stallMeter(() => ({ ...now }))
    now.cpuMillis += 9_999
    now.wallMillis += 100_000
    assert.isUndefined(meter.stalledMillis(), "a busy machine is no stall")
    now.cpuMillis += 1
    assert.strictEqual(meter.stalledMillis(), 100_000)
  })

  it("that waits for two minutes without computing is stalled", () => {
    const now = { cpuMillis: 0, wallMillis: 0, steps: 0 }
    const meter = stallMeter(() => ({ ...now }))
    now.wallMillis = 119_999
    assert.isUndefined(meter.stalledMillis())
    now.wallMillis = 120_000
    assert.strictEqual(meter.stalledMillis(), 120_000)
  })

  it("is another call after each step of an env, and after each turn of the event loop", () => {
    const now = { cpuMillis: 0, wallMillis: 0, steps: 0 }
    const meter = stallMeter(() => ({ ...now }))
    now.cpuMillis = 9_000
    now.steps = 1
    assert.isUndefined(meter.stalledMillis())
    now.cpuMillis = 18_000
    assert.isUndefined(meter.stalledMillis(), "9 seconds since the step was seen")
    meter.turned()
    now.cpuMillis = 27_000
    assert.isUndefined(meter.stalledMillis(), "9 seconds since the turn")
    now.cpuMillis = 28_000
    assert.strictEqual(meter.stalledMillis(), 0)
  })
})

describe("a question that may have no answer for long", () => {
  it("skips a question while the last one is unanswered", () => {
    const open: Array<() => void> = []
    const ask = oneAtATime((answered) => open.push(answered))
    ask()
    ask()
    ask()
    assert.lengthOf(open, 1)
    open[0]()
    ask()
    ask()
    assert.lengthOf(open, 2)
  })
})
