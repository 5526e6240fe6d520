import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as AlphaZero from "../../../src/rl/algorithms/planning/AlphaZero.ts"
import * as Bc from "../../../src/rl/algorithms/demonstrations/Bc.ts"
import * as CrossQ from "../../../src/rl/algorithms/replay/CrossQ.ts"
import * as Curiosity from "../../../src/rl/algorithms/rollouts/Curiosity.ts"
import * as Daac from "../../../src/rl/algorithms/rollouts/Daac.ts"
import * as Dagger from "../../../src/rl/algorithms/demonstrations/Dagger.ts"
import * as Ddpg from "../../../src/rl/algorithms/replay/Ddpg.ts"
import * as Ddqn from "../../../src/rl/algorithms/rollouts/Ddqn.ts"
import * as Transitions from "../../../src/rl/learner/transitions/Transitions.ts"
import * as DiscreteSac from "../../../src/rl/algorithms/replay/DiscreteSac.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as Gail from "../../../src/rl/algorithms/demonstrations/Gail.ts"
import * as Iql from "../../../src/rl/algorithms/demonstrations/Iql.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Randal from "../../../src/rl/algorithms/rollouts/Randal.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as Trpo from "../../../src/rl/algorithms/rollouts/Trpo.ts"
import * as Tqc from "../../../src/rl/algorithms/replay/Tqc.ts"
import * as Unreal from "../../../src/rl/algorithms/rollouts/Unreal.ts"
import * as Vin from "../../../src/rl/algorithms/rollouts/Vin.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import * as BitFlip from "../../../src/rl/env/games/BitFlip.ts"
import * as GoalEnv from "../../../src/rl/env/GoalEnv.ts"
import { box, dict } from "../../../src/rl/env/Space.ts"
import * as TicTacToe from "../../../src/rl/env/games/TicTacToe.ts"
import * as GridWorld from "../../../src/rl/env/grid/GridWorld.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { resumable } from "../train/resumable.ts"

const shown = Transitions.record(CartPole.env, {
  episodes: 2,
  policy: ([, , angle, spin]) => (angle + spin > 0 ? 1 : 0),
})
const hidden = [16]
const blind = Wrapper.keepObservations(CartPole.env, [0, 2])
const seenBlind = Transitions.record(blind, { episodes: 2, policy: ([, angle]) => (angle > 0 ? 1 : 0) })
/** Short episodes, so that both endings are met. */
const pendulum = Wrapper.timeLimit(Pendulum.env, 30)
const maze = KeyDoor.make({ size: 6, maxSteps: 40 })

/** A point that moves to a goal. */
const numbers = box(-1, 1, [2])
const far = (one: ArrayLike<number>, other: ArrayLike<number>) => Math.hypot(one[0] - other[0], one[1] - other[1]) > 0.2
const point = GoalEnv.make({
  id: "point",
  observationSpace: dict({ observation: numbers, achieved_goal: numbers, desired_goal: numbers }),
  actionSpace: numbers,
  maxSteps: 20,
  reset: (random) => ({ at: [0, 0], goal: [random.between(-1, 1), random.between(-1, 1)] }),
  observe: ({ at, goal }) => ({ observation: at, achieved_goal: at, desired_goal: goal }),
  step: ({ at, goal }, action) => ({
    at: at.map((number, index) => Math.min(Math.max(number + 0.2 * action[index], -1), 1)),
    goal,
  }),
  computeReward: (achieved, desired) => (far(achieved, desired) ? -1 : 0),
})
/** DQN's settings with all that extends it. */
const everyExtension = {
  hidden,
  learningStarts: 50,
  bufferSize: 200,
  batchSize: 8,
  dueling: true,
  prioritised: {},
  nsteps: 3,
  gradientSteps: 2,
}
const small = { hidden, batchSize: 16, learningStarts: 40, bufferSize: 150 }

