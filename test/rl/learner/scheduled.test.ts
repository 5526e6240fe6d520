import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ddpg from "../../../src/rl/algorithms/replay/Ddpg.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import { decode } from "../../../src/base/config/Config.ts"
import { fraction, positive } from "../../../src/base/config/fields.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { CourseSetting, optimiserField } from "../../../src/rl/learner/parts.ts"
import { type Scheduled, scheduled, scheduleOf } from "../../../src/rl/learner/scheduled.ts"
import { keep } from "../train/inMemory.ts"

const hidden = [8]
const small = { hidden, batchSize: 8, learningStarts: 40, bufferSize: 200 }
const line = (from: number) => [`lin_${from}`, { schedule: "linear", from }, (at: number) => from * (1 - at)] as const

const digestOf = (algorithm: Algorithm) => {
  const env = ["ppo", "a2c", "dqn", "es"].includes(algorithm.name) ? CartPole.env : Pendulum.env
  return Effect.map(keep({ env, numEnvs: 4, algorithm, totalSteps: 256 }), ({ result }) => result.digest)
}

describe("a number with a schedule", () => {
  it("has the ends and the share of the run that its course names", () => {
    const at = (setting: Scheduled) => [0, 0.25, 0.5, 1].map(scheduleOf(setting))
    assert.deepEqual(at(3), [3, 3, 3, 3])
    assert.deepEqual(at("lin_0.4"), [0.4, 0.30000000000000004, 0.2, 0])
    assert.deepEqual(at({ schedule: "linear", from: 1, to: 0.2, until: 0.5 }), [1, 0.6000000000000001, 0.2, 0.2])
    assert.deepEqual(
      at({ schedule: "cosine", from: 2 }).map((value) => Math.round(value * 1e6) / 1e6),
      [2, 1.707107, 1, 0],
    )
  })

  it.effect("obeys the bounds of the number", () =>
    Effect.gen(function* () {
      const config = Schema.Struct({ rate: scheduled(positive), share: scheduled(fraction, fraction) })
      const refused = (input: object) =>
        Effect.flip(decode(config, { rate: 1, share: 0, ...input }, { source: "test" }))
      for (const [input, message] of [
        [{ rate: -1 }, "rate: expected a value greater than 0, found -1"],
        [{ rate: "lin_" }, 'rate: expected a number, or one that falls to 0 in a line, such as lin_0.2, found "lin_"'],
        [{ rate: "lin_0" }, "such as lin_0.2"],
        [{ rate: "exp_1" }, "such as lin_0.2"],
        [{ share: "lin_2" }, "such as lin_0.2"],
        [
          { rate: null },
          "rate: expected a number, or one that changes: lin_0.2, a section with schedule and from, or a function in code, " +
            "found null",
        ],
        [{ rate: true }, "rate: expected a number, or one that changes: lin_0.2"],
        [{ rate: [1] }, "rate: expected a number, or one that changes: lin_0.2"],
        [{ rate: { schedule: "linear", from: 0 } }, "rate.from: expected a value greater than 0, found 0"],
        [{ share: { schedule: "linear", from: 1, to: 2 } }, "share.to"],
        [{ share: { schedule: "linear", from: 1, upto: 2 } }, 'unknown key "share.upto"'],
      ] as const)
        assert.include((yield* refused(input)).message, message)
    }),
  )

  it.effect("names, like a course and an optimiser, all that can stand in its place", () =>
    Effect.gen(function* () {
      const config = Schema.Struct({ schedule: CourseSetting, ...optimiserField })
      for (const [input, message] of [
        [
          { schedule: null },
          'schedule: expected "constant", "linear", "cosine", a section with type, or a function in code',
        ],
        [{ schedule: true }, "a function in code, found true"],
        [{ schedule: 3 }, "a section with type"],
        [{ schedule: "line" }, 'expected "constant" | "linear" | "cosine", found "line"; did you mean "linear"?'],
        [{ schedule: "linear", optimiser: true }, "optimiser: expected the name of an optimiser, a section with name"],
      ] as const) {
        const { message: found } = yield* Effect.flip(decode(config, input, { source: "test" }))
        assert.include(found, message)
      }
    }),
  )

  /** A rollout, a replay buffer and whole episodes stay quick; the other numbers are read by the same function. */
  const quick = new Set(["the clip range of PPO", "the ε of DQN", "the learning rate of evolution strategies"])
  for (const [name, make, from] of [
    ["the clip range of PPO", (clip: Scheduled) => Ppo.make({ hidden, nsteps: 16, clip }), 0.02],
    ["the clip range of PPO in slices", (clip: Scheduled) => Ppo.make({ hidden, nsteps: 16, clip, slices: 2 }), 0.02],
    [
      "the clip range of PPO in the graph",
      (clip: Scheduled) => Ppo.make({ hidden, nsteps: 16, clip, rollouts: "graph" }),
      0.02,
    ],
    [
      "the entropy coefficient of A2C",
      (entropyCoefficient: Scheduled) => A2c.make({ hidden, entropyCoefficient }),
      0.1,
    ],
    ["the ε of DQN", (epsilon: Scheduled) => Dqn.make({ ...small, epsilon }), 0.8],
    ["the noise of TD3", (explorationNoise: Scheduled) => Td3.make({ ...small, explorationNoise }), 0.5],
    [
      "the noise of DDPG",
      (explorationNoise: Scheduled) => Ddpg.make({ ...small, explorationNoise, noiseType: "ornstein-uhlenbeck" }),
      0.5,
    ],
    [
      "the learning rate of SAC's critics",
      (criticLearningRate: Scheduled) => Sac.make({ ...small, criticLearningRate }),
      0.01,
    ],
    ["the learning rate of evolution strategies", (learningRate: Scheduled) => Es.make({ hidden, learningRate }), 0.1],
  ] as const) {
    it.effect(
      `can be ${name}: each spelling gives the same run, and a constant one that of the number`,
      () =>
        Effect.gen(function* () {
          const [written, named, coded, constant, number] = yield* Effect.forEach(
            [...line(from), () => from, from],
            (setting) => digestOf(make(setting)),
          )
          assert.strictEqual(named, written)
          assert.strictEqual(coded, written)
          assert.strictEqual(constant, number)
          assert.notStrictEqual(written, number)
        }),
      { tags: quick.has(name) ? [] : "slow" },
    )
  }

  it.effect("can be the learning rate, which is then that of `schedule: linear`, and has no other course", () =>
    Effect.gen(function* () {
      const by = (learningRate: Scheduled, schedule: "linear" | "constant") =>
        digestOf(Ppo.make({ hidden, nsteps: 16, learningRate, schedule }))
      const linear = yield* by(0.01, "linear")
      assert.strictEqual(yield* by("lin_0.01", "constant"), linear)
      assert.strictEqual(yield* by("lin_0.01", "linear"), linear)
    }),
  )

  it.effect("can be ε in place of its three settings", () =>
    Effect.gen(function* () {
      const three = { epsilonStart: 0.9, epsilonEnd: 0.1, explorationFraction: 0.5 }
      const epsilon = { schedule: "linear", from: 0.9, to: 0.1, until: 0.5 } as const
      assert.strictEqual(
        yield* digestOf(Dqn.make({ ...small, epsilon })),
        yield* digestOf(Dqn.make({ ...small, ...three })),
      )
    }),
  )
})
