import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Journal from "../../../src/agents/evaluate/journal.ts"
import { episodeRow } from "../../../src/agents/evaluate/rows.ts"
import { inMemory, treeOf } from "../../../src/run/store/Folder.ts"
import { makeRunFiles } from "../../../src/run/store/RunFiles.ts"
import { answered } from "./support.ts"

const spentOf = (calls: number) => ({ calls, inputTokens: 0, outputTokens: 0, money: 0 })

const entry = Effect.fnUntraced(function* (index: number) {
  const played = answered("yes ".repeat(10_000), "yes", { index })
  const row = yield* episodeRow({ ...played, steps: [] }, { agent: "one", scorers: [], price: undefined })
  return { played, row, spent: spentOf(9 - index), seconds: index }
})

describe("the journal of an evaluation", () => {
  it.effect("keeps the positions of episodes in memory, not their transcripts, and reads each again unchanged", () =>
    Effect.gen(function* () {
      const files = new Map<string, Uint8Array>()
      const run = makeRunFiles(treeOf("run", inMemory(files)("run")), { name: "", population: {}, seed: 0 }, false)
      const entries = yield* Effect.forEach([2, 0, 1], entry)
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* Journal.begin(run, { seed: 1 })
          const add = yield* Journal.open(run)
          yield* Effect.forEach(entries, add)
        }),
      )
      yield* run.append("played.jsonl", '{"played":')
      const earlier = yield* Journal.readEarlier(run)
      assert.isAbove(yield* run.size("played.jsonl"), 3 * 40_000)
      assert.isBelow(JSON.stringify(earlier).length, 1000)
      assert.deepInclude(earlier, { settings: { seed: 1 }, spent: spentOf(9), seconds: 2 })
      assert.deepStrictEqual(
        [...earlier.entries.keys()],
        [2, 0, 1].map((index) => Journal.keyOf("one", index)),
      )
      assert.deepStrictEqual(
        yield* Effect.forEach(earlier.entries.values(), (kept) => Journal.readAgain(run, kept)),
        entries,
      )
    }),
  )

  const written = Effect.gen(function* () {
    const run = makeRunFiles(treeOf("run", inMemory(new Map())("run")), { name: "", population: {}, seed: 0 }, false)
    yield* Effect.scoped(
      Effect.gen(function* () {
        yield* Journal.begin(run, { seed: 1 })
        const add = yield* Journal.open(run)
        yield* Effect.forEach([2, 0, 1], (index) => Effect.flatMap(entry(index), add))
      }),
    )
    return run
  })

  it.effect("refuses a line that was changed, and accepts that one was removed", () =>
    Effect.gen(function* () {
      const run = yield* written
      const text = yield* run.readText("played.jsonl")
      const [head, first, ...others] = text.trimEnd().split("\n")
      const changed = first.replace(/"seconds":2/, '"seconds":3')
      assert.notStrictEqual(changed, first)
      const withoutDigest = first.replace(/,"sha256":"[0-9a-f]*"/, "")
      for (const line of [changed, withoutDigest]) {
        yield* run.write("played.jsonl", `${[head, line, ...others].join("\n")}\n`)
        assert.strictEqual(
          (yield* Effect.flip(Journal.readEarlier(run))).message,
          "run/played.jsonl:2: the line was changed after it was written; remove it, and its episode is played again",
        )
      }
      yield* run.write("played.jsonl", `${[head.replace('"seed":1', '"seed":2'), first, ...others].join("\n")}\n`)
      assert.include(
        (yield* Effect.flip(Journal.readEarlier(run))).message,
        "run/played.jsonl:1: the line was changed after it was written; put it back",
      )
      yield* run.write("played.jsonl", `${[head, ...others].join("\n")}\n`)
      const { entries } = yield* Journal.readEarlier(run)
      assert.deepStrictEqual(
        [...entries.keys()],
        [0, 1].map((index) => Journal.keyOf("one", index)),
      )
    }),
  )

  it.effect("refuses lines without digests, in any position", () =>
    Effect.gen(function* () {
      const run = yield* written
      const text = yield* run.readText("played.jsonl")
      yield* run.write("played.jsonl", text.replace(/,"sha256":"[0-9a-f]*"\}\n/g, "}\n"))
      assert.include(
        (yield* Effect.flip(Journal.readEarlier(run))).message,
        "run/played.jsonl:1: the line was changed after it was written; put it back",
      )
    }),
  )
})
