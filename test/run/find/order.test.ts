import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { best } from "../../../src/run/find/best.ts"
import { parseSort, sortBy } from "../../../src/run/find/query.ts"
import type { RunValue } from "../../../src/run/find/Value.ts"

const value = fc.option(fc.oneof(fc.integer(), fc.double(), fc.string(), fc.boolean(), fc.constant(null)), {
  nil: undefined,
})
const isThere = (value: RunValue | undefined): boolean => value !== undefined && value !== null

describe("an order", () => {
  it("is KEY, KEY:asc or KEY:desc", () => {
    const parse = (text: string) => Effect.runSync(parseSort(text))
    assert.deepEqual(parse("steps"), { key: "steps", descending: false })
    assert.deepEqual(parse("algorithm.learning_rate:asc"), { key: "algorithm.learning_rate", descending: false })
    assert.deepEqual(parse("validation:desc"), { key: "validation", descending: true })
    for (const text of ["", ":desc", "steps:down"]) {
      assert.strictEqual(
        Effect.runSync(Effect.flip(parseSort(text))).message,
        `${text}: expected KEY, KEY:asc or KEY:desc`,
      )
    }
  })

  it("keeps all, those without a value last, whichever way it goes", () => {
    fc.assert(
      fc.property(fc.array(value), fc.boolean(), (values, descending) => {
        const items = values.map((value, index) => ({ value, index }))
        const sorted = sortBy(items, ({ value }) => value, descending)
        assert.deepEqual(
          sorted.map(({ index }) => index).sort((a, b) => a - b),
          items.map(({ index }) => index),
        )
        const first = sorted.findIndex(({ value }) => !isThere(value))
        if (first >= 0) assert.isTrue(sorted.slice(first).every(({ value }) => !isThere(value)))
      }),
    )
  })

  it("is that of numbers, and leaves equal ones as they were", () => {
    const items = [3, 1, 20, undefined, 3].map((value, index) => ({ value, index }))
    const order = (descending: boolean) => sortBy(items, ({ value }) => value, descending).map(({ index }) => index)
    assert.deepEqual(order(false), [1, 0, 4, 2, 3])
    assert.deepEqual(order(true), [2, 0, 4, 1, 3])
  })
})

describe("the best", () => {
  const candidate = (run: string, value: RunValue | undefined, ...group: ReadonlyArray<RunValue | undefined>) => ({
    run,
    value,
    group,
  })
  const runs = [
    candidate("a", 3, "ppo"),
    candidate("b", 9, "ppo"),
    candidate("c", 20, "a2c"),
    candidate("d", undefined, "a2c"),
    candidate("e", "fast", "sac"),
    candidate("f", NaN, "sac"),
  ]

  it("is one of each group, the best first, with the mean of those that have a number", () => {
    assert.deepEqual(best(runs), [
      { run: "c", value: 20, group: ["a2c"], runs: 1, mean: 20 },
      { run: "b", value: 9, group: ["ppo"], runs: 2, mean: 6 },
    ])
  })

  it("may be the lowest", () => {
    assert.deepEqual(
      best(runs, true).map(({ run }) => run),
      ["a", "c"],
    )
  })

  it("is the first among equals, and none where nothing has a number", () => {
    assert.deepEqual(
      best([candidate("x", 1), candidate("y", 1)]).map(({ run }) => run),
      ["x"],
    )
    assert.deepEqual(best(runs.slice(3)), [])
  })
})
