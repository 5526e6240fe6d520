import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Rollout } from "../../../../src/agents/episode/Rollout.ts"
import * as RolloutFilters from "../../../../src/agents/episode/rollouts/RolloutFilters.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import { counting, episodeOf, scripted, type ScriptedAnswer } from "../support.ts"

const play = (id: string, goal: number, said: ReadonlyArray<ScriptedAnswer>, about: { readonly group?: string } = {}) =>
  SingleAgent.play(
    scripted((index) => said[index] ?? { act: "go" }),
    episodeOf(counting(goal), { id, samplingSeed: id.length, groupId: about.group ?? null }),
    { maxSteps: 3 },
  )

const idsOf = (rollouts: ReadonlyArray<Rollout>): string => rollouts.map(({ id }) => id).join(" ")

describe("filters of rollouts", () => {
  it.effect("go by reward, ending and failed parses", () =>
    Effect.gen(function* () {
      const all = [
        yield* play("quick", 1, []),
        yield* play("slow", 3, []),
        yield* play("cut", 4, []),
        yield* play("stopped", 4, [{ act: "stop" }]),
        yield* play("mumbled", 2, [{ fail: "no" }]),
      ]
      // 0.1, 0.6, 0.6, 0.1, 0.2
      const left = (filter: RolloutFilters.RolloutFilter) => idsOf(all.filter(filter))
      assert.strictEqual(left(RolloutFilters.rewardAtLeast(all[4].totalReward)), "slow cut mumbled")
      assert.strictEqual(left(RolloutFilters.rewardAtMost(0.1)), "quick stopped")
      assert.strictEqual(left(RolloutFilters.truncated()), "cut stopped")
      assert.strictEqual(left(RolloutFilters.truncated("env")), "stopped")
      assert.strictEqual(left(RolloutFilters.notTruncated), "quick slow mumbled")
      assert.strictEqual(left(RolloutFilters.parseFailuresAtMost(0)), "quick slow cut stopped")
      assert.deepStrictEqual(all.map(RolloutFilters.parseFailures), [0, 0, 0, 0, 1])
      assert.strictEqual(
        left(RolloutFilters.all(RolloutFilters.not(RolloutFilters.truncated()), RolloutFilters.rewardAtMost(0.1))),
        "quick",
      )
      assert.strictEqual(left(RolloutFilters.all()), idsOf(all))
    }),
  )

  it.effect("go by completions that were cut off, whether or not they were acted upon", () =>
    Effect.gen(function* () {
      const all = [
        yield* play("whole", 1, []),
        yield* play("acted", 1, [{ act: "go", finish: "length" }]),
        yield* play("refused", 1, [
          { fail: "cut", finish: "length" },
          { fail: "cut", finish: "length" },
        ]),
      ]
      assert.deepStrictEqual(all.map(RolloutFilters.incompleteCompletions), [0, 1, 2])
      assert.strictEqual(idsOf(all.filter(RolloutFilters.incompleteCompletionsAtMost(0))), "whole")
      assert.strictEqual(idsOf(all.filter(RolloutFilters.incompleteCompletionsAtMost(1))), "whole acted")
      const either = RolloutFilters.any(
        RolloutFilters.parseFailuresAtMost(0),
        RolloutFilters.not(RolloutFilters.incompleteCompletionsAtMost(1)),
      )
      assert.strictEqual(idsOf(all.filter(either)), idsOf(all))
      assert.strictEqual(idsOf(all.filter(RolloutFilters.any())), "")
    }),
  )

  it.effect("keep one of rollouts with equal transcripts", () =>
    Effect.gen(function* () {
      const all = [
        yield* play("first", 2, []),
        yield* play("again, by other seeds", 2, []),
        yield* play("others", 2, [{ act: "went" }]),
        yield* play("elsewhere", 1, []),
      ]
      assert.strictEqual(idsOf(all.filter(RolloutFilters.distinct())), "first others elsewhere")
      assert.strictEqual(idsOf(all.filter(RolloutFilters.distinct(({ meta }) => meta.envId))), "first elsewhere")
      const filter = RolloutFilters.distinct()
      assert.deepStrictEqual([filter(all[0]), filter(all[0]), RolloutFilters.distinct()(all[0])], [true, false, true])
    }),
  )

  it.effect("keep groups with different rewards", () =>
    Effect.gen(function* () {
      const all = [
        yield* play("a", 1, [], { group: "same" }),
        yield* play("b", 1, [], { group: "same" }),
        yield* play("c", 1, [], { group: "differ" }),
        yield* play("d", 2, [], { group: "differ" }),
        yield* play("e", 1, []),
        yield* play("f", 2, []),
      ]
      assert.strictEqual(idsOf(RolloutFilters.groupsThatDiffer(all)), "c d")
    }),
  )
})