/** Every algorithm, small, on an env that it can be on. */
const cases: Readonly<Record<string, readonly [Env, Algorithm, number]>> = {
  A2C: [CartPole.env, A2c.make({ hidden }), 400],
  "A2C with a memory": [blind, A2c.make({ hidden, lstm: 8, nsteps: 8, sequence: 4 }), 512],
  PPO: [CartPole.env, Ppo.make({ hidden, nsteps: 16 }), 512],
  "PPO in the graph": [CartPole.env, Ppo.make({ hidden, nsteps: 16, rollouts: "graph" }), 512],
  "PPO in the graph, with truncated episodes": [pendulum, Ppo.make({ hidden, nsteps: 8, rollouts: "graph" }), 512],
  "PPO in the graph, on images": [maze, Ppo.make({ hidden, nsteps: 16, rollouts: "graph" }), 512],
  "PPO with a memory": [blind, Ppo.make({ hidden, lstm: 8, nsteps: 16, sequence: 8 }), 512],
  "PPO with a shared memory between hidden layers": [
    blind,
    Ppo.make({ hidden: [8, 8], lstm: 8, lstmAfter: 1, criticMemory: "shared", nsteps: 16, sequence: 8 }),
    512,
  ],
  "PPO with a memory, on images": [maze, Ppo.make({ hidden, lstm: 8, nsteps: 16, sequence: 8 }), 512],
  "double DQN": [CartPole.env, Ddqn.make({ hidden, dueling: true, updateTargetFreq: 100 }), 400],
  DQN: [CartPole.env, Dqn.make({ hidden, learningStarts: 50, updateTargetFreq: 100, bufferSize: 200 }), 400],
  "DQN with everything, on images": [maze, Dqn.make(everyExtension), 400],
  "DQN by quantiles": [
    CartPole.env,
    Dqn.make({ hidden, learningStarts: 50, bufferSize: 200, distribution: { type: "quantiles", count: 5 } }),
    400,
  ],
  "DQN with noisy layers": [
    CartPole.env,
    Dqn.make({ hidden, learningStarts: 50, bufferSize: 200, noisy: true, epsilonStart: 0, epsilonEnd: 0 }),
    400,
  ],
  "DQN by categories, with everything, on images": [
    maze,
    Dqn.make({
      ...everyExtension,
      distribution: { type: "categories", count: 7, min: 0, max: 1 },
      noisy: true,
    }),
    400,
  ],
  "DQN with a memory": [blind, Dqn.make({ ...small, batchSize: 4, lstm: 8, sequence: 6, burnIn: 2 }), 400],
  "DQN with a memory and everything, on images": [
    maze,
    Dqn.make({
      ...small,
      batchSize: 4,
      lstm: 8,
      sequence: 5,
      dueling: true,
      prioritised: {},
      nsteps: 3,
      gradientSteps: 2,
      noisy: true,
      rescale: true,
    }),
    400,
  ],
  SAC: [pendulum, Sac.make({ hidden, batchSize: 16, learningStarts: 40, bufferSize: 150 }), 300],
  "SAC with a memory that isn't full": [pendulum, Sac.make({ hidden, batchSize: 16, learningStarts: 40 }), 300],
  "DQN by priorities with a memory that isn't full, on images": [
    maze,
    Dqn.make({ hidden, learningStarts: 50, bufferSize: 2000, batchSize: 8, prioritised: {}, nsteps: 3 }),
    400,
  ],
  "UNREAL with a memory that isn't full": [
    maze,
    Unreal.make({ hidden, nsteps: 8, replaySize: 400, replaySteps: 8, cell: 2 }),
    512,
  ],
  "SAC for choices": [
    CartPole.env,
    DiscreteSac.make({ hidden, batchSize: 16, learningStarts: 40, bufferSize: 150 }),
    300,
  ],
  TD3: [pendulum, Td3.make({ hidden, batchSize: 16, learningStarts: 40, bufferSize: 150 }), 300],
  DDPG: [pendulum, Ddpg.make({ hidden, batchSize: 16, learningStarts: 40, bufferSize: 150 }), 300],
  "DDPG with noise of a process that falls": [
    pendulum,
    Ddpg.make({ ...small, noiseType: "ornstein-uhlenbeck", explorationNoise: "lin_0.5" }),
    300,
  ],
  "DDPG with noise of a process that repeats, also in the warm-up": [
    pendulum,
    Ddpg.make({ ...small, learningStarts: 80, noiseType: "ornstein-uhlenbeck", noiseRepeat: 7, warmUpNoise: true }),
    300,
  ],
  "SAC whose temperature starts low": [pendulum, Sac.make({ ...small, alphaStart: 0.1 }), 300],
  "PPO with a clip range and an entropy coefficient that fall": [
    CartPole.env,
    Ppo.make({ hidden, nsteps: 16, clip: "lin_0.2", entropyCoefficient: { schedule: "cosine", from: 0.1 } }),
    512,
  ],
  "PPO with state-dependent exploration": [
    pendulum,
    Ppo.make({ hidden, nsteps: 16, sde: { sampleFreq: 5 }, logStdInit: -1 }),
    512,
  ],
  "A2C with state-dependent exploration": [pendulum, A2c.make({ hidden, sde: { fullStd: false } }), 200],
  "SAC with state-dependent exploration from the start": [
    pendulum,
    Sac.make({ ...small, trainEvery: 8, gradientSteps: -1, sde: { sampleFreq: 3, atWarmup: true } }),
    304,
  ],
  "TQC with state-dependent exploration": [pendulum, Tqc.make({ ...small, sde: { expln: true } }), 300],
  CrossQ: [pendulum, CrossQ.make({ ...small, criticHidden: [12] }), 300],
  "CrossQ with state-dependent exploration, after its warm-up": [
    pendulum,
    CrossQ.make({
      ...small,
      criticHidden: [12],
      renormWarmUp: 20,
      sde: { sampleFreq: 2 },
      trainEvery: 8,
      gradientSteps: 8,
    }),
    304,
  ],
  "TRPO with state-dependent exploration": [
    pendulum,
    Trpo.make({ hidden, nsteps: 16, valueMinibatches: 4, sde: {} }),
    512,
  ],
  TRPO: [CartPole.env, Trpo.make({ hidden, nsteps: 16, valueMinibatches: 4 }), 512],
  TQC: [pendulum, Tqc.make({ hidden, batchSize: 16, learningStarts: 40, bufferSize: 150, critics: 3 }), 300],
  "DQN with hindsight": [BitFlip.make({ bits: 6 }), Dqn.make({ ...small, her: {} }), 400],
  "DQN with hindsight, by priorities, of several steps": [
    BitFlip.make({ bits: 6 }),
    Dqn.make({ ...small, her: { strategy: "episode" }, prioritised: {}, nsteps: 3, gradientSteps: 2 }),
    400,
  ],
  "SAC with hindsight": [point, Sac.make({ ...small, her: { strategy: "final" } }), 300],
  "SAC for choices with hindsight": [BitFlip.make({ bits: 6 }), DiscreteSac.make({ ...small, her: {} }), 300],
  "TD3 with hindsight": [point, Td3.make({ ...small, her: {} }), 300],
  "TQC with hindsight": [point, Tqc.make({ ...small, her: {} }), 300],
  RND: [CartPole.env, Rnd.make({ hidden, nsteps: 16, initObsSteps: 20 }), 512],
  curiosity: [CartPole.env, Curiosity.make({ hidden }), 400],
  "curiosity with real actions": [pendulum, Curiosity.make({ hidden }), 200],
  DAAC: [CartPole.env, Daac.make({ hidden, nsteps: 16 }), 512],
  UNREAL: [maze, Unreal.make({ hidden, nsteps: 8, replaySize: 40, replaySteps: 8, cell: 2 }), 512],
  "UNREAL with a memory": [
    maze,
    Unreal.make({ hidden, lstm: 8, nsteps: 8, replaySize: 40, replaySteps: 8, cell: 2 }),
    512,
  ],
  RANDAL: [maze, Randal.make({ hidden, nsteps: 16, initObsSteps: 10, replaySize: 40, replaySteps: 8, cell: 2 }), 512],
  AlphaZero: [
    TicTacToe.selfPlay,
    AlphaZero.make({ hidden, convolutions: [], gamma: -1, simulations: 8, nsteps: 16, window: 3, temperatureSteps: 3 }),
    512,
  ],
  "AlphaZero with chance and truncated episodes": [
    Wrapper.stickyActions(GridWorld.make({ size: 6, maxSteps: 10 })),
    AlphaZero.make({ hidden, convolutions: [], simulations: 4, nsteps: 16, window: 3 }),
    512,
  ],
  VIN: [GridWorld.make({ size: 6 }), Vin.make({ nsteps: 16, planning: { iterations: 3, filters: 4 } }), 512],
  IQL: [CartPole.env, Iql.make(shown, { hidden, batchSize: 32 }), 640],
  "IQL with real actions": [
    pendulum,
    Iql.make(Transitions.record(pendulum, { episodes: 5, policy: "random" }), { hidden, batchSize: 32 }),
    640,
  ],
  DAgger: [
    CartPole.env,
    Dagger.make((row, random) => (random.uniform() < 0.1 ? 0 : row[2] + row[3] > 0 ? 1 : 0), { hidden, nsteps: 20 }),
    480,
  ],
  "DAgger with real actions": [
    pendulum,
    Dagger.make(([, sin, speed]) => [-3 * sin - speed], { hidden, nsteps: 20 }),
    480,
  ],
  GAIL: [CartPole.env, Gail.make(shown, { hidden, nsteps: 16 }), 512],
  "GAIL with a memory": [blind, Gail.make(seenBlind, { hidden, lstm: 8, nsteps: 16, sequence: 8 }), 512],
  "GAIL with real actions": [
    pendulum,
    Gail.make(Transitions.record(pendulum, { episodes: 5, policy: "random" }), {
      hidden,
      nsteps: 16,
      reward: "logit",
      gradientPenalty: 1,
    }),
    512,
  ],
  "behaviour cloning": [CartPole.env, Bc.make(shown, { hidden }), 1280],
  "evolution strategies": [CartPole.env, Es.make({ hidden }), 800],
}

