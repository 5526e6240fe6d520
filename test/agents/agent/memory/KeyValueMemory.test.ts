import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import * as KeyValueMemory from "../../../../src/agents/agent/memory/KeyValueMemory.ts"
import type { AgentMemory } from "../../../../src/agents/agent/memory/Memory.ts"
import * as ReActAgent from "../../../../src/agents/agent/ReActAgent.ts"
import * as ToolAgent from "../../../../src/agents/agent/ToolAgent.ts"
import { calls, inTurn, lastOf, linesOf, look, play, told } from "../support.ts"

const { note } = KeyValueMemory

const noted = (memory: AgentMemory, ...notes: ReadonlyArray<readonly [string, string | null]>) =>
  Effect.as(
    Effect.forEach(notes, ([key, value]) => memory.add(note(key, value))),
    memory,
  )

const keysOf = (memory: AgentMemory, limit: number | null = null) =>
  Effect.map(memory.recall({ query: "", limit }), (entries) =>
    entries.map(({ content }) =>
      typeof content === "string" ? "" : `${String(content["key"])}=${String(content["value"])}`,
    ),
  )

describe("a memory of notes", () => {
  it.effect("holds one note for each name, the last one written", () =>
    Effect.gen(function* () {
      const memory = yield* noted(KeyValueMemory.make(), ["a", "1"], ["b", "2"], ["a", "3"], ["c", "4"], ["b", null])
      assert.deepStrictEqual(yield* keysOf(memory), ["a=3", "c=4"])
      assert.strictEqual(yield* memory.length, 2)
      yield* noted(memory, ["nothing", null])
      assert.deepStrictEqual(yield* keysOf(memory, 1), ["c=4"])
      assert.deepStrictEqual(yield* keysOf(memory, 0), [])
    }),
  )

  it.effect("forgets the oldest note", () =>
    Effect.gen(function* () {
      const memory = yield* noted(KeyValueMemory.make({ maxLength: 2 }), ["a", "1"], ["b", "2"], ["a", "3"], ["c", "4"])
      assert.deepStrictEqual(yield* keysOf(memory), ["a=3", "c=4"])
      const copy = yield* noted(yield* memory.copy, ["d", "5"])
      assert.deepStrictEqual(yield* keysOf(copy), ["c=4", "d=5"])
      assert.deepStrictEqual(yield* keysOf(memory), ["a=3", "c=4"])
    }),
  )

  it.effect("keeps only notes, and refuses a snapshot of anything else", () =>
    Effect.gen(function* () {
      const memory = yield* noted(KeyValueMemory.make(), ["a", "1"])
      yield* memory.add({ type: "Observation", content: "A door." })
      assert.strictEqual(yield* memory.snapshot, '{"type":"Note","content":{"key":"a","value":"1"}}\n')
      const other = `${yield* memory.snapshot}{"type":"Observation","content":"A door."}\n`
      const error = yield* Effect.flip(memory.restore(other, "m.jsonl"))
      assert.strictEqual(error.message, 'm.jsonl:2: a memory of type "key_value" cannot hold the Observation "A door."')
      assert.deepStrictEqual(yield* keysOf(memory), ["a=1"])
      assert.isTrue(Exit.hasDies(yield* Effect.exit(memory.readOnly.add(note("b", "2")))))
    }),
  )

  it.effect("is written and read by the model, and only read in evaluation", () =>
    Effect.gen(function* () {
      const memory = KeyValueMemory.make()
      const script = inTurn(
        calls(["1", "remember", { key: "red", value: "iron" }], ["2", "remember", { key: "blue", value: "x" }]),
        "go",
        calls(["3", "look_up", { key: "red" }], ["4", "look_up", { key: "green" }], ["5", "forget", { key: "blue" }]),
        "go",
        calls(
          ["6", "remember", { key: "red", value: "brass" }],
          ["7", "forget", { key: "red" }],
          ["8", "look_up", { key: "red" }],
        ),
        "go",
      )
      const agent = yield* Effect.provide(ToolAgent.make({ model: "m", memory }), script.layer)
      const results = (at: number) =>
        script.requests[at].messages.flatMap((message) => (message.role === "tool" ? [message.content] : []))
      yield* play(agent, "A red door.", [{ observation: null, feedback: told(1) }])
      assert.deepStrictEqual(results(1), ["Noted: red", "Noted: blue"])
      yield* play(agent, "A red gate.", [{ observation: null, feedback: told(1) }])
      assert.strictEqual(
        lastOf(script.requests[2]),
        'NOTE: {"key":"red","value":"iron"}\n\nNOTE: {"key":"blue","value":"x"}\n\nA red gate.',
      )
      assert.deepStrictEqual(results(3), ["iron", 'There is no note "green".', "Forgotten: blue"])
      const before = yield* memory.snapshot
      const clone = yield* agent.cloneForEpisode({ training: false, shareMemory: true })
      yield* play(clone, "A red lid.", [{ observation: null, feedback: told(1) }])
      assert.deepStrictEqual(results(5), [
        "remember failed: nothing is written down in a test",
        "forget failed: nothing is written down in a test",
        "iron",
      ])
      assert.strictEqual(yield* memory.snapshot, before)
      // The model can call the same tools in training and in a test.
      assert.deepStrictEqual(script.requests[4].tools, script.requests[0].tools)
      assert.deepStrictEqual(yield* linesOf(memory), ['Note: {"key":"red","value":"iron"}'])
    }),
  )

  it.effect("can be written by action lines", () =>
    Effect.gen(function* () {
      const memory = KeyValueMemory.make()
      const script = inTurn('Action: remember[{"key": "a", "value": "b"}]', "Action: look_up[a]", "Action: go")
      const agent = yield* Effect.provide(ReActAgent.make({ model: "m", memory }), script.layer)
      yield* agent.act(look("Well?"))
      assert.strictEqual(lastOf(script.requests[2]), "Observation: b")
      assert.include(script.requests[0].messages[0].content, "- remember: ")
      assert.deepStrictEqual(yield* keysOf(memory), ["a=b"])
    }),
  )
})
