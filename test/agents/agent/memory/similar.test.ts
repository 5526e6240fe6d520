import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { AgentError } from "../../../../src/agents/agent/AgentError.ts"
import * as HistoryAgent from "../../../../src/agents/agent/HistoryAgent.ts"
import * as Bm25Memory from "../../../../src/agents/agent/memory/Bm25Memory.ts"
import * as EmbeddingMemory from "../../../../src/agents/agent/memory/EmbeddingMemory.ts"
import { cosine, Embeddings, hashing } from "../../../../src/agents/agent/memory/Embeddings.ts"
import * as Memories from "../../../../src/agents/agent/memory/Memories.ts"
import type { AgentMemory } from "../../../../src/agents/agent/memory/Memory.ts"
import { words } from "../../../../src/agents/agent/memory/experiences.ts"
import { lastOf, play, scripted, told } from "../support.ts"

/** An episode: what was asked, answered and told. */
const lived = (memory: AgentMemory, ...episodes: ReadonlyArray<readonly [string, string, string]>) =>
  Effect.as(
    Effect.forEach(
      episodes.flatMap(([seen, done, told]) => [
        { type: "Observation", content: seen },
        { type: "Action", content: done },
        { type: "Feedback", content: told },
      ]),
      (entry) => memory.add(entry),
    ),
    memory,
  )

const recalled = (memory: AgentMemory, query: string, limit: number | null, where?: (type: string) => boolean) =>
  Effect.map(memory.recall({ query, limit, ...(where === undefined ? {} : { where }) }), (entries) =>
    entries.map(({ content }) => content),
  )

const keys = [
  ["Which key opens the red door?", "brass", "No, the iron key."],
  ["Which key opens the blue gate?", "iron", "No, the brass key."],
  ["What does the cat eat?", "fish", "Yes."],
  ["Where is the red lamp?", "attic", "No, in the cellar."],
] as const

const kinds: ReadonlyArray<readonly [string, (maxLength: number | null) => AgentMemory]> = [
  ["bm25", (maxLength) => Bm25Memory.make({ maxLength })],
  ["embeddings", (maxLength) => EmbeddingMemory.make({ maxLength })],
]

describe.each(kinds)("a memory of type %s", (_, make) => {
  it.effect("recalls similar observations, with their actions and feedback", () =>
    Effect.gen(function* () {
      const memory = yield* lived(make(null), ...keys)
      assert.deepStrictEqual(yield* recalled(memory, "What do cats eat?", 3), [...keys[2]])
      assert.deepStrictEqual(yield* recalled(memory, "Which key opens the red door?", 3), [...keys[0]])
      // The two best, in the order in which they came.
      assert.deepStrictEqual(yield* recalled(memory, "key to the blue gate", 6), [...keys[0], ...keys[1]])
    }),
  )

  it.effect("gives at most the limit, and whole experiences", () =>
    Effect.gen(function* () {
      const memory = yield* lived(make(null), ...keys)
      const query = "Which key opens the red door?"
      assert.deepStrictEqual(yield* recalled(memory, query, 0), [])
      assert.deepStrictEqual(yield* recalled(memory, query, 2), keys[0].slice(0, 2))
      assert.deepStrictEqual(yield* recalled(memory, query, 5), [...keys[0]])
      assert.deepStrictEqual(yield* recalled(memory, query, null), keys.flat())
      assert.deepStrictEqual(
        yield* recalled(memory, query, null, (type) => type === "Action"),
        keys.map(([, done]) => done),
      )
      assert.deepStrictEqual(yield* recalled(memory, query, 1, (type) => type === "Feedback"), [keys[0][2]])
    }),
  )

  it.effect("gives nothing if nothing is similar to the query", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* recalled(make(null), "door", 3), [])
      const memory = yield* lived(make(null), ["aaa", "bbb", "ccc"])
      assert.deepStrictEqual(yield* recalled(memory, "", 3), [])
    }),
  )

  it.effect("does not recall forgotten entries", () =>
    Effect.gen(function* () {
      const memory = yield* lived(make(6), ...keys)
      assert.strictEqual(yield* memory.length, 6)
      assert.notIncludeMembers(yield* recalled(memory, keys[0][0], 6), [...keys[0]])
      assert.deepStrictEqual(yield* recalled(memory, "red lamp", 3), [...keys[3]])
    }),
  )

  it.effect("fills an agent's prompt, together with the episode itself", () =>
    Effect.gen(function* () {
      const script = scripted(() => "look")
      const memory = yield* lived(make(null), ...keys)
      const agent = yield* Effect.provide(HistoryAgent.make({ model: "m", memory, historyK: 3 }), script.layer)
      yield* play(agent, "What does the dog eat?", [
        { observation: "Which key opens the red door?", feedback: told(0, "Go on.") },
        { observation: null, feedback: told(1, "Fine.") },
      ])
      const [cat, key] = [keys[2], keys[0]].map(
        ([seen, done, told]) => `OBSERVATION: ${seen}\n\nACTION: ${done}\n\nFEEDBACK: ${told}\n\n`,
      )
      assert.strictEqual(lastOf(script.requests[0]), `${cat}What does the dog eat?`)
      const own = "OBSERVATION: What does the dog eat?\n\nACTION: look\n\nFEEDBACK: Go on.\n\n"
      assert.strictEqual(lastOf(script.requests[1]), `${key}${own}Which key opens the red door?`)
    }),
  )
})