/** Every mechanism stays quick once: a rollout, replay, priorities, goals, a search, noise, demonstrations, the graph. */
const quick = new Set([
  "A2C",
  "PPO",
  "PPO in the graph",
  "PPO with a shared memory between hidden layers",
  "DQN",
  "DQN with hindsight, by priorities, of several steps",
  "DDPG with noise of a process that falls",
  "SAC whose temperature starts low",
  "SAC with state-dependent exploration from the start",
  "TD3",
  "DAAC",
  "curiosity",
  "AlphaZero",
  "IQL with real actions",
  "DAgger",
  "behaviour cloning",
  "evolution strategies",
])

describe("a run that was stopped and resumed ends with the digest of one that never was", () => {
  for (const [name, [env, algorithm, totalSteps]] of Object.entries(cases)) {
    it.effect(
      name,
      () =>
        Effect.gen(function* () {
          const input = { env, algorithm, numEnvs: 4, totalSteps }
          const { whole, resumed, stoppedAt } = yield* resumable(input, totalSteps / 2)
          assert.isAtLeast(stoppedAt, totalSteps / 2)
          assert.isBelow(stoppedAt, whole.steps)
          assert.strictEqual(resumed.digest, whole.digest)
          assert.strictEqual(resumed.steps, whole.steps)
        }),
      { tags: quick.has(name) ? [] : "slow" },
    )
  }
})
