import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { type JournalEntry, JournalLine, lineOf, readEarlier } from "../../../../src/agents/gateway/run/journal.ts"
import { SessionRecords, noTotals } from "../../../../src/agents/gateway/run/SessionRecords.ts"

import type { ChatMessage, ToolSpec } from "../../../../src/agents/lm/Chat.ts"
import { gatewayJournal } from "../../../../src/run/Layout.ts"
import { makeRunFiles } from "../../../../src/run/store/RunFiles.ts"
import { inMemory, treeOf } from "../../../../src/run/store/Folder.ts"
import { completion } from "../../lm/support.ts"

const spent = { calls: 1, inputTokens: 2, outputTokens: 3, money: 0.5 }
const call = { _tag: "Call", id: "a", index: 0, call: null, problem: "It failed.", latencyMillis: 5, spent, seconds: 1 }
const reward = { _tag: "Rewarded", id: "a", reward: 1 }

describe("an entry of the journal", () => {
  it("has only values that the gateway writes", () => {
    const isEntry = Schema.is(JournalLine)
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
    assert.strictEqual(records.add({ _tag: "Ended", id: "a", how: "agent", seconds: 1 }).ended?.reward, 1)
  })
})

/** Returns the entries of a session whose calls have these prompts, and the lines that a gateway writes for them. */
const journalOf = (prompts: ReadonlyArray<ReadonlyArray<string>>, tools: ReadonlyArray<ToolSpec>) => {
  const records = new SessionRecords(noTotals())
  const entries: ReadonlyArray<JournalEntry> = [
    { _tag: "Begun", id: "a", agent: "mine", groupId: null, tags: {}, samplingSeed: 1 },
    ...prompts.map((prompt, index): JournalEntry => {
      const messages = prompt.map((content): ChatMessage => ({ role: "user", content }))
      const made = { purpose: "action", target: "internal", loopIndex: index, messages, tools } as const
      const ended = { ...made, completion: completion("Yes."), toolResults: [], parsed: null, incomplete: false }
      return { _tag: "Call", id: "a", index, call: ended, problem: null, latencyMillis: 1, spent, seconds: index }
    }),
  ]
  return { entries, lines: entries.map((entry) => lineOf(entry, records.add(entry).start)) }
}

/** Reads lines as a resumed gateway does. */
const read = (lines: ReadonlyArray<string>) => readBytes(new TextEncoder().encode(lines.join("")))

const readBytes = Effect.fnUntraced(function* (bytes: Uint8Array) {
  const files = new Map([[`run/${gatewayJournal}`, bytes]])
  const identity = { name: "gateway", population: {}, seed: 0 }
  const run = makeRunFiles(treeOf("run", inMemory(files)("run")), identity, true)
  const entries: Array<JournalEntry> = []
  yield* readEarlier(run, (entry) => Effect.sync(() => void entries.push(entry)))
  return entries
})

describe("the journal of a long conversation", () => {
  const text = (turn: number): string => `${turn} `.padEnd(1000, "x")
  const tools = [{ name: "add", description: "y".repeat(1000), parameters: { type: "object" } }]
  const grown = Array.from({ length: 20 }, (_, turn) => Array.from({ length: turn + 1 }, (_, at) => text(at)))

  it.effect("has each message and tool once, and gives all prompts back", () =>
    Effect.gen(function* () {
      // Two conversations in turns, and a prompt that is rewritten.
      const prompts = [...grown.flatMap((one) => [one, ["other", ...one]]), [text(0), "rewritten", text(2)]]
      const { entries, lines } = journalOf(prompts, tools)
      assert.deepStrictEqual(yield* read(lines), entries)
      const characters = lines.join("").length
      assert.isAtMost(characters, 2 * 20 * 1000 + prompts.length * 800 + 5000)
    }),
  )

  it.effect("cannot be read without the call in which a prompt begins", () =>
    Effect.gen(function* () {
      const { lines } = journalOf(grown.slice(0, 3), tools)
      const error = yield* Effect.flip(read([lines[0], lines[2], lines[3]]))
      assert.match(error.message, /sessions.jsonl:2: the call with the beginning of its prompt is not in the file/)
    }),
  )

  it.effect("is refused if few characters of it become far more", () =>
    Effect.gen(function* () {
      const { entries, lines } = journalOf([["x".repeat(2 ** 20)]], tools)
      const [begun, first] = entries
      const again = (index: number): JournalEntry => (first._tag === "Call" ? { ...first, index } : first)
      const start = { call: 0, messages: 1, tools: true }
      const many = Array.from({ length: 1024 }, (_, at) => lineOf(again(at + 1), start))
      assert.strictEqual(begun._tag, "Begun")
      const error = yield* Effect.flip(read([...lines, ...many]))
      assert.match(error.message, /expected at most 1073741824 characters in all calls of the session "a"/)
    }),
  )

  it.effect("can be read up to the last whole line, wherever it ends", () =>
    Effect.gen(function* () {
      const ids = (id: string): ReadonlyArray<ChatMessage> => [
        { role: "user", content: "Ünïcode" },
        { role: "assistant", content: "", toolCalls: [{ id, name: "add", arguments: '{"a":1}' }] },
        { role: "tool", toolCallId: id, toolName: "add", content: "2" },
      ]
      const other = [{ ...tools[0], description: "changed" }]
      const calls = [
        { id: "a", messages: ids("x"), tools },
        { id: "b", messages: ids("x"), tools },
        // The agent numbers its calls anew, so the record must have these ids.
        { id: "a", messages: [...ids("y"), { role: "user", content: "Next" }], tools },
        { id: "a", messages: [...ids("x"), { role: "user", content: "Branch" }], tools: other },
        { id: "a", messages: [...ids("x"), { role: "user", content: "Branch" }], tools: [] },
        { id: "b", messages: [...ids("x"), ...ids("z")], tools: other },
      ] as const
      const entries: ReadonlyArray<JournalEntry> = [
        ...["a", "b"].map(
          (id) => ({ _tag: "Begun", id, agent: "m", groupId: null, tags: {}, samplingSeed: 1 }) as const,
        ),
        ...calls.map(({ id, messages, tools }, index): JournalEntry => {
          const own = { messages, ...(tools.length === 0 ? {} : { tools }), completion: completion("Yes.") }
          const made = {
            purpose: "action",
            target: "internal",
            loopIndex: index,
            toolResults: [],
            parsed: null,
          } as const
          return { ...call, _tag: "Call", id, index, call: { ...made, ...own, incomplete: false }, problem: null }
        }),
        { _tag: "Ended", id: "a", how: "agent", seconds: 2 },
      ]
      const records = new SessionRecords(noTotals())
      const bytes = new TextEncoder().encode(entries.map((entry) => lineOf(entry, records.add(entry).start)).join(""))
      for (let end = 0; end <= bytes.length; end += 31) {
        const kept = bytes.slice(0, end)
        const whole = kept.filter((byte) => byte === 10).length
        assert.deepStrictEqual(yield* readBytes(kept), entries.slice(0, whole))
      }
      assert.deepStrictEqual(yield* readBytes(bytes), entries)
    }),
  )
})
