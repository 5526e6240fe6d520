import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import * as Bm25Memory from "../../../../src/agents/agent/memory/Bm25Memory.ts"
import * as EmbeddingMemory from "../../../../src/agents/agent/memory/EmbeddingMemory.ts"
import * as HistoryList from "../../../../src/agents/agent/memory/HistoryList.ts"
import type { AgentMemory, MemoryEntry } from "../../../../src/agents/agent/memory/Memory.ts"
import * as Reflections from "../../../../src/agents/agent/memory/Reflections.ts"
import { linesOf } from "../support.ts"

const observation = (content: string): MemoryEntry => ({ type: "Observation", content })
const reflection = (content: string): MemoryEntry => ({ type: "Reflection", content })

const filled = (memory: AgentMemory, ...entries: ReadonlyArray<MemoryEntry>) =>
  Effect.as(
    Effect.forEach(entries, (entry) => memory.add(entry)),
    memory,
  )

const contents = (entries: ReadonlyArray<MemoryEntry>): ReadonlyArray<MemoryEntry["content"]> =>
  entries.map(({ content }) => content)

const abcde = ["a", "b", "c", "d", "e"].map(observation)

describe("a history list", () => {
  it.effect("recalls the last entries, oldest first: null is all, 0 is none", () =>
    Effect.gen(function* () {
      const memory = yield* filled(HistoryList.make(), ...abcde)
      const table: ReadonlyArray<readonly [number | null, ReadonlyArray<string>]> = [
        [null, ["a", "b", "c", "d", "e"]],
        [0, []],
        [1, ["e"]],
        [3, ["c", "d", "e"]],
        [5, ["a", "b", "c", "d", "e"]],
        [50, ["a", "b", "c", "d", "e"]],
      ]
      for (const [limit, expected] of table) {
        assert.deepStrictEqual(contents(yield* memory.recall({ query: "", limit })), expected, String(limit))
        const where = (type: string) => type === "Observation"
        assert.deepStrictEqual(contents(yield* memory.recall({ query: "", limit, where })), expected, String(limit))
      }
    }),
  )

  it.effect("forgets the oldest beyond its limit, and nothing without one", () =>
    Effect.gen(function* () {
      const bounded = HistoryList.make({ maxLength: 3 })
      const unbounded = HistoryList.make({ maxLength: null })
      for (let n = 1; n <= 200; n++) {
        yield* bounded.add(observation(String(n)))
        yield* unbounded.add(observation(String(n)))
        const expected = [n - 2, n - 1, n].filter((each) => each > 0).map(String)
        assert.deepStrictEqual(contents(yield* bounded.entries), expected)
        assert.strictEqual(yield* bounded.length, expected.length)
      }
      assert.strictEqual(yield* unbounded.length, 200)
      assert.deepStrictEqual(contents(yield* unbounded.recall({ query: "", limit: 2 })), ["199", "200"])
    }),
  )

  it.effect("holds 100 entries by default", () =>
    Effect.gen(function* () {
      const memory = HistoryList.make()
      for (let n = 0; n < 101; n++) yield* memory.add(observation(String(n)))
      assert.strictEqual(yield* memory.length, 100)
    }),
  )

  it.effect("gives arrays and entries that never change", () =>
    Effect.gen(function* () {
      const content = { message: "Wrong.", extra: { tries: 1 } }
      const memory = yield* filled(HistoryList.make({ maxLength: 2 }), { type: "Feedback", content }, observation("b"))
      const recalled = yield* memory.recall({ query: "", limit: null })
      content.extra.tries = 2
      yield* memory.add(observation("c"))
      assert.deepStrictEqual(contents(recalled), [{ message: "Wrong.", extra: { tries: 1 } }, "b"])
      assert.throws(() => Object.assign(recalled[1], { content: "x" }), TypeError)
      assert.throws(() => Object.assign(recalled[0].content, { message: "x" }), TypeError)
    }),
  )

  it.effect("keeps its limit through a restore, and then the last entries", () =>
    Effect.gen(function* () {
      const snapshot = yield* (yield* filled(HistoryList.make(), ...abcde)).snapshot
      const memory = yield* filled(HistoryList.make({ maxLength: 3 }), observation("old"))
      yield* memory.restore(snapshot, "memory_5.jsonl")
      assert.deepStrictEqual(contents(yield* memory.entries), ["c", "d", "e"])
      yield* memory.add(observation("f"))
      assert.deepStrictEqual(contents(yield* memory.entries), ["d", "e", "f"])
    }),
  )

  it.effect("is saved as lines of JSON, and restored from them", () =>
    Effect.gen(function* () {
      const memory = yield* filled(HistoryList.make(), observation('two\nlines, a "quote"'), {
        type: "Feedback",
        content: { score: 1, message: "ok" },
      })
      const snapshot = yield* memory.snapshot
      assert.strictEqual(
        snapshot,
        '{"type":"Observation","content":"two\\nlines, a \\"quote\\""}\n{"type":"Feedback","content":{"score":1,"message":"ok"}}\n',
      )
      const other = HistoryList.make()
      yield* other.restore(snapshot, "memory_1.jsonl")
      assert.deepStrictEqual(yield* other.entries, yield* memory.entries)
      yield* other.restore("", "memory_0.jsonl")
      assert.strictEqual(yield* other.length, 0)
    }),
  )

  it.effect("refuses an invalid line by its number, and stays unchanged", () =>
    Effect.gen(function* () {
      const good = '{"type":"Observation","content":"a"}'
      const table: ReadonlyArray<readonly [string, string]> = [
        [
          `${good}\n{"type":"Observation","cont`,
          'm.jsonl:2: expected an object with a "type" and a "content" (text or an object) as JSON, found "{\\"type\\":\\"Observation\\",\\"cont"',
        ],
        [
          `${good}\n\n${good}\n`,
          'm.jsonl:2: expected an object with a "type" and a "content" (text or an object) as JSON, found ""',
        ],
        [
          '{"type":"Observation"}\n',
          'm.jsonl:1: expected an object with a "type" and a "content" (text or an object), found {"type":"Observation"}',
        ],
        [
          `${good}\n${good}\n{"type":1,"content":"a"}\n`,
          'm.jsonl:3: expected an object with a "type" and a "content" (text or an object), found {"type":1,"content":"a"}',
        ],
        [
          '{"type":"Observation","content":[1]}\n',
          'm.jsonl:1: expected an object with a "type" and a "content" (text or an object), found {"type":"Observation","content":[1]}',
        ],
      ]
      const memory = yield* filled(HistoryList.make(), observation("held"))
      for (const [text, message] of table) {
        const error = yield* Effect.flip(memory.restore(text, "m.jsonl"))
        assert.strictEqual(error._tag, "AgentError")
        assert.strictEqual(error.message, message)
        assert.deepStrictEqual(contents(yield* memory.entries), ["held"])
      }
    }),
  )

  it.effect("refuses content that JSON cannot hold", () =>
    Effect.gen(function* () {
      const memory = HistoryList.make()
      const error = yield* Effect.flip(memory.add({ type: "Feedback", content: { score: 1n } }))
      assert.match(
        error.message,
        /^memory "history_list": cannot keep a Feedback: .*BigInt.*; expected content that JSON can hold$/,
      )
      assert.strictEqual(yield* memory.length, 0)
    }),
  )
})

