import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Bc from "../../../src/rl/algorithms/demonstrations/Bc.ts"
import * as Curiosity from "../../../src/rl/algorithms/rollouts/Curiosity.ts"
import * as Daac from "../../../src/rl/algorithms/rollouts/Daac.ts"
import * as Dagger from "../../../src/rl/algorithms/demonstrations/Dagger.ts"
import * as Ddqn from "../../../src/rl/algorithms/rollouts/Ddqn.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as Gail from "../../../src/rl/algorithms/demonstrations/Gail.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as Unreal from "../../../src/rl/algorithms/rollouts/Unreal.ts"
import * as Vin from "../../../src/rl/algorithms/rollouts/Vin.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import { box, dict, discrete } from "../../../src/rl/env/Space.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import * as Demonstrations from "../../../src/rl/learner/Demonstrations.ts"
import { courier } from "../env/courier.ts"
import { lamps, lock } from "../env/locks.ts"
import { keep, weightsOf } from "../train/inMemory.ts"
import { resumable } from "../train/resumable.ts"

/** A batch refuses forbidden actions, so these trainings fail if one is ever taken. */
const hidden = [16]
const masks = courier(4)
const several = { ...masks, actionMask: () => [1, 0, 1, 1, 1, 0] }

/** A thermostat with a mode of its own. */
const thermostat = Env.make({
  id: "thermostat",
  observationSpace: dict({ mode: discrete(2), degrees: box(-50, 50) }),
  actionSpace: box(-1, 1),
  maxSteps: 20,
  reset: (random) => ({ mode: random.integer(2), degrees: random.between(-5, 5) }),
  observe: ({ mode, degrees }) => ({ mode, degrees: [degrees] }),
  step: ({ mode, degrees }, [heat]) => ({
    state: { mode, degrees: degrees + heat },
    reward: -Math.abs(degrees - 5 * mode),
    terminated: false,
  }),
})

const { batch: _, ...door } = KeyDoor.make({ size: 6, maxSteps: 40 })
/** An image with a mask that forbids the last direction. */
const image = { ...door, id: "door", actionMask: () => [1, 1, 1, 0] }

const shown = Demonstrations.record(lock, { episodes: 2, policy: ([wheel, other]) => [wheel === 1 ? 0 : wheel, other] })

/** Demonstrations of any env, by random play. */
const randomly = (env: Env.Env) => Demonstrations.record(env, { episodes: 3, policy: "random", maxSteps: 50 })

const cases: Readonly<Record<string, readonly [Env.Env, Algorithm, number]>> = {
  PPO: [masks, Ppo.make({ hidden, nsteps: 16 }), 1024],
  "PPO with a memory": [masks, Ppo.make({ hidden, lstm: 8, nsteps: 16, sequence: 8 }), 512],
  "PPO with several choices": [lock, Ppo.make({ hidden, nsteps: 16 }), 1024],
  "PPO with switches": [lamps, Ppo.make({ hidden, nsteps: 16 }), 1024],
  "PPO with real actions": [thermostat, Ppo.make({ hidden, nsteps: 16 }), 512],
  A2C: [masks, A2c.make({ hidden }), 400],
  "A2C with several choices": [lock, A2c.make({ hidden }), 400],
  DAAC: [lock, Daac.make({ hidden, nsteps: 16 }), 512],
  "double DQN": [masks, Ddqn.make({ hidden, dueling: true, updateTargetFreq: 100 }), 800],
  "DQN with a memory": [
    masks,
    Dqn.make({ hidden, learningStarts: 50, bufferSize: 200, batchSize: 4, lstm: 8, sequence: 6, burnIn: 2, nsteps: 2 }),
    400,
  ],
  DQN: [masks, Dqn.make({ hidden, learningStarts: 200, updateTargetFreq: 100, bufferSize: 400 }), 1600],
  "DQN with everything, on images": [
    image,
    Dqn.make({ hidden, learningStarts: 50, bufferSize: 200, batchSize: 8, dueling: true, prioritised: {}, nsteps: 3 }),
    400,
  ],
  "DQN by quantiles": [
    masks,
    Dqn.make({
      hidden,
      learningStarts: 200,
      updateTargetFreq: 100,
      bufferSize: 400,
      distribution: { type: "quantiles", count: 5 },
    }),
    1600,
  ],
  SAC: [thermostat, Sac.make({ hidden, batchSize: 16, learningStarts: 40, bufferSize: 150 }), 300],
  TD3: [thermostat, Td3.make({ hidden, batchSize: 16, learningStarts: 40, bufferSize: 150 }), 300],
  RND: [masks, Rnd.make({ hidden, nsteps: 16, initObsSteps: 20 }), 512],
  curiosity: [lock, Curiosity.make({ hidden }), 400],
  UNREAL: [image, Unreal.make({ hidden, nsteps: 8, replaySize: 40, replaySteps: 8, cell: 2 }), 512],
  VIN: [image, Vin.make({ nsteps: 16, planning: { iterations: 3, filters: 4 } }), 512],
  "behaviour cloning": [lock, Bc.make(shown, { hidden }), 640],
  "DAgger with several choices": [
    lock,
    Dagger.make(([wheel, other]) => [wheel === 1 ? 0 : wheel, other], { hidden, nsteps: 20 }),
    400,
  ],
  "DAgger with real actions": [
    thermostat,
    Dagger.make(([mode, degrees]) => 5 * mode - degrees, { hidden, nsteps: 20 }),
    320,
  ],
  "DAgger, on images": [image, Dagger.make((_, random) => random.integer(3), { hidden, nsteps: 20 }), 320],
  GAIL: [masks, Gail.make(randomly(masks), { hidden, nsteps: 16, gradientPenalty: 1 }), 512],
  "GAIL with several choices": [lock, Gail.make(shown, { hidden, nsteps: 16, gradientPenalty: 1 }), 512],
  "GAIL with switches": [lamps, Gail.make(randomly(lamps), { hidden, nsteps: 16, gradientPenalty: 1 }), 512],
  "GAIL with real actions": [
    thermostat,
    Gail.make(randomly(thermostat), { hidden, nsteps: 16, gradientPenalty: 1 }),
    512,
  ],
  "GAIL, on images": [image, Gail.make(randomly(image), { hidden, nsteps: 16, gradientPenalty: 1 }), 512],
  "evolution strategies": [masks, Es.make({ hidden }), 400],
  "evolution strategies with several choices": [lock, Es.make({ hidden }), 400],
}

