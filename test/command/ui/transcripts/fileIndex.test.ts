import { assert, describe, it } from "vitest"
import { scoresIndex } from "../../../../src/command/ui/transcripts/fileIndex.ts"

describe("the episodes of a file of scores", () => {
  it("have their agent's type as in configs, also if another runtime wrote the name of its class", () => {
    const index = scoresIndex("scores.jsonl", { name: "train", phase: "train", seen: null, contestant: null })
    const types = ["HistoryAgent", "history_agent", null]
    for (const [number, agent_type] of types.entries()) {
      const text = JSON.stringify({ episode_index: number, episode_cum_score: 1, env_id: "e", agent_type })
      index.add({ text, from: number, to: number + 1 })
    }
    assert.deepStrictEqual(
      index.episodes.map(({ agent }) => agent),
      ["history_agent", "history_agent", null],
    )
  })
})
