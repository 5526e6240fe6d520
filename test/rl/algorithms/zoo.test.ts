import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as CrossQ from "../../../src/rl/algorithms/replay/CrossQ.ts"
import * as Ddpg from "../../../src/rl/algorithms/replay/Ddpg.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as Tqc from "../../../src/rl/algorithms/replay/Tqc.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Trpo from "../../../src/rl/algorithms/rollouts/Trpo.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import { box } from "../../../src/rl/env/Space.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { keep } from "../train/inMemory.ts"

/** A stand-in for envs with real numbers, whose spaces are those of a small robot. */
const robot = Env.make({
  id: "robot",
  observationSpace: box(-Infinity, Infinity, [5]),
  actionSpace: box(-1, 1, [2]),
  reset: (random) => random.between(-1, 1),
  observe: (at) => [at, -at, at * at, 1, 0],
  step: (at, [first, second]) => ({
    state: 0.9 * at + 0.1 * first - 0.1 * second,
    reward: -at * at,
    terminated: false,
  }),
  maxSteps: 20,
})

/** Settings as the RL Zoo has them, by its names in the docs; those that are its algorithms' defaults are left out. */
interface Row<Options> {
  readonly env: string
  readonly real?: boolean
  readonly numEnvs?: number
  readonly normalize?: boolean
  readonly settings: Options
}

