import { join } from "node:path"
import { assert, describe, expect, it } from "vitest"
import { Evaluations } from "../../../src/agents/index.ts"
import { play } from "../../../examples/agents/evaluation-matchers.ts"
import { withFolder } from "../../command/cli/effect.ts"

const letters = [..."abcdefghijkl"]

const evaluation = (knows: number) =>
  Evaluations.fromConfig({
    dataset: { items: letters.map((one) => ({ id: one, question: `After ${one}?`, answer: `${one}!` })), id_field: "id" },
    agents: {
      mine: {
        type: "memoryless_agent",
        system_prompt: letters.slice(0, knows).map((one) => `RULE: [After ${one}?] -> ${one}!`).join("; "),
        lm_config: { model: "scripted:reader" },
      },
    },
    scorers: ["exact", "tokens"],
  }) // prettier-ignore

const problemOf = async (matched: () => unknown): Promise<string> => {
  try {
    await matched()
  } catch (error) {
    return String(error)
  }
  return assert.fail("the matcher passed")
}

describe("the example with matchers for vitest", () => {
  it("judges scores and regressions as the command does", () =>
    withFolder(async (folder) => {
      const results = join(folder, "results")
      const [before, after] = [await play(evaluation(12), results), await play(evaluation(9), results)]
      expect(before).toScoreAtLeast(1)
      expect(after).toScoreAtLeast(0.7)
      expect(after).not.toScoreAtLeast(0.8)
      expect(after).not.toScoreAtLeast(0.7, { strict: true })
      expect(after).toScoreAtLeast(1000, { scorer: "tokens" })
      assert.include(await problemOf(() => expect(after).toScoreAtLeast(0.8)), "mine: exact 0.75 (0.4677 to 0.9111), expected at least 0.8") // prettier-ignore

      await expect(before).toBeNoWorseThan(after.runDir)
      await expect(after).toBeNoWorseThan(before.runDir, { by: 0.5 })
      await expect(after).not.toBeNoWorseThan(before.runDir, { by: 0.02, strict: true })
      await expect(after).not.toBeNoWorseThan(before.runDir, { scorer: "f1" })
      // Three of twelve can be chance; nine can not.
      const far = await play(evaluation(3), results)
      await expect(after).toBeNoWorseThan(before.runDir)
      assert.include(await problemOf(() => expect(far).toBeNoWorseThan(before.runDir)), "against mine (before); a fall") // prettier-ignore
      assert.include(await problemOf(() => expect(after).toBeNoWorseThan(folder)), "expected the folder of a finished evaluation") // prettier-ignore

      const failed = { ...before, failed: 2 }
      assert.include(await problemOf(() => expect(failed).toScoreAtLeast(0.5)), "2 of 12 episodes failed")
      assert.include(await problemOf(() => expect(failed).toBeNoWorseThan(before.runDir)), "2 of 12 episodes failed")
      expect(failed).toScoreAtLeast(0.5, { maxFailures: 2 })
      await expect(failed).toBeNoWorseThan(before.runDir, { maxFailures: 2 })
      // No episode of the other agent has a score.
      const [mine] = before.report.agents
      const agents = [mine, { ...mine, agent: "other", scores: [] }]
      const withOther = { ...before, report: { ...before.report, agents } }
      assert.include(
        await problemOf(() => expect(withOther).toBeNoWorseThan(before.runDir)),
        "other: no task has a value",
      )
    }))
})
