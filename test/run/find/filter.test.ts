import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import {
  type RunFilter,
  formatFilter,
  type Operator,
  parseFilter,
  parseSearch,
  passes,
} from "../../../src/run/find/filter.ts"
import type { RunValue } from "../../../src/run/find/Value.ts"

const parse = (text: string): RunFilter => {
  const parsed = parseFilter(text)
  if ("problem" in parsed) throw new Error(parsed.problem)
  return parsed.filter
}
const holds = (text: string, value: RunValue | undefined): boolean => passes(parse(text), value)

const operator = fc.constantFrom<Operator>("=", "!=", "<", ">", "<=", ">=")
const key = fc
  .stringMatching(/^[^=<>!\s][^=<>!]*$/)
  .map((text) => text.trim())
  .filter((text) => text !== "")
/** Generates values. A value that begins with = would be read as a part of the operator before it. */
const value = fc
  .string()
  .map((text) => text.trim())
  .filter((text) => !text.startsWith("="))

describe("a filter", () => {
  it("is the same when it is written and read again", () => {
    fc.assert(
      fc.property(fc.record({ key, operator, value }), (filter) => {
        assert.deepEqual(parse(formatFilter(filter)), filter)
        assert.deepEqual(parse(` ${filter.key} ${filter.operator} ${filter.value} `), filter)
      }),
    )
  })

  it("is read from any text, or refused in one line that begins with it", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "=", "<", ">", "!", " ", ".", "1") }), (text) => {
        const parsed = parseFilter(text)
        if ("filter" in parsed) {
          assert.notStrictEqual(parsed.filter.key, "")
          assert.notMatch(parsed.filter.key, /[=<>]/)
        } else assert.isTrue(parsed.problem.startsWith(`${text}: expected KEY=VALUE`))
      }),
    )
  })

  it("orders numbers as numbers do", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.integer(), (found, wanted) => {
        assert.strictEqual(holds(`a<${wanted}`, found), found < wanted)
        assert.strictEqual(holds(`a>=${wanted}`, found), found >= wanted)
        assert.strictEqual(holds(`a=${wanted}`, found), found === wanted)
        assert.strictEqual(holds(`a!=${wanted}`, found), found !== wanted)
      }),
    )
  })

  const table: ReadonlyArray<readonly [string, RunValue | undefined, boolean]> = [
    ["algorithm=history_agent", "history-agent", true],
    ["algorithm!=history_agent", "history-agent", false],
    ["population.environment=my-items", "my_items", true],
    ["name=train_cartpole", "train-pendulum", false],
    ["a=history_agent", "history-agent", false],
    ["lr=1e-3", 0.001, true],
    ["lr==0.001", 0.001, true],
    ["lr<0.01", 0.001, true],
    ["lr<=0.001", 0.001, true],
    ["lr>=0.001", 0.001, true],
    ["lr<0.001", 0.001, false],
    ["lr>0.001", 0.001, false],
    ["lr<fast", 0.001, false],
    ["lr!=fast", 0.001, true],
    ["name=7", "7", true],
    ["name=07", "7", false],
    ["time>2026-02", "2026-03-01_00-00-00", true],
    ["time<2026-02", "2026-03-01_00-00-00", false],
    ["flag=true", true, true],
    ["flag=yes", true, false],
    ["target=null", null, true],
    ["target<3", null, false],
    ["gone=null", undefined, false],
    ["gone!=3", undefined, true],
    ["gone<3", undefined, false],
    ["name=a=b", "a=b", true],
    ["name=", "", true],
  ]
  for (const [text, found, expected] of table) {
    it(`${text} ${expected ? "takes" : "leaves"} ${String(found)}`, () => {
      assert.strictEqual(holds(text, found), expected)
    })
  }
})

describe("a search", () => {
  it("has words and filters, divided by spaces", () => {
    const search = parseSearch('PPO algorithm.learning_rate<1e-3  validation > 400 name="my run" "two words"')
    assert.deepStrictEqual(search, {
      words: ["ppo", "two words"],
      filters: [
        { key: "algorithm.learning_rate", operator: "<", value: "1e-3" },
        { key: "validation", operator: ">", value: "400" },
        { key: "name", operator: "=", value: "my run" },
      ],
      problems: [],
    })
  })

  it("names each part that is no condition, and keeps the others", () => {
    const search = parseSearch("ppo validation> =3")
    assert.deepStrictEqual(search.words, ["ppo"])
    assert.deepStrictEqual(search.filters, [{ key: "validation", operator: ">", value: "=3" }])
    assert.deepStrictEqual(parseSearch("ppo validation>").problems, ["validation>: expected a value after >"])
    assert.deepStrictEqual(parseSearch("<3").problems, ["<3: expected a key before the operator"])
  })

  it("reads every filter as it was written", () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.record({ key: fc.stringMatching(/^[a-z][a-z_.]*$/), operator, value: fc.stringMatching(/^[a-z0-9.-]+$/) }),
        ),
        (filters) => {
          assert.deepStrictEqual(parseSearch(filters.map(formatFilter).join(" ")).filters, filters)
        },
      ),
    )
  })
})
