import { assert, describe, it } from "vitest"
import { withFolder } from "./effect.ts"
import { differences, killed, twoRuns, uninterrupted } from "./multirunCrash.ts"

describe("a trainer of two runs whose processes are killed", () => {
  it.for([
    ["trainer", 1],
    ["rank", 2],
  ] as const)("leaves what one leaves that is not killed: %s", ([victim, ranks]) =>
    withFolder(async (folder) => {
      const whole = await uninterrupted(folder, twoRuns(9))
      const config = twoRuns(9, { trainer: { ranks } })
      const { kills, digest, left } = await killed(folder, { seed: 1, kills: 3, victims: [victim], config })
      assert.isAbove(kills.get(victim) ?? 0, 0)
      assert.strictEqual(digest, whole.digest)
      assert.deepStrictEqual(differences(whole.left, left), [])
    }),
  )
})