describe("bm25", () => {
  it.effect("prefers rare words to common ones, and short texts to long ones", () =>
    Effect.gen(function* () {
      const memory = Bm25Memory.make()
      for (const content of ["the the the the fox", "the cat", "the dog", "fox and a great many other words besides"]) {
        yield* memory.add({ type: "Observation", content })
      }
      assert.deepStrictEqual(yield* recalled(memory, "the fox", 1), ["the the the the fox"])
      assert.deepStrictEqual(yield* recalled(memory, "fox", 1), ["the the the the fox"])
      assert.deepStrictEqual(yield* recalled(memory, "cat the", 1), ["the cat"])
    }),
  )

  it.effect("prefers the later of two equally similar entries", () =>
    Effect.gen(function* () {
      const memory = yield* lived(Bm25Memory.make(), ["same", "one", "x"], ["same", "two", "x"])
      assert.deepStrictEqual(yield* recalled(memory, "same", 3), ["same", "two", "x"])
    }),
  )

  it.effect("finds words deep within an object, under any key", () =>
    Effect.gen(function* () {
      const memory = Bm25Memory.make()
      const content = { score: 0, message: "No.", extra: { toString: [], hint: "a heron" } }
      yield* memory.add({ type: "Observation", content: "a finch" })
      yield* memory.add({ type: "Observation", content })
      assert.deepStrictEqual(yield* recalled(memory, "heron", 1), [content])
    }),
  )
})

