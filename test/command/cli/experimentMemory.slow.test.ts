import { assert, describe, it } from "vitest"
import { withFolder } from "./effect.ts"
import { compareAgents } from "./experimentMemory.ts"

describe("where memory matters", () => {
  it("an agent with a history does better than one without, and one that reflects does best", () =>
    withFolder(async (folder) => {
      const seeds = [1]
      const reached = await compareAgents(folder, seeds)
      for (const index of seeds.keys()) {
        assert.strictEqual(reached.memoryless_agent[index], 0)
        assert.isAbove(reached.history_agent[index], 0.2)
        assert.isAbove(reached.reflexion_agent[index], reached.history_agent[index] + 0.1)
      }
    }))
})
