import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { chosen, type ListedEpisode } from "../../../../src/command/ui/transcripts/Episode.ts"
import { everything } from "../../../../src/command/ui/transcripts/pageAsked.ts"
import { makeTranscripts, type PageAsked } from "../../../../src/command/ui/transcripts/transcripts.ts"
import { confinedTo } from "../../../../src/run/read/confined-node.ts"
import { withFolder } from "../folder.ts"
import { makeTrainer, writeRun } from "../trainer.ts"

const opened = async (folder: string, run: string) => {
  const transcripts = makeTranscripts(await Effect.runPromise(confinedTo(folder)))
  const page = (asked: Partial<PageAsked> = {}) => Effect.runPromise(transcripts.page(run, { ...everything, ...asked }))
  return { page, one: (key: string) => Effect.runPromise(transcripts.one(run, key)) }
}

const advantagesOf = (episodes: ReadonlyArray<ListedEpisode>) =>
  episodes.map(({ trained }) => trained?.advantage ?? null)

describe("the episodes of a trainer's run", () => {
  it("have the step, the group, the advantage and the answer, and are sorted and filtered by the advantage", () =>
    withFolder(async (folder) => {
      const run = writeRun(folder, makeTrainer(folder), "a", { steps: 10, perGroup: 4 })
      const { page, one } = await opened(folder, run)
      const list = await page()
      // Eight answers of one step, and four of the validation before the first step.
      assert.strictEqual(list.total, 12)
      assert.strictEqual(list.largest, 0.75)
      assert.deepStrictEqual(list.episodes[1].trained, {
        step: 0,
        group: 0,
        advantage: -0.25,
        task: "reverse abcd",
        answer: "abcd",
      })
      assert.isNull(list.episodes[8].trained)

      const highest = advantagesOf((await page({ order: "highestAdvantage" })).episodes)
      assert.deepStrictEqual(highest.slice(0, 3), [0.75, 0.75, -0.25])
      // Validations have no advantage, so they come last in either order.
      assert.deepStrictEqual(highest.slice(8), [null, null, null, null])
      const lowest = advantagesOf((await page({ order: "lowestAdvantage" })).episodes)
      assert.deepStrictEqual([lowest[0], lowest[7], lowest[8]], [-0.25, 0.75, null])
      assert.strictEqual((await page({ leastAdvantage: 0 })).matching, 2)
      assert.strictEqual((await page({ mostAdvantage: 0 })).matching, 6)
      assert.strictEqual((await page({ leastAdvantage: 0, mostAdvantage: 0.5 })).matching, 0)

      const transcript = await one("train-2")
      assert.deepInclude(transcript, { largest: 0.75, advantages: "episode" })
      assert.deepStrictEqual(
        transcript?.played.turns.map(({ action, advantage }) => [action, advantage]),
        [["abcd", -0.25]],
      )
      // The last answer of a group was cut off, so it was no action.
      assert.strictEqual(list.episodes[3].trained?.answer, "abcd")
      assert.deepStrictEqual(
        (await one("train-4"))?.played.turns.map(({ action, said, advantage }) => [action, said, advantage]),
        [[null, "abcd", -0.25]],
      )
      assert.deepInclude(await one("val0-1"), { largest: null, advantages: null })
    }))

  it("stand together with their group in the order of time, whatever lies between them", () => {
    const episode = (key: string, group: number | null): ListedEpisode => ({
      key,
      group: "train",
      phase: "train",
      seen: null,
      contestant: null,
      number: 1,
      id: null,
      env: "a",
      agent: null,
      player: null,
      return: 0,
      length: 1,
      ending: null,
      reason: null,
      failed: null,
      delegated: 0,
      trained: group === null ? null : { step: 1, group, advantage: 0, task: null, answer: null },
    })
    const mixed = [episode("a", 0), episode("b", 1), episode("c", null), episode("d", 0), episode("e", 1)]
    const keys = (order: PageAsked["order"]) => chosen(mixed, { ...everything, order }).map(({ key }) => key)
    assert.deepStrictEqual(keys("oldest"), ["a", "d", "b", "e", "c"])
    assert.deepStrictEqual(keys("newest"), ["e", "b", "d", "a", "c"])
    assert.deepStrictEqual(keys("highest"), ["a", "b", "c", "d", "e"])
  })
})
