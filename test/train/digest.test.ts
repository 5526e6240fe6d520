import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as A2c from "../../src/algorithm/A2c.ts"
import * as Ppo from "../../src/algorithm/Ppo.ts"
import * as Acrobot from "../../src/env/classic/Acrobot.ts"
import * as CartPole from "../../src/env/classic/CartPole.ts"
import * as Pendulum from "../../src/env/classic/Pendulum.ts"
import { keep } from "./inMemory.ts"

/**
 * Whole runs on the wasm backend: weights and scores to the last bit, on every machine. A change of these digests is a
 * change of results: commit new ones only with the change that means to make it.
 */
const runs = {
  "PPO on CartPole": {
    digest: "",
    input: {
      env: CartPole.env,
      algorithm: Ppo.make({ nsteps: 64 }),
      totalSteps: 8192,
      validation: { everySteps: 4096, episodes: 4 },
    },
  },
  "PPO on Pendulum, normalised": {
    digest: "",
    input: {
      env: Pendulum.env,
      algorithm: Ppo.make({ nsteps: 64 }),
      totalSteps: 4096,
      normalize: { observations: true, rewards: true },
    },
  },
  "A2C on Acrobot": {
    digest: "",
    input: { env: Acrobot.env, algorithm: A2c.make({ activation: "relu" }), totalSteps: 4000 },
  },
} as const

describe("the digest of a run wholly on wasm is what it was on every machine", () => {
  for (const [name, { digest, input }] of Object.entries(runs)) {
    it.effect(name, () => Effect.map(keep(input), ({ result }) => assert.strictEqual(result.digest, digest)))
  }
})
