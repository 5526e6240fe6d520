import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import { diverging } from "../env/pool/envs.ts"
import { keep, textOf } from "./inMemory.ts"
import { resumable } from "./resumable.ts"

const training = {
  env: diverging,
  numEnvs: 2,
  totalSteps: 64,
  seed: 3,
  algorithm: Ppo.make({ nsteps: 16, minibatches: 1, epochs: 1 }),
}

describe("a training whose simulations diverge", () => {
  it.effect("goes on, names such episodes, and says at the end how many there were", () =>
    Effect.gen(function* () {
      const kept = yield* keep(training)
      const reasons = kept.events.flatMap((event) => (event._tag === "EpisodeEnded" ? [event.truncationReason] : []))
      const count = reasons.filter((reason) => reason === "diverged").length
      assert.isAbove(count, 1)
      assert.include(reasons, "max_steps")
      assert.strictEqual(kept.result.divergedEpisodes, count)
      const warnings = kept.events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
      assert.lengthOf(warnings, 2)
      assert.match(warnings[0], /^an episode was cut off because its simulation diverged/)
      assert.match(warnings[1], new RegExp(`^${count} episodes diverged of ${reasons.length}:`))
      assert.strictEqual(JSON.parse(textOf(kept, "metrics.json")).diverged_episodes, count)
    }),
  )

  it.effect("counts on when it is resumed", () =>
    Effect.gen(function* () {
      const { whole, resumed } = yield* resumable(training, 32)
      assert.strictEqual(resumed.divergedEpisodes, whole.divergedEpisodes)
      assert.strictEqual(resumed.digest, whole.digest)
    }),
  )
})
