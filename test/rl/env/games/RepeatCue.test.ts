import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { check } from "../../../../src/rl/env/check.ts"
import { envConfigOf } from "../../../../src/rl/env/Envs.ts"
import { fromConfig } from "../../../../src/rl/env/fromConfig.ts"
import * as RepeatCue from "../../../../src/rl/env/games/RepeatCue.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

describe("RepeatCue", () => {
  it("is a valid env", () => {
    assert.deepStrictEqual(check(RepeatCue.env), [])
  })

  it("shows the cue in the first observation alone, and rewards its name in the last step alone", () => {
    const env = RepeatCue.make({ delay: 3, cues: 2 })
    const random = stream(1)
    for (const named of [0, 1]) {
      let state: RepeatCue.RepeatCueState = { ...env.reset(random), cue: 1 }
      const seen: Array<ReadonlyArray<number>> = []
      const rewards: Array<number> = []
      for (let ended = false; !ended;) {
        seen.push(Array.from(env.observe(state)).slice(0, 3))
        const next = env.step(state, named, random)
        rewards.push(next.reward)
        ended = next.terminated
        state = next.state
      }
      assert.deepStrictEqual(seen, [
        [0, 1, 0],
        [0, 0, 0],
        [0, 0, 0],
        [0, 0, 1],
      ])
      assert.deepStrictEqual(rewards, [0, 0, 0, named])
    }
  })

  it.effect("is made from a config", () =>
    Effect.gen(function* () {
      const env = RepeatCue.make({ delay: 20 })
      const same = yield* fromConfig(envConfigOf(env), { source: "test" })
      assert.deepStrictEqual([same.id, envConfigOf(same)], ["RepeatCue-20-4-v0", { name: "RepeatCue", delay: 20 }])
    }),
  )
})
