import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Journal from "../../src/evaluate/journal.ts"
import { episodeRow } from "../../src/evaluate/rows.ts"
import { inMemory } from "../../src/experiment/memoryTree.ts"
import { makeRunFiles } from "../../src/experiment/RunFiles.ts"
import { answered } from "./support.ts"

const spentOf = (calls: number) => ({ calls, inputTokens: 0, outputTokens: 0, money: 0 })

const entry = Effect.fnUntraced(function* (index: number) {
  const played = answered("yes ".repeat(10_000), "yes", { index })
  const row = yield* episodeRow({ ...played, steps: [] }, { agent: "one", scorers: [], price: undefined })
  return { played, row, spent: spentOf(9 - index), seconds: index }
})

describe("the journal of an evaluation", () => {
  it.effect("has the places of what was played in memory, and no transcripts; each is read again as it was", () =>
    Effect.gen(function* () {
      const files = new Map<string, Uint8Array>()
      const run = makeRunFiles(inMemory("run", files), { name: "", population: {}, seed: 0 }, false)
      const entries = yield* Effect.forEach([2, 0, 1], entry)
      yield* Effect.scoped(
        Effect.gen(function* () {
          const add = yield* Journal.journal(run)
          yield* add({ evaluation: { seed: 1 } })
          yield* Effect.forEach(entries, add)
        }),
      )
      yield* run.append("played.jsonl", '{"played":')
      const earlier = yield* Journal.readEarlier(run)
      assert.isAbove(yield* run.size("played.jsonl"), 3 * 40_000)
      assert.isBelow(JSON.stringify(earlier).length, 1000)
      assert.deepInclude(earlier, { evaluation: { seed: 1 }, spent: spentOf(9), seconds: 2 })
      assert.deepStrictEqual(
        earlier.entries.map(({ agent, index }) => [agent, index]),
        [2, 0, 1].map((index) => ["one", index]),
      )
      assert.deepStrictEqual(yield* Effect.forEach(earlier.entries, (kept) => Journal.readAgain(run, kept)), entries)
    }),
  )
})
