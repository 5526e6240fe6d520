import { Effect, Exit } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import { type Filter, formatFilter, type Operator, parseFilter, passes } from "../../../src/run/find/filter.ts"
import type { Value } from "../../../src/run/find/Value.ts"

const parse = (text: string): Filter => Effect.runSync(parseFilter(text))
const holds = (text: string, value: Value | undefined): boolean => passes(parse(text), value)

const operator = fc.constantFrom<Operator>("=", "!=", "<", ">", "<=", ">=")
const key = fc
  .stringMatching(/^[^=<>!\s][^=<>!]*$/)
  .map((text) => text.trim())
  .filter((text) => text !== "")
/** What begins with = would be a part of the operator before it. */
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
        const exit = Effect.runSyncExit(parseFilter(text))
        if (Exit.isSuccess(exit)) {
          assert.notStrictEqual(exit.value.key, "")
          assert.notMatch(exit.value.key, /[=<>]/)
        } else {
          const error = Effect.runSync(Effect.flip(parseFilter(text)))
          assert.isTrue(error.message.startsWith(`${text}: expected KEY=VALUE`))
        }
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

  const table: ReadonlyArray<readonly [string, Value | undefined, boolean]> = [
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
