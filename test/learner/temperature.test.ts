import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as CrossQ from "../../src/algorithms/replay/CrossQ.ts"
import * as DiscreteSac from "../../src/algorithms/replay/DiscreteSac.ts"
import * as Sac from "../../src/algorithms/replay/Sac.ts"
import * as CartPole from "../../src/env/classic/CartPole.ts"
import * as Pendulum from "../../src/env/classic/Pendulum.ts"
import type { Env } from "../../src/env/Env.ts"
import type { Algorithm } from "../../src/learner/Algorithm.ts"
import { keep, weightsOf } from "../train/inMemory.ts"

interface TemperatureOptions {
  readonly alpha?: number | null
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
    it.effect(`is the temperature with which ${name} begins to learn its own`, () =>
      Effect.gen(function* () {
        // The only update follows step 21, so that it has the temperature of the start.
        const weights = (options: TemperatureOptions) =>
          Effect.map(keep({ env, algorithm: make(options), numEnvs: 1, totalSteps: 21 }), weightsOf)
        const distance = (one: Float32Array, other: Float32Array) =>
          Math.max(...one.map((value, at) => Math.abs(value - other[at])))
        const fixed = yield* weights({ alpha: 0.05 })
        assert.isBelow(distance(yield* weights({ alphaStart: 0.05 }), fixed), 1e-6)
        assert.isAbove(distance(yield* weights({}), fixed), 1e-4)
      }),
    )
  }
})
