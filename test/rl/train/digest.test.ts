import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as CrossQ from "../../../src/rl/algorithms/replay/CrossQ.ts"
import * as Ddpg from "../../../src/rl/algorithms/replay/Ddpg.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import { Backend } from "../../../src/tensor/backend/Backend.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { plainModules } from "../../../src/tensor/backend/wasmModules.ts"
import { canWiden, widened } from "../../../src/tensor/backend/wide-node.ts"
import * as Acrobot from "../../../src/rl/env/classic/Acrobot.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import { keep } from "./inMemory.ts"

const small = { hidden: [32], batchSize: 32, learningStarts: 200 }

/** Divides all programs among four threads, of which none but this one comes. */
const divided = Layer.succeed(
  Backend,
  Wasm.make(plainModules, { count: 4, start: () => Effect.void, worth: { slice: 1e-6, run: 0 } }),
)
/** Computes the same programs in bands of 16 rows, where they have as many. */
const inBands = Layer.succeed(
  Backend,
  Wasm.make(plainModules, undefined, { worth: 0, band: 1, rows: 16, weights: Infinity }),
)
const wide = Layer.succeed(Backend, Wasm.make({ module: widened, lanes: () => 8 as const, warnings: () => [] }))

/**
 * Whole runs on the wasm backend: weights and scores to the last bit, on every machine. A change of these digests is a
 * change of results: commit new ones only with the change that means to make it.
 */
const runs = {
  "PPO on CartPole": {
    digest: "f43caccaf6e24342b5c24fc8a669ce477d3fff282a03e728b9bb23fd2cc6f4f3",
    input: {
      env: CartPole.env,
      algorithm: Ppo.make({ nsteps: 64 }),
      totalSteps: 8192,
      validation: { everySteps: 4096, episodes: 4 },
    },
  },
  "PPO on Pendulum, normalised": {
    digest: "6deeea1f063ab5a8d98728f89d9864e0b307aea3b2e269e64dfa929c70f5bfb3",
    input: {
      env: Pendulum.env,
      algorithm: Ppo.make({ nsteps: 64 }),
      totalSteps: 4096,
      normalize: { observations: true, rewards: true },
    },
  },
  "A2C on Acrobot": {
    digest: "1f4d0be6e9f04383fb45a286f38b6d0472f399400b07a1d4d9d2f16e1cc29ae3",
    input: { env: Acrobot.env, algorithm: A2c.make({ activation: "relu" }), totalSteps: 4000 },
  },
  "PPO with a memory on CartPole": {
    digest: "46340af7d27fef293c5767b0b6b19bf435c779307bd5f010f799ec1bf20da624",
    input: {
      env: CartPole.env,
      numEnvs: 64,
      algorithm: Ppo.make({ lstm: 16, nsteps: 16, minibatches: 1 }),
      totalSteps: 4096,
    },
  },
  "PPO on Pendulum, with state-dependent exploration": {
    digest: "16607870508978b68dcdaedc5cfc7c9312d72c537ad13e9d4e662b5de4b577d0",
    input: {
      env: Pendulum.env,
      numEnvs: 32,
      algorithm: Ppo.make({ nsteps: 16, sde: { sampleFreq: 4 } }),
      totalSteps: 2048,
    },
  },
  "SAC on Pendulum, with state-dependent exploration": {
    digest: "e3f4b03564a4da6161a1ce22c30749102121cebc9e90110861b69321aa4ff1e1",
    input: { env: Pendulum.env, numEnvs: 1, algorithm: Sac.make({ ...small, sde: {} }), totalSteps: 400 },
  },
  "CrossQ on Pendulum": {
    digest: "aaed1ec8f3844be6436b9f47df1fa6e152c21219d8ef3e862df9c1748899acb6",
    input: {
      env: Pendulum.env,
      numEnvs: 1,
      algorithm: CrossQ.make({ ...small, criticHidden: [32], renormWarmUp: 100, alphaStart: 0.2 }),
      totalSteps: 400,
    },
  },
  "DDPG on Pendulum, with noise by Ornstein and Uhlenbeck": {
    digest: "31110e32b3666f62053675d0f9825a6045014e018634adc7df5540c817ba490d",
    input: {
      env: Pendulum.env,
      numEnvs: 2,
      algorithm: Ddpg.make({
        ...small,
        noiseType: "ornstein-uhlenbeck",
        warmUpNoise: true,
        explorationNoise: "lin_0.5",
      }),
      totalSteps: 400,
    },
  },
  "PPO on Pendulum, with rollouts in the graph": {
    digest: "aaf661466f8c871eaef3c02097b759147640a3854271c4084fac55963ec30c18",
    input: {
      env: Pendulum.env,
      numEnvs: 64,
      algorithm: Ppo.make({ nsteps: 16, rollouts: "graph" }),
      totalSteps: 4096,
    },
  },
} as const

describe("the digest of a run wholly on wasm is what it was on every machine", () => {
  for (const [at, [name, { digest, input }]] of Object.entries(runs).entries()) {
    const tags = at < 1 ? [] : "slow"
    it.effect(name, () => Effect.map(keep(input), ({ result }) => assert.strictEqual(result.digest, digest)))
    it.effect(
      `${name}, with kernels divided among threads`,
      () => Effect.map(keep(input, divided), ({ result }) => assert.strictEqual(result.digest, digest)),
      { tags },
    )
    it.effect(
      `${name}, in bands of rows`,
      () => Effect.map(keep(input, inBands), ({ result }) => assert.strictEqual(result.digest, digest)),
      { tags },
    )
    it.effect.skipIf(!canWiden())(
      `${name}, with kernels widened to 256 bits`,
      () => Effect.map(keep(input, wide), ({ result }) => assert.strictEqual(result.digest, digest)),
      { tags },
    )
  }
})
