import { assert, describe, it } from "vitest"
import { withFolder } from "./effect.ts"
import { killed } from "./experimentCrash.ts"

describe("an experiment that is killed, and resumed", () => {
  it("leaves what one that was not killed leaves: scores, memories, rollouts, calls, validations, metrics", () =>
    withFolder(async (folder) => {
      const { kills, resumed, whole, askedAgain } = await killed(folder, 1, 3, { tasks: 60, heldOut: 6 })
      assert.isAbove(kills, 0)
      assert.strictEqual(askedAgain, 0)
      assert.deepStrictEqual(Object.keys(resumed), Object.keys(whole))
      for (const path of Object.keys(whole)) assert.deepStrictEqual(resumed[path], whole[path], path)
    }))
})
