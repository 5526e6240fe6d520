import { Effect, Exit, Schema } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Bm25Memory from "../src/agents/agent/memory/Bm25Memory.ts"
import * as EmbeddingMemory from "../src/agents/agent/memory/EmbeddingMemory.ts"
import * as HistoryList from "../src/agents/agent/memory/HistoryList.ts"
import * as KeyValueMemory from "../src/agents/agent/memory/KeyValueMemory.ts"
import type { AgentMemory, MemoryEntry } from "../src/agents/agent/memory/Memory.ts"
import * as Reflections from "../src/agents/agent/memory/Reflections.ts"
import * as Parser from "../src/agents/agent/Parser.ts"

const word = fc.constantFrom("red", "door", "key", "blue", "a", "gate", "ünï", "")
const text = fc.oneof(
  fc.array(word, { maxLength: 4 }).map((words) => words.join(" ")),
  fc.string({ maxLength: 12 }),
  fc.constantFrom("two\nlines", '"quoted"', "\u2028", "{}"),
)
const content = fc.oneof(
  text,
  fc.record({
    score: fc.integer(),
    target: fc.option(text),
    message: text,
    extra: fc.dictionary(text, fc.jsonValue()),
  }),
)
const entry: fc.Arbitrary<MemoryEntry> = fc.record({
  type: fc.constantFrom("Observation", "Action", "Feedback", "Reflection", "Own"),
  content,
})
const noted: fc.Arbitrary<MemoryEntry> = fc
  .tuple(fc.constantFrom("a", "b", "c", "__proto__"), fc.option(text))
  .map(([key, value]) => KeyValueMemory.note(key, value))

const bound = fc.option(fc.integer({ min: 1, max: 8 }))
const limit = fc.option(fc.integer({ min: 0, max: 10 }))
const entries = fc.array(entry, { maxLength: 25 })

interface Kind {
  readonly name: string
  readonly make: (maxLength: number | null) => AgentMemory
  readonly entries: fc.Arbitrary<ReadonlyArray<MemoryEntry>>
  /** The largest number of entries that this memory may hold for a `maxLength`. */
  readonly most: (maxLength: number) => number
}

const same = (maxLength: number): number => maxLength

const kinds: ReadonlyArray<Kind> = [
  { name: "history_list", make: (maxLength) => HistoryList.make({ maxLength }), entries, most: same },
  {
    name: "reflections",
    make: (maxLength) => Reflections.make({ maxLength, maxReflections: maxLength }),
    entries,
    most: (maxLength) => 2 * maxLength,
  },
  { name: "bm25", make: (maxLength) => Bm25Memory.make({ maxLength }), entries, most: same },
  { name: "embeddings", make: (maxLength) => EmbeddingMemory.make({ maxLength }), entries, most: same },
  {
    name: "key_value",
    make: (maxLength) => KeyValueMemory.make({ maxLength }),
    entries: fc.array(noted, { maxLength: 25 }),
    most: same,
  },
]

const run = Effect.runSync

const filled = (memory: AgentMemory, all: ReadonlyArray<MemoryEntry>): AgentMemory => {
  for (const each of all) run(memory.add(each))
  return memory
}

const recall = (memory: AgentMemory, query: string, limit: number | null) => run(memory.recall({ query, limit }))

describe.each(kinds)("a memory of type $name", ({ make, entries, most }) => {
  const memories = fc.tuple(bound, entries)

  it("is equal after a snapshot and a restore, also in its later recalls", () => {
    fc.assert(
      fc.property(memories, entries, text, limit, ([maxLength, all], later, query, limit) => {
        const memory = filled(make(maxLength), all)
        const snapshot = run(memory.snapshot)
        const restored = filled(make(maxLength), later)
        run(restored.restore(snapshot, "m.jsonl"))
        assert.strictEqual(run(restored.snapshot), snapshot)
        assert.deepStrictEqual(recall(restored, query, limit), recall(memory, query, limit))
        filled(restored, later)
        filled(memory, later)
        assert.strictEqual(run(restored.snapshot), run(memory.snapshot))
        // One that lived on, in which things were found and forgotten, finds what a new one does.
        const fresh = make(maxLength)
        run(fresh.restore(run(memory.snapshot), "m.jsonl"))
        for (const same of [restored, fresh]) {
          assert.deepStrictEqual(recall(same, query, limit), recall(memory, query, limit))
        }
      }),
    )
  })

  it("never holds more than its limit, and counts its entries", () => {
    fc.assert(
      fc.property(memories, ([maxLength, all]) => {
        const memory = make(maxLength)
        for (const each of all) {
          run(memory.add(each))
          const held = run(memory.entries)
          assert.strictEqual(run(memory.length), held.length)
          if (maxLength !== null) assert.isAtMost(held.length, most(maxLength))
        }
      }),
    )
  })

  it("recalls at most the limit, in order, and everything for null", () => {
    fc.assert(
      fc.property(memories, text, limit, ([maxLength, all], query, limit) => {
        const memory = filled(make(maxLength), all)
        const held = run(memory.entries)
        const found = recall(memory, query, limit)
        if (limit === null) assert.deepStrictEqual(found, held)
        else assert.isAtMost(found.length, limit)
        const places = found.map((each) => held.findIndex((other) => other === each))
        assert.isTrue(places.every((place) => place >= 0))
        assert.deepStrictEqual(
          places,
          [...new Set(places)].sort((a, b) => a - b),
        )
        assert.deepStrictEqual(run(memory.entries), held)
      }),
    )
  })

  it("cannot be changed through a read-only view or a copy", () => {
    fc.assert(
      fc.property(memories, entries, ([maxLength, all], later) => {
        const memory = filled(make(maxLength), all)
        const before = run(memory.snapshot)
        const view = memory.readOnly
        for (const each of later) assert.isTrue(Exit.hasDies(Effect.runSyncExit(view.add(each))))
        assert.isTrue(Exit.hasDies(Effect.runSyncExit(view.restore("", "m.jsonl"))))
        filled(run(view.copy), later)
        assert.strictEqual(run(memory.snapshot), before)
        filled(memory, later)
        assert.strictEqual(run(view.snapshot), run(memory.snapshot))
      }),
    )
  })
})