const kinds: ReadonlyArray<readonly [string, () => AgentMemory]> = [
  ["history_list", () => HistoryList.make()],
  ["reflections", () => Reflections.make()],
  ["bm25", () => Bm25Memory.make()],
  ["embeddings", () => EmbeddingMemory.make()],
]

describe.each(kinds)("a memory of type %s", (type, make) => {
  it.effect("cannot be written through its read-only view, which sees later entries", () =>
    Effect.gen(function* () {
      const memory = make()
      assert.strictEqual(memory.type, type)
      const view = memory.readOnly
      yield* memory.add(observation("a"))
      assert.deepStrictEqual(yield* linesOf(view), ["Observation: a"])
      for (const write of [
        view.add(observation("b")),
        view.restore("", "m.jsonl"),
        view.readOnly.add(reflection("c")),
      ]) {
        const exit = yield* Effect.exit(write)
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
        assert.match(
          Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "",
          new RegExp(`memory "${type}": cannot .*read-only`),
        )
      }
      assert.deepStrictEqual(yield* linesOf(memory), ["Observation: a"])
    }),
  )

  it.effect("is copied with its entries only, from a read-only view too", () =>
    Effect.gen(function* () {
      const memory = make()
      yield* memory.add(observation("a"))
      const copy = yield* memory.readOnly.copy
      yield* copy.add(observation("b"))
      yield* memory.add(observation("c"))
      assert.strictEqual(copy.type, type)
      assert.deepStrictEqual(yield* linesOf(copy), ["Observation: a", "Observation: b"])
      assert.deepStrictEqual(yield* linesOf(memory), ["Observation: a", "Observation: c"])
    }),
  )

  it.effect("is restored from its snapshot", () =>
    Effect.gen(function* () {
      const memory = yield* filled(make(), observation("a"), reflection("r"), observation("b"))
      const other = make()
      yield* other.restore(yield* memory.snapshot, "m.jsonl")
      assert.strictEqual(yield* other.snapshot, yield* memory.snapshot)
    }),
  )
})

describe("reflections", () => {
  it.effect("are not forgotten because of observations, and keep their order", () =>
    Effect.gen(function* () {
      const memory = Reflections.make({ maxLength: 2, maxReflections: 2 })
      yield* filled(memory, observation("a"), reflection("r1"), observation("b"), observation("c"), reflection("r2"))
      assert.deepStrictEqual(contents(yield* memory.entries), ["r1", "b", "c", "r2"])
      yield* filled(memory, reflection("r3"), observation("d"))
      assert.deepStrictEqual(contents(yield* memory.entries), ["c", "r2", "r3", "d"])
      const recall = (limit: number | null, where?: (type: string) => boolean) =>
        Effect.map(memory.recall({ query: "", limit, ...(where === undefined ? {} : { where }) }), contents)
      assert.deepStrictEqual(yield* recall(3), ["r2", "r3", "d"])
      assert.deepStrictEqual(yield* recall(0), [])
      assert.deepStrictEqual(yield* recall(1, (type) => type === "Reflection"), ["r3"])
      assert.deepStrictEqual(yield* recall(null, (type) => type !== "Reflection"), ["c", "d"])
    }),
  )

  it.effect("that are equal count as separate entries", () =>
    Effect.gen(function* () {
      const source = yield* filled(HistoryList.make(), observation("a"), reflection("r"))
      const [a, r] = yield* source.entries
      const memory = yield* filled(Reflections.make(), a, r, a, r)
      assert.deepStrictEqual(contents(yield* memory.entries), ["a", "r", "a", "r"])
    }),
  )
})