/** What Stable-Baselines3 does by default: no course of the learning rate, no clipped values, and the whole squared error. */
const constant = { schedule: "constant" } as const
const plain = { ...constant, clipValue: false, valueCoefficient: 1 } as const
const wide = { hidden: [256, 256], activation: "relu", orthogonal: false, logStdInit: -2 } as const
const ppo: ReadonlyArray<Row<Ppo.PpoOptions>> = [
  {
    env: "CartPole-v1",
    numEnvs: 8,
    settings: {
      ...plain,
      nsteps: 32,
      minibatches: 1,
      lambda: 0.8,
      gamma: 0.98,
      epochs: 20,
      entropyCoefficient: 0,
      learningRate: "lin_0.001",
      clip: "lin_0.2",
    },
  },
  {
    env: "Acrobot-v1",
    numEnvs: 16,
    normalize: true,
    settings: { ...plain, nsteps: 256, minibatches: 64, lambda: 0.94, gamma: 0.99, epochs: 4, entropyCoefficient: 0 },
  },
  {
    env: "MountainCarContinuous-v0",
    real: true,
    normalize: true,
    settings: {
      ...plain,
      nsteps: 8,
      minibatches: 1,
      gamma: 0.9999,
      learningRate: 7.77e-5,
      entropyCoefficient: 0.00429,
      clip: 0.1,
      epochs: 10,
      lambda: 0.9,
      maxGradNorm: 5,
      valueCoefficient: 0.38,
      sde: {},
      logStdInit: -3.29,
      orthogonal: false,
    },
  },
  {
    env: "Pendulum-v1",
    real: true,
    numEnvs: 4,
    settings: {
      ...plain,
      nsteps: 1024,
      gamma: 0.9,
      learningRate: 1e-3,
      epochs: 10,
      lambda: 0.95,
      clip: 0.2,
      entropyCoefficient: 0,
      sde: { sampleFreq: 4 },
    },
  },
  {
    env: "HalfCheetah-v4",
    real: true,
    normalize: true,
    settings: {
      ...plain,
      ...wide,
      minibatches: 8,
      nsteps: 512,
      gamma: 0.98,
      learningRate: 2.0633e-5,
      entropyCoefficient: 0.000401762,
      clip: 0.1,
      epochs: 20,
      lambda: 0.92,
      maxGradNorm: 0.8,
      valueCoefficient: 1.16192,
    },
  },
  {
    env: "Hopper-v4",
    real: true,
    normalize: true,
    settings: {
      ...plain,
      ...wide,
      minibatches: 16,
      nsteps: 512,
      gamma: 0.999,
      learningRate: 9.80828e-5,
      entropyCoefficient: 0.00229519,
      clip: 0.2,
      epochs: 5,
      lambda: 0.99,
      maxGradNorm: 0.7,
      valueCoefficient: 1.671342,
    },
  },
]
const a2c: ReadonlyArray<Row<A2c.A2cOptions>> = [
  { env: "CartPole-v1", numEnvs: 8, settings: { ...constant, entropyCoefficient: 0 } },
  {
    env: "Pendulum-v1",
    real: true,
    numEnvs: 8,
    normalize: true,
    settings: {
      ...constant,
      entropyCoefficient: 0,
      maxGradNorm: 0.5,
      nsteps: 8,
      lambda: 0.9,
      valueCoefficient: 0.4,
      gamma: 0.9,
      learningRate: "lin_0.0007",
      sde: {},
      logStdInit: -2,
      orthogonal: false,
    },
  },
  {
    env: "MountainCarContinuous-v0",
    real: true,
    numEnvs: 4,
    normalize: true,
    settings: {
      ...constant,
      nsteps: 100,
      entropyCoefficient: 0,
      sde: { sampleFreq: 16 },
      logStdInit: 0,
      orthogonal: false,
    },
  },
]
const trpo: ReadonlyArray<Row<Trpo.TrpoOptions>> = [
  {
    env: "CartPole-v1",
    numEnvs: 2,
    settings: {
      ...constant,
      nsteps: 512,
      valueMinibatches: 2,
      cgDamping: 1e-3,
      lambda: 0.98,
      gamma: 0.99,
      learningRate: 1e-3,
      valueEpochs: 20,
    },
  },
  {
    env: "Pendulum-v1",
    real: true,
    numEnvs: 2,
    settings: { ...constant, nsteps: 1024, gamma: 0.9, valueEpochs: 15, sde: { sampleFreq: 4 } },
  },
  {
    env: "HalfCheetah-v4",
    real: true,
    numEnvs: 2,
    normalize: true,
    settings: { ...constant, ...wide, logStdInit: -1, maxKl: 0.04 },
  },
]
const exploring = {
  learningStarts: 1000,
  explorationFraction: 0.16,
  epsilonEnd: 0.04,
  double: false,
  maxGradNorm: 10,
} as const
const cartPole = {
  ...exploring,
  learningRate: 2.3e-3,
  batchSize: 64,
  bufferSize: 100_000,
  gamma: 0.99,
  updateTargetFreq: 10,
  trainEvery: 256,
  gradientSteps: 128,
  hidden: [256, 256],
} as const
const acrobot = {
  ...exploring,
  learningRate: 6.3e-4,
  batchSize: 128,
  bufferSize: 50_000,
  learningStarts: 0,
  updateTargetFreq: 250,
  trainEvery: 4,
  gradientSteps: -1,
  explorationFraction: 0.12,
  epsilonEnd: 0.1,
  hidden: [256, 256],
} as const
const dqn: ReadonlyArray<Row<Dqn.DqnOptions>> = [
  { env: "CartPole-v1", settings: cartPole },
  { env: "Acrobot-v1", settings: acrobot },
  {
    env: "MountainCar-v0",
    settings: {
      ...exploring,
      learningRate: 4e-3,
      batchSize: 128,
      bufferSize: 10_000,
      gamma: 0.98,
      updateTargetFreq: 600,
      trainEvery: 16,
      gradientSteps: 8,
      explorationFraction: 0.2,
      epsilonEnd: 0.07,
      hidden: [256, 256],
    },
  },
  {
    env: "CartPole-v1 (QR-DQN)",
    settings: { ...cartPole, maxGradNorm: 0, distribution: { type: "quantiles", count: 10 } },
  },
  {
    env: "Acrobot-v1 (QR-DQN)",
    settings: { ...acrobot, maxGradNorm: 0, distribution: { type: "quantiles", count: 25 } },
  },
]
const carContinuous = {
  learningRate: 3e-4,
  bufferSize: 50_000,
  batchSize: 512,
  alpha: 0.1,
  trainEvery: 32,
  gradientSteps: 32,
  gamma: 0.9999,
  tau: 0.01,
  learningStarts: 0,
  sde: {},
  logStdInit: -3.67,
  hidden: [64, 64],
} as const
const mujoco = { learningStarts: 10_000, hidden: [256, 256] } as const
const sac: ReadonlyArray<Row<Sac.SacOptions>> = [
  { env: "MountainCarContinuous-v0", settings: carContinuous },
  { env: "Pendulum-v1", settings: { learningRate: 1e-3, hidden: [256, 256] } },
  { env: "HalfCheetah-v4, Ant-v4, Hopper-v4, Walker2d-v4, Humanoid-v4", settings: mujoco },
  { env: "Swimmer-v4", settings: { ...mujoco, gamma: 0.999 } },
]
const tqc: ReadonlyArray<Row<Tqc.TqcOptions>> = [
  { env: "MountainCarContinuous-v0", settings: carContinuous },
  { env: "HalfCheetah-v4, Ant-v4, Walker2d-v4, Humanoid-v4", settings: mujoco },
  { env: "Hopper-v4", settings: { ...mujoco, dropped: 5 } },
]
const added = { batchSize: 256, learningRate: 1e-3, hidden: [400, 300] } as const
const td3: ReadonlyArray<Row<Ddpg.DdpgOptions>> = [
  { env: "MountainCarContinuous-v0", settings: { ...added, noiseType: "ornstein-uhlenbeck", explorationNoise: 0.5 } },
  {
    env: "Pendulum-v1",
    settings: {
      ...added,
      gamma: 0.98,
      bufferSize: 200_000,
      learningStarts: 10_000,
      noiseType: "normal",
      explorationNoise: 0.1,
    },
  },
  {
    env: "HalfCheetah-v4, Ant-v4, Hopper-v4, Walker2d-v4, Humanoid-v4",
    settings: { ...added, learningStarts: 10_000, noiseType: "normal", explorationNoise: 0.1 },
  },
  {
    env: "Swimmer-v4",
    settings: { ...added, learningStarts: 10_000, noiseType: "normal", explorationNoise: 0.1, gamma: 0.9999 },
  },
]
const crossQ: ReadonlyArray<Row<CrossQ.CrossQOptions>> = [
  {
    env: "MountainCarContinuous-v0",
    settings: {
      learningRate: 7e-4,
      bufferSize: 50_000,
      trainEvery: 32,
      gradientSteps: 32,
      gamma: 0.9999,
      learningStarts: 100,
      policyDelay: 2,
      sde: { expln: true },
      logStdInit: -1,
      hidden: [64, 64],
      criticHidden: [64, 64],
    },
  },
  { env: "Pendulum-v1", settings: { policyDelay: 2, hidden: [256, 256], criticHidden: [256, 256] } },
  {
    env: "HalfCheetah-v4, Ant-v4, Hopper-v4, Walker2d-v4, Humanoid-v4",
    settings: {
      learningRate: 1e-3,
      learningStarts: 5000,
      policyDelay: 3,
      hidden: [256, 256],
      criticHidden: [2048, 2048],
    },
  },
  {
    env: "Swimmer-v4",
    settings: { learningRate: 1e-3, learningStarts: 5000, gamma: 0.999, criticHidden: [2048, 2048] },
  },
]

