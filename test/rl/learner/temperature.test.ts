import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as CrossQ from "../../../src/rl/algorithms/replay/CrossQ.ts"
import * as DiscreteSac from "../../../src/rl/algorithms/replay/DiscreteSac.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { keep, weightsOf } from "../train/inMemory.ts"

interface TemperatureOptions {
  readonly alpha?: number | string | null
  readonly alphaStart?: number
}
/** The steps of SGD are as long as the gradients, which depend on the temperature. */
const small = { hidden: [8], batchSize: 16, learningStarts: 20, optimiser: "sgd", learningRate: 0.1 } as const
const algorithms: Readonly<Record<string, readonly [Env, (options: TemperatureOptions) => Algorithm]>> = {
  SAC: [Pendulum.env, (options) => Sac.make({ ...small, ...options })],
  CrossQ: [Pendulum.env, (options) => CrossQ.make({ ...small, criticHidden: [8], policyDelay: 1, ...options })],
  "SAC for choices": [CartPole.env, (options) => DiscreteSac.make({ ...small, ...options })],
}

describe("alphaStart", () => {
  for (const [name, [env, make]] of Object.entries(algorithms)) {
    it.effect(
      `is the temperature with which ${name} begins to learn its own`,
      () =>
        Effect.gen(function* () {
          // The only update follows step 21, so that it has the temperature of the start.
          const weights = (options: TemperatureOptions) =>
            Effect.map(keep({ env, algorithm: make(options), numEnvs: 1, totalSteps: 21 }), weightsOf)
          const distance = (one: Float32Array, other: Float32Array) =>
            Math.max(...one.map((value, at) => Math.abs(value - other[at])))
          const fixed = yield* weights({ alpha: 0.05 })
          const started = yield* weights({ alphaStart: 0.05 })
          assert.isBelow(distance(started, fixed), 1e-6)
          assert.deepStrictEqual(yield* weights({ alpha: "auto_0.05" }), started)
          assert.isAbove(distance(yield* weights({ alpha: "auto" }), fixed), 1e-4)
        }),
      { tags: name === "SAC for choices" ? [] : "slow" },
    )

    it.effect(`is refused for ${name} beside an alpha that names another start`, () =>
      Effect.gen(function* () {
        const algorithm = make({ alpha: "auto_0.05", alphaStart: 0.1 })
        const { message } = yield* Effect.flip(keep({ env, algorithm, numEnvs: 1, totalSteps: 21 }))
        assert.include(message, "algorithm.alpha_start: 0.1 with algorithm.alpha auto_0.05")
      }),
    )
  }
})

describe("alpha", () => {
  it.effect("is a number, null, auto, or auto with the start", () =>
    Effect.gen(function* () {
      const decode = Schema.decodeUnknownEffect(Sac.SacConfig)
      for (const alpha of [0.1, null, "auto", "auto_0.1", "auto_1e-3"]) {
        assert.strictEqual((yield* decode({ alpha })).alpha, alpha)
      }
      for (const alpha of ["auto_", "auto_0", "auto_-1", "auto_x", "auto_Infinity", "auto0.1", "0.1", "", 0, true]) {
        const { message } = yield* Effect.flip(decode({ alpha }))
        assert.include(message, 'at ["alpha"]', String(alpha))
      }
      const { message } = yield* Effect.flip(decode({ alpha: "automatic" }))
      assert.include(message, "auto_ and the first temperature, such as auto_0.1")
    }),
  )
})
