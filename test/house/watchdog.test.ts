import { assert, describe, it } from "@effect/vitest"
import { atStart, below, type Elapsed, limitReached, looked, progressed } from "./watchdog.ts"

const limits = { cpuSeconds: 30, idleSeconds: 20, unmeasuredSeconds: 60 }

/** Looks every ten seconds at tests that have taken these CPU seconds by then. */
const after = (cpuSeconds: ReadonlyArray<number | undefined>, start = atStart): Elapsed =>
  cpuSeconds.reduce<Elapsed>((elapsed, seconds) => looked(elapsed, seconds, 10), start)

describe("the watchdog", () => {
  it("ends a test that computes without end", () => {
    assert.isUndefined(limitReached(after([10, 20, 29]), limits))
    assert.strictEqual(limitReached(after([10, 20, 30]), limits), "30 CPU seconds")
  })

  it("ends a test that waits while next to nothing is computed", () => {
    assert.isUndefined(limitReached(after([5, 5.05]), limits))
    assert.strictEqual(limitReached(after([5, 5.05, 5.1]), limits), "20 idle seconds")
  })

  it("lets a test go on that gets little of a busy machine, however long", () => {
    const slow = Array.from({ length: 100 }, (_, at) => at * 0.2)
    assert.isUndefined(limitReached(after(slow), limits))
  })

  it("counts again once a test has begun or ended", () => {
    assert.isUndefined(limitReached(after([30, 49], progressed(after([10, 20]))), limits))
    assert.strictEqual(limitReached(after([30, 50], progressed(after([10, 20]))), limits), "30 CPU seconds")
    assert.isUndefined(limitReached(after([5], progressed(after([5, 5]))), limits))
    assert.isUndefined(limitReached(progressed(after(Array(6).fill(undefined))), limits))
  })

  it("counts wall time where the system doesn't tell the CPU time", () => {
    assert.isUndefined(limitReached(after(Array(5).fill(undefined)), limits))
    assert.strictEqual(limitReached(after(Array(6).fill(undefined)), limits), "60 seconds")
  })

  it("ends the processes below its own at any depth, and no others", () => {
    const parents = new Map([
      [1, 0],
      [10, 1],
      [11, 10],
      [12, 11],
      [13, 10],
      [20, 1],
      [21, 20],
    ])
    assert.sameMembers([...below(parents, 10)], [11, 12, 13])
    assert.deepEqual(below(parents, 21), [])
  })
})
