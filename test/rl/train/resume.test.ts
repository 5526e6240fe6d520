import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CartPole, Dqn, Env, Es, Pendulum, Ppo, Space } from "../../../src/index.ts"
import { names } from "../../../src/rl/algorithms/registry.ts"
import { changes } from "../../../src/rl/train/resume.ts"
import { policyCases } from "../export/policyCases.ts"
import { resumable } from "./resumable.ts"

const hidden = [8]
const ppo = { hidden, nsteps: 16, minibatches: 2 }
const short = { env: CartPole.env, numEnvs: 4, algorithm: Ppo.make(ppo), totalSteps: 512 }

describe("a resumed training may change", () => {
  for (const [name, again] of [
    ["its learning rate", { algorithm: Ppo.make({ ...ppo, learningRate: 1e-2 }) }],
    ["how an update learns", { algorithm: Ppo.make({ ...ppo, epochs: 1, minibatches: 4, clip: 0.1, gamma: 0.9 }) }],
    ["its envs' number", { numEnvs: 8 }],
  ] as const) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const { whole, resumed } = yield* resumable(short, 256, again)
        assert.strictEqual(resumed.steps, whole.steps)
        assert.notStrictEqual(resumed.digest, whole.digest)
      }),
    )
  }

  it.effect("its total number of steps, its validations and when it saves", () =>
    Effect.gen(function* () {
      const algorithm = Ppo.make({ ...ppo, schedule: "constant" })
      const input = { ...short, algorithm }
      const longer = { totalSteps: 1024, checkpoint: { everySteps: 100 } }
      const { resumed } = yield* resumable(input, 256, longer)
      const { whole } = yield* resumable({ ...input, ...longer }, 256)
      assert.strictEqual(resumed.digest, whole.digest)
      const validated = yield* resumable(input, 256, { validation: { everySteps: 64, episodes: 2 } })
      assert.strictEqual(validated.resumed.validation?.step, 512)
    }),
  )

  it.effect("the number of its envs, which begin new episodes while the statistics and the count of steps go on", () =>
    Effect.gen(function* () {
      /** Counts how often it was reset. */
      let resets = 0
      const env = Env.make({
        id: "counting",
        observationSpace: Space.box(-10, 10),
        actionSpace: Space.discrete(2),
        maxSteps: 8,
        reset: (random) => {
          resets++
          return { at: random.integer(10) }
        },
        observe: ({ at }) => [at],
        step: ({ at }, action) => ({ state: { at: at + action }, reward: 1, terminated: false }),
      })
      const input = { ...short, env, normalize: { observations: true, rewards: true } }
      const { resumed, stoppedAt } = yield* resumable(input, 256, { numEnvs: 2 })
      assert.strictEqual(stoppedAt, 256)
      assert.strictEqual(resumed.steps, 512)
      // 256 steps of 4 envs and 256 of 2 envs, in episodes of 8 steps.
      assert.strictEqual(resumed.episodes, 64)
      assert.isAbove(resets, 64)
      const again = yield* resumable(input, 256, { numEnvs: 2 })
      assert.strictEqual(again.resumed.digest, resumed.digest)
    }),
  )

  it.effect("the population of evolution strategies", () =>
    Effect.gen(function* () {
      const input = { ...short, numEnvs: 4, algorithm: Es.make({ hidden, maxEpisodeSteps: 20 }), totalSteps: 300 }
      const { resumed } = yield* resumable(input, 100, { numEnvs: 8 })
      assert.isAtLeast(resumed.steps, 300)
    }),
  )
})

describe("a resumed training is refused", () => {
  for (const [name, input, again, expected] of [
    [
      "another network",
      short,
      { algorithm: Ppo.make({ ...ppo, hidden: [4] }) },
      /saved with algorithm\.hidden = \[8\], found \[4\]; use the setting that it was saved with, or begin a new run from its weights: start\.from=\S+\/checkpoints\/step_000000000000256$/,
    ],
    ["another seed", short, { seed: 5 }, /saved with seed = 1, found 5;.*start\.from=/],
    [
      "another env",
      short,
      { env: Pendulum.env },
      /saved with env = "?CartPole-v1"?, found "?Pendulum-v1"?;.*start\.from=/,
    ],
    [
      "another number of envs of a memory",
      { ...short, algorithm: Ppo.make({ ...ppo, lstm: 4 }) },
      { numEnvs: 2 },
      /num_envs was 4, and only that can go on: ppo has a state for each env, such as a memory; set it to 4, or begin a new run from its weights: start\.from=/,
    ],
    [
      "another number of envs of a replay buffer",
      { ...short, algorithm: Dqn.make({ hidden, bufferSize: 64, batchSize: 8 }) },
      { numEnvs: 2 },
      /num_envs was 4, and only that can go on: dqn has a replay buffer with a part for each env; set it to 4, or begin a new run from/,
    ],
  ] as const) {
    it.effect(
      name,
      () =>
        Effect.gen(function* () {
          const { message } = yield* Effect.flip(resumable(input, 256, again))
          assert.match(message, expected)
        }),
      // A replay buffer, whose envs are counted by the same rule, stays quick.
      { tags: name === "another number of envs of a memory" ? "slow" : [] },
    )
  }
})

describe("the settings of updates", () => {
  it.effect("are settings of some algorithm each, and none of them decides the saved arrays", () =>
    Effect.gen(function* () {
      const known = new Set<string>()
      for (const [, algorithm] of policyCases) {
        const { config } = yield* algorithm.configure(algorithm.input, { source: "test" })
        for (const key of Object.keys(config))
          known.add(`algorithm.${key.replace(/[A-Z]/g, (at) => `_${at.toLowerCase()}`)}`)
      }
      assert.isAbove(names.length, 10)
      for (const key of changes.allowed) if (key !== "num_envs") assert.isTrue(known.has(key), key)
      for (const key of ["hidden", "lstm", "buffer_size", "dueling", "nsteps", "planning"])
        assert.isFalse(changes.isAllowed(`algorithm.${key}`))
    }),
  )
})