/** One case of each space, which stand for the others where there is little time. */
const examples = new Set(["PPO with switches", "DQN", "SAC", "curiosity", "VIN"])

describe("observations with parts, several choices and action masks: a resumed run ends with the digest of a whole one", () => {
  for (const [name, [env, algorithm, totalSteps]] of Object.entries(cases)) {
    it.effect(
      name,
      () =>
        Effect.gen(function* () {
          const validation = { everySteps: totalSteps / 2, episodes: 3, maxSteps: 50 }
          const input = { env, algorithm, numEnvs: 4, totalSteps, validation }
          const { whole, resumed } = yield* resumable(input, totalSteps / 2)
          assert.strictEqual(resumed.digest, whole.digest)
        }),
      { tags: examples.has(name) ? [] : "slow" },
    )
  }
})

describe("a mask that allows everything", () => {
  const { batch: _fast, ...pure } = CartPole.env
  const cartPole = { ...pure, id: "pole" }
  for (const [name, algorithm] of Object.entries({
    PPO: Ppo.make({ hidden, nsteps: 16 }),
    A2C: A2c.make({ hidden }),
    DQN: Dqn.make({ hidden, learningStarts: 100, bufferSize: 400 }),
    "DQN by categories": Dqn.make({
      hidden,
      learningStarts: 100,
      bufferSize: 400,
      distribution: { type: "categories", count: 7, min: 0, max: 100 },
    }),
    "double DQN": Ddqn.make({ hidden }),
    ES: Es.make({ hidden }),
  })) {
    it.effect(
      `leaves the weights of ${name} as they are`,
      () =>
        Effect.gen(function* () {
          const input = { algorithm, numEnvs: 4, totalSteps: 512 }
          const plain = yield* keep({ ...input, env: cartPole })
          const allowing = yield* keep({ ...input, env: { ...cartPole, actionMask: () => [1, 1] } })
          assert.deepStrictEqual([...weightsOf(allowing)], [...weightsOf(plain)])
        }),
      { tags: ["PPO", "DQN", "ES"].includes(name) ? [] : "slow" },
    )
  }
})

describe("algorithms that cannot learn in a space say so", () => {
  const messageOf = (env: Env.Env, algorithm: Algorithm) =>
    Effect.map(Effect.flip(keep({ env, algorithm, totalSteps: 64, numEnvs: 2 })), ({ message }) => message)

  it.effect("before the first step", () =>
    Effect.gen(function* () {
      const needs = "needs discrete actions, found MultiDiscrete([4, 2]); ppo and a2c take several choices"
      assert.include(yield* messageOf(lock, Dqn.make()), `dqn ${needs}`)
      assert.include(yield* messageOf(lock, Ddqn.make()), `ddqn ${needs}`)
      assert.include(yield* messageOf(lamps, Sac.make()), "sac needs actions that are real numbers")
      assert.include(yield* messageOf(masks, Unreal.make()), "unreal needs images [channels, height, width], found")
      assert.include(yield* messageOf(several, Ppo.make()), "actionMask returned 6 elements; expected 4")
      assert.include(yield* messageOf(lock, Ppo.make({ rollouts: "graph" })), "needs an env with a graph form")
    }),
  )
})
