import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { pick } from "../../../src/run/find/pick.ts"
import { entryOf } from "../../../src/run/find/RunEntry.ts"

const folder = "results/2026-01-31_12-00-00"
const paths = [
  `${folder}/0123abc_items_environment_algorithm/items_history-agent/0001`,
  `${folder}/0123abc_items_environment_algorithm/items_react-agent/0001`,
  `${folder}/0123abc_a=5Fb_environment_algorithm_num-envs/CartPole-v1_ppo_8/0001`,
]
const entries = paths.flatMap((path) => entryOf(path) ?? [])
const found = (part: string): string => Effect.runSync(pick(part, entries, { folder: "results" })).path

describe("a part of a path", () => {
  it.for([
    ["history-agent", 0],
    // Configs write the agent's type and the setting like this.
    ["history_agent", 0],
    ["react_agent/0001", 1],
    ["num_envs", 2],
    // A narrow table of runs shows the path like this.
    ["…/items_react-agent/0001", 1],
    ["a=5Fb", 2],
  ] as const)("%s finds its run", ([part, index]) => assert.strictEqual(found(part), paths[index]))

  it("that is written exactly so in one path is not looked for in another spelling", () => {
    assert.strictEqual(found("items_react-agent"), paths[1])
    assert.match(
      Effect.runSync(Effect.flip(pick("agent", entries, { folder: "results" }))).message,
      /^2 runs have this/,
    )
  })
})
