import { assert, describe, it } from "@effect/vitest"
import * as RolloutRequest from "../../../../src/agents/episode/rollouts/RolloutRequest.ts"

const seedsOf = (requests: Iterable<RolloutRequest.RolloutRequest>) =>
  Array.from(requests, ({ envSeed, samplingSeed }) => ({ envSeed, samplingSeed }))

describe("requests for rollouts", () => {
  it("have different seeds in a large batch", () => {
    const all = RolloutRequest.expand(RolloutRequest.forTasks({ size: 12_500 }, { seed: 1 }), 8)
    assert.strictEqual(new Set(seedsOf(all).map(({ samplingSeed }) => samplingSeed)).size, 100_000)
    assert.strictEqual(new Set(seedsOf(all).map(({ envSeed }) => envSeed)).size, 12_500)
  })

  it("of one group differ in the model's seed only", () => {
    const [request] = RolloutRequest.forTasks({ size: 1 }, { seed: 7, name: "maze", tags: { split: "train" } })
    const group = RolloutRequest.repeat(request, 2)
    assert.deepStrictEqual(
      group.map(({ id, task, envSeed, groupId, tags }) => ({ id, task, envSeed, groupId, tags })),
      ["maze-0#0", "maze-0#1"].map((id) => ({
        id,
        task: 0,
        envSeed: request.envSeed,
        groupId: "maze-0",
        tags: { split: "train" },
      })),
    )
    assert.deepStrictEqual(
      RolloutRequest.repeat(group[0], 2).map(({ id, groupId }) => [id, groupId]),
      [
        ["maze-0#0#0", "maze-0"],
        ["maze-0#0#1", "maze-0"],
      ],
    )
  })

  it("have these seeds, on every machine", () => {
    const [first] = RolloutRequest.expand(RolloutRequest.forTasks({ size: 1 }, { seed: 1 }), 1)
    assert.deepStrictEqual([first.envSeed, first.samplingSeed], [2_264_852_648_086_186, 5_533_403_812_024_801])
  })

  it("can be iterated again, and are made lazily", () => {
    const many = RolloutRequest.expand(RolloutRequest.forTasks({ size: 1e12 }, { seed: 1 }), 2)
    const firstOf = () => many[Symbol.iterator]().next().value
    assert.deepStrictEqual(firstOf(), firstOf())
  })

  it("have the same text in any order of their keys", () => {
    const [request] = RolloutRequest.forTasks({ size: 1 }, { seed: 1, tags: { b: "2", a: "1" } })
    const { tags: _, ...rest } = request
    assert.strictEqual(RolloutRequest.textOf({ tags: { a: "1", b: "2" }, ...rest }), RolloutRequest.textOf(request))
    assert.deepStrictEqual(JSON.parse(RolloutRequest.textOf(request)), request)
  })
})
