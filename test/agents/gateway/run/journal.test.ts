import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { JournalEntry } from "../../../../src/agents/gateway/run/journal.ts"
import { SessionRecords, noTotals } from "../../../../src/agents/gateway/run/SessionRecords.ts"

const spent = { calls: 1, inputTokens: 2, outputTokens: 3, money: 0.5 }
const call = { _tag: "Call", id: "a", index: 0, call: null, problem: "It failed.", latencyMillis: 5, spent, seconds: 1 }
const reward = { _tag: "Rewarded", id: "a", reward: 1 }

describe("an entry of the journal", () => {
  it("has only values that the gateway writes", () => {
    const isEntry = Schema.is(JournalEntry)
    assert.isTrue(isEntry(call) && isEntry(reward))
    const wrong = [
      ...["calls", "inputTokens", "outputTokens", "money"].map((key) => ({ ...call, spent: { ...spent, [key]: -1 } })),
      ...["../../evil", "a\nb", "", "a".repeat(129)].flatMap((id) => [
        { ...call, id },
        { ...reward, id },
      ]),
      { ...call, index: -1 },
      { ...call, latencyMillis: -1 },
      { ...call, seconds: -1 },
      { ...reward, reward: 1e308 },
    ]
    for (const entry of wrong) assert.isFalse(isEntry(entry), JSON.stringify(entry))
  })

  it("does not replace the reward of a session", () => {
    const records = new SessionRecords(noTotals())
    records.add({ _tag: "Begun", id: "a", agent: "mine", groupId: null, tags: {}, samplingSeed: 1 })
    for (const reward of [1, 100]) records.add({ _tag: "Rewarded", id: "a", reward })
    assert.strictEqual(records.add({ _tag: "Ended", id: "a", how: "agent", seconds: 1 })?.reward, 1)
  })
})
