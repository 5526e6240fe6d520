import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { keep } from "../train/inMemory.ts"

describe("RND", () => {
  const digestOf = (settings: Parameters<typeof Rnd.make>[0]) =>
    Effect.map(
      keep({
        env: Wrapper.timeLimit(CartPole.env, 10),
        numEnvs: 4,
        totalSteps: 256,
        algorithm: Rnd.make({ hidden: [8], nsteps: 16, initObsSteps: 4, ...settings }),
      }),
      ({ result }) => result.digest,
    )

  it.effect(
    "follows each of its settings",
    () =>
      Effect.gen(function* () {
        const settings = [
          {},
          { episodic: true },
          { predictionShare: 0.3 },
          { predictionLearningRateShare: 0.5 },
          { predictionSize: 8 },
          { intrinsicCoefficient: 0.5 },
          { extrinsicCoefficient: 1 },
          { gammaIntrinsic: 0.9 },
          { initObsSteps: 5 },
        ]
        const digests = yield* Effect.forEach(settings, digestOf)
        assert.strictEqual(new Set(digests).size, settings.length)
      }),
    { tags: "slow" },
  )
})