const hidden = [4]
const fresh = { hidden, nsteps: 16 }
const replayed = { hidden, batchSize: 8, bufferSize: 200, learningStarts: 32 }
/** The settings of each algorithm, with those by which a few steps with updates take no time. */
const algorithms = [
  ["PPO", Ppo.make, ppo, { ...fresh, minibatches: 2, epochs: 2 }, false],
  ["A2C", A2c.make, a2c, fresh, false],
  ["TRPO", Trpo.make, trpo, { ...fresh, valueMinibatches: 2, valueEpochs: 2 }, false],
  ["DQN and QR-DQN", Dqn.make, dqn, { ...replayed, trainEvery: 8 }, false],
  ["SAC", Sac.make, sac, replayed, true],
  ["TQC", Tqc.make, tqc, replayed, true],
  ["TD3", Td3.make, td3, replayed, true],
  ["DDPG", Ddpg.make, td3, replayed, true],
  ["CrossQ", CrossQ.make, crossQ, { ...replayed, criticHidden: hidden }, true],
] as const

/** One that learns from rollouts, one from a replay buffer: the others stay for the slow tests. */
const quick = new Set(["PPO", "A2C", "DQN and QR-DQN"])

describe("the RL Zoo's settings can be expressed, and train", () => {
  const check = <Options extends object>(
    name: string,
    make: (options: Options) => Algorithm,
    rows: ReadonlyArray<Row<Options>>,
    small: object,
    real: boolean,
  ) => {
    it.effect(
      name,
      () =>
        Effect.gen(function* () {
          for (const { env, settings, numEnvs = 1, normalize = false, ...row } of rows) {
            const algorithm = make(settings)
            const { config } = yield* algorithm.configure(algorithm.input, { source: `${name} on ${env}` })
            // No default takes the place of a setting.
            for (const [key, value] of Object.entries(settings))
              if (typeof value !== "object") assert.deepEqual(config[key], value, `${name} on ${env}: ${key}`)
            const { result } = yield* keep({
              env: real || row.real === true ? robot : CartPole.env,
              numEnvs,
              algorithm: make({ ...settings, ...small }),
              totalSteps: 64 * numEnvs,
              normalize: { observations: normalize, rewards: normalize },
            })
            assert.isAtLeast(result.steps, 64 * numEnvs)
          }
        }),
      { tags: quick.has(name) ? [] : "slow" },
    )
  }
  check(...algorithms[0])
  check(...algorithms[1])
  check(...algorithms[2])
  check(...algorithms[3])
  check(...algorithms[4])
  check(...algorithms[5])
  check(...algorithms[6])
  check(...algorithms[7])
  check(...algorithms[8])
})