describe("embeddings", () => {
  it.effect("by hashing are equal for equal words, and closer the more words are shared", () =>
    Effect.gen(function* () {
      const [one, same, near, far] = yield* hashing().embed([
        "the red door",
        "The RED door!",
        "a red door",
        "unrelated matter",
      ])
      assert.deepStrictEqual(one, same)
      assert.closeTo(cosine(one, same), 1, 1e-6)
      assert.isAbove(cosine(one, near), 0.5)
      assert.isBelow(cosine(one, far), 0.3)
      assert.strictEqual(cosine(one, new Float32Array(256)), 0)
      // Known bits: another machine or version must not give others.
      const [small] = yield* hashing({ dimensions: 8 }).embed(["red door"])
      const bits = [0, -1 / 3, -1, 0, 0, -1 / 30, -1, -7 / 30]
      for (const [at, value] of bits.entries()) assert.closeTo(small[at], value, 1e-6)
    }),
  )

  it.effect("are computed for new texts only, by the service that is provided", () =>
    Effect.gen(function* () {
      const asked: Array<ReadonlyArray<string>> = []
      const counting = {
        embed: (texts: ReadonlyArray<string>) => {
          asked.push(texts)
          return hashing().embed(texts)
        },
      }
      const { make } = yield* Memories.decode({ _type: "embeddings" }, { source: "x" })
      const memory = yield* Effect.provideService(make, Embeddings, counting)
      yield* lived(memory, ["a", "b", "c"], ["d", "e", "f"])
      yield* recalled(memory, "a", 3)
      yield* recalled(memory, "d", 3)
      yield* lived(memory, ["g", "h", "i"])
      yield* recalled(memory, "g", 3)
      assert.deepStrictEqual(asked, [["a", "a", "d"], ["d"], ["g", "g"]])
    }),
  )

  it.effect(
    "are asked for what is new once, however many look at the same time, and again if nobody waited for it",
    () =>
      Effect.gen(function* () {
        const asked: Array<ReadonlyArray<string>> = []
        const slow = {
          embed: (texts: ReadonlyArray<string>) => {
            asked.push(texts)
            return Effect.delay(hashing().embed(texts), "1 second")
          },
        }
        const memory = yield* lived(EmbeddingMemory.make({ embeddings: slow }), ["a", "b", "c"], ["d", "e", "f"])
        const look = (query: string) => Effect.forkChild(recalled(memory, query, 3), { startImmediately: true })
        const gone = yield* look("x")
        const others = yield* Effect.forEach(["a", "d"], look)
        yield* Fiber.interrupt(gone)
        yield* TestClock.adjust("3 seconds")
        assert.deepStrictEqual(yield* Effect.forEach(others, Fiber.join), [
          ["a", "b", "c"],
          ["d", "e", "f"],
        ])
        assert.deepStrictEqual(asked, [["x", "a", "d"], ["a", "a", "d"], ["d"]])
      }),
  )

  it.effect("are dropped if their experience was forgotten or changed meanwhile", () =>
    Effect.gen(function* () {
      const asked: Array<ReadonlyArray<string>> = []
      const slow = {
        embed: (texts: ReadonlyArray<string>) => {
          asked.push(texts)
          return Effect.delay(hashing().embed(texts), "1 second")
        },
      }
      const memory = yield* lived(EmbeddingMemory.make({ maxLength: 5, embeddings: slow }), ["a", "b", "c"])
      const looking = yield* Effect.forkChild(recalled(memory, "b", 3), { startImmediately: true })
      yield* lived(memory, ["d", "e", "f"])
      yield* TestClock.adjust("5 seconds")
      // The first moment begins with what was done by now.
      assert.deepStrictEqual(yield* Fiber.join(looking), ["b", "c"])
      assert.deepStrictEqual(asked, [
        ["b", "a"],
        ["b", "b", "d"],
      ])
    }),
  )

  it.effect("of different lengths are a failure, and so is a failing service", () =>
    Effect.gen(function* () {
      const failing = (embed: () => Effect.Effect<ReadonlyArray<Float32Array>, AgentError>) =>
        Effect.gen(function* () {
          const memory = yield* lived(EmbeddingMemory.make({ embeddings: { embed } }), ["a", "b", "c"])
          return (yield* Effect.flip(memory.recall({ query: "a", limit: 1 }))).message
        })
      assert.strictEqual(
        yield* failing(() => Effect.succeed([new Float32Array(3)])),
        'memory "embeddings": expected 2 vectors of one length, found 1 of length 3',
      )
      assert.strictEqual(
        yield* failing(() => Effect.succeed([new Float32Array(3), new Float32Array(2)])),
        'memory "embeddings": expected 2 vectors of one length, found 2 of length 3, 2',
      )
      const down = new AgentError({ agent: "embeddings", message: "no server" })
      assert.strictEqual(yield* failing(() => Effect.fail(down)), 'memory "embeddings": no server')
    }),
  )
})

describe("words", () => {
  it.effect("are letters and digits, in any spelling", () =>
    Effect.sync(() => {
      assert.deepStrictEqual(words("A door, 3 keys! Ünï-ﬁ"), ["a", "door", "3", "keys", "ünï", "fi"])
      assert.deepStrictEqual(words(" … "), [])
    }),
  )
})