const said = fc.oneof(
  fc.string(),
  fc
    .array(
      fc.constantFrom("<a>", "</a>", "<b>", "</b>", "\\boxed{", "}", "{", "[", "]", '"', "x", " ", "\n", '{"k":1}'),
      {
        maxLength: 14,
      },
    )
    .map((parts) => parts.join("")),
)

const leaf: fc.Arbitrary<Parser.Parser> = fc.constantFrom(
  Parser.whole,
  Parser.tagged("a", { reward: 0.5, penalty: -0.25 }),
  Parser.tagged("b", { penalty: -1 }),
  Parser.boxed(),
  Parser.json(Schema.Struct({ k: Schema.Int })),
)

describe("parsers", () => {
  it("handle any text deterministically, with penalties only for failures", () => {
    fc.assert(
      fc.property(leaf, said, (parse, text) => {
        const result = parse(text)
        assert.deepStrictEqual(parse(text), result)
        if (result._tag === "Failed") assert.isAtMost(result.reward, 0)
        else assert.strictEqual(result.action, result.action.trim())
      }),
    )
  })

  it("find an action in their format, whatever text precedes it", () => {
    fc.assert(
      fc.property(
        said,
        fc.string().filter((action) => action.trim() !== ""),
        (before, action) => {
          const plain = action.replace(/[<>{}\\]/g, "") || "x"
          fc.pre(plain.trim() !== "")
          const found = Parser.parsed(plain.trim())
          assert.deepStrictEqual(Parser.tagged("t")(`${before}<t>${plain}</t>`), found)
          assert.deepStrictEqual(Parser.boxed()(`${before}\n\\boxed{${plain}}`), found)
        },
      ),
    )
  })

  it("find JSON within text", () => {
    const words = fc.string().map((text) => text.replace(/[[\]{}"]/g, ""))
    fc.assert(
      fc.property(words, words, fc.record({ k: fc.integer(), s: fc.string() }), (before, after, value) => {
        const parse = Parser.json(Schema.Struct({ k: Schema.Int, s: Schema.String }))
        const written = JSON.stringify(value)
        assert.deepStrictEqual(parse(`${before} ${written} ${after}`), { _tag: "Parsed", action: written, reward: 0 })
      }),
    )
  })

  it("are associative under `orElse`, and never worse than the first", () => {
    const { orElse } = Parser
    fc.assert(
      fc.property(leaf, leaf, leaf, said, (a, b, c, text) => {
        assert.deepStrictEqual(orElse(orElse(a, b), c)(text), orElse(a, orElse(b, c))(text))
        assert.deepStrictEqual(orElse(a, b, c)(text), orElse(a, orElse(b, c))(text))
        if (a(text)._tag === "Parsed") assert.deepStrictEqual(orElse(a, b)(text), a(text))
      }),
    )
  })

  it("respect identity and composition under `map`, and add rewards under `all`", () => {
    const { map, all } = Parser
    const upper = (text: string) => text.toUpperCase()
    const twice = (text: string) => text + text
    fc.assert(
      fc.property(leaf, leaf, said, (a, b, text) => {
        assert.deepStrictEqual(map(a, (action) => action)(text), a(text))
        assert.deepStrictEqual(map(map(a, upper), twice)(text), map(a, (action) => twice(upper(action)))(text))
        const [one, other] = [a(text), b(text)]
        const both = all({ one: a, other: b }, ({ one }) => one)(text)
        assert.strictEqual(both._tag === "Parsed", one._tag === "Parsed" && other._tag === "Parsed")
        const counted = both._tag === "Parsed" ? [one, other] : [one, other].filter(({ _tag }) => _tag === "Failed")
        assert.strictEqual(
          both.reward,
          counted.reduce((sum, { reward }) => sum + reward, 0),
        )
      }),
    )
  })
})
