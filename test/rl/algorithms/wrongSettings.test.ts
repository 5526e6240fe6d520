import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Bc from "../../../src/rl/algorithms/demonstrations/Bc.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import * as Demonstrations from "../../../src/rl/learner/Demonstrations.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Gail from "../../../src/rl/algorithms/demonstrations/Gail.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Randal from "../../../src/rl/algorithms/rollouts/Randal.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Trpo from "../../../src/rl/algorithms/rollouts/Trpo.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Curiosity from "../../../src/rl/algorithms/rollouts/Curiosity.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as Network from "../../../src/rl/model/network/Network.ts"
import * as Unreal from "../../../src/rl/algorithms/rollouts/Unreal.ts"
import * as Vin from "../../../src/rl/algorithms/rollouts/Vin.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import * as Graph from "../../../src/tensor/graph/ops.ts"
import * as BitFlip from "../../../src/rl/env/games/BitFlip.ts"
import * as PixelMaze from "../../../src/rl/env/grid/PixelMaze.ts"
import { lock } from "../env/locks.ts"
import { keep } from "../train/inMemory.ts"

/** A setting that is impossible fails before the first step; it is never ignored silently. */

const messageOf = (input: Parameters<typeof keep>[0]) =>
  Effect.map(Effect.flip(keep({ totalSteps: 64, numEnvs: 2, ...input })), ({ message }) => message)

const shown = Demonstrations.record(CartPole.env, { episodes: 2, policy: () => 1 })

describe("settings that can't be followed", () => {
  it.effect("slices and ranks that do not fit", () =>
    Effect.gen(function* () {
      const sliced = (slices: number, more: Parameters<typeof Ppo.make>[0] = {}) => ({
        env: CartPole.env,
        algorithm: Ppo.make({ nsteps: 32, slices, ...more }),
      })
      assert.match(
        yield* messageOf(sliced(5)),
        /algorithm\.slices: expected a divisor of a minibatch's 16 rows, found 5/,
      )
      const inGraph = yield* messageOf(sliced(2, { rollouts: "graph" }))
      assert.match(inGraph, /algorithm\.slices: expected 1 with rollouts "graph".*, found 2/)
      const few = yield* messageOf({ ...sliced(2), ranks: 4 })
      assert.match(few, /ranks: expected at most algorithm\.slices, which is 2, found 4; set algorithm\.slices to 4/)
      const none = yield* messageOf({ env: CartPole.env, algorithm: "dqn", ranks: 2 })
      assert.match(none, /ranks: expected 1 with algorithm "dqn", whose minibatches have no slices, found 2/)
    }),
  )

  it.effect("minibatches that do not divide a rollout, by the name of their setting", () =>
    Effect.gen(function* () {
      const messageWith = (algorithm: Algorithm) => messageOf({ env: CartPole.env, algorithm })
      assert.match(
        yield* messageWith(Gail.make(shown, { nsteps: 4, minibatches: 2, discriminatorMinibatches: 3 })),
        /algorithm\.discriminator_minibatches: expected a divisor of .* 8 rows, found 3/,
      )
      assert.match(
        yield* messageWith(Trpo.make({ nsteps: 4, valueMinibatches: 3 })),
        /algorithm\.value_minibatches: expected a divisor of .* 8 rows, found 3/,
      )
    }),
  )

  it.effect("settings of a memory without one, and those that do not work with one", () =>
    Effect.gen(function* () {
      const messageWith = (settings: Parameters<typeof Dqn.make>[0], env: Env = CartPole.env) =>
        messageOf({ env, algorithm: Dqn.make({ batchSize: 4, ...settings }) })
      assert.match(
        yield* messageWith({ sequence: 8 }),
        /algorithm\.sequence: 8 steps of a memory, but algorithm\.lstm is 0/,
      )
      assert.match(
        yield* messageWith({ burnIn: 4 }),
        /algorithm\.burn_in: 4 steps of a memory, but algorithm\.lstm is 0/,
      )
      assert.match(
        yield* messageWith({ lstm: 8, distribution: { type: "quantiles" } }),
        /algorithm\.distribution: expected null with algorithm\.lstm, found quantiles/,
      )
      assert.match(
        yield* messageWith({ rescale: true, distribution: { type: "quantiles" } }),
        /algorithm\.rescale: expected false with algorithm\.distribution/,
      )
      assert.match(
        yield* messageWith({ lstm: 8, her: {} }, BitFlip.make({ bits: 4 })),
        /algorithm\.her: expected null for a network with a memory/,
      )
      assert.match(
        yield* messageWith({ lstm: 8, sequence: 20, bufferSize: 30 }),
        /algorithm\.buffer_size: 30 transitions can't give a batch of 4 sequences of 20 steps/,
      )
    }),
  )

  it.effect("a memory's place that the network does not have", () =>
    Effect.gen(function* () {
      const messageWith = (settings: Parameters<typeof Ppo.make>[0]) =>
        messageOf({ env: CartPole.env, algorithm: Ppo.make({ hidden: [4], ...settings }) })
      const without = "expected null, because algorithm.lstm is 0, found"
      assert.include(yield* messageWith({ lstmAfter: 1 }), `algorithm.lstm_after: ${without} 1`)
      assert.include(yield* messageWith({ criticMemory: "own" }), `algorithm.critic_memory: ${without} own`)
      assert.include(
        yield* messageWith({ lstm: 4, lstmAfter: 2 }),
        "algorithm.lstm_after: expected at most 1, the number of layers in algorithm.hidden, found 2",
      )
      const network = Network.dense(4)
      assert.include(
        yield* messageWith({ lstm: 4, lstmAfter: 1, network }),
        "algorithm.lstm_after: expected null, because algorithm.network replaces algorithm.hidden, found 1",
      )
      assert.include(
        yield* messageWith({ lstm: 4, criticMemory: "shared", network: { actor: network, critic: network } }),
        "algorithm.network: expected one network, found one for an actor and one for a critic",
      )
      for (const algorithm of [A2c, Rnd, Curiosity]) {
        const message = yield* messageOf({ env: CartPole.env, algorithm: algorithm.make({ lstmAfter: 1 }) })
        assert.include(message, `algorithm.lstm_after: ${without} 1`)
      }
    }),
  )

  it.effect("a planner where there is no map", () =>
    Effect.gen(function* () {
      const expected = /a planner is one trunk below both heads, over maps .*, found Box\(\[4\]\)/
      assert.match(yield* messageOf({ env: CartPole.env, algorithm: Vin.make() }), expected)
      assert.match(yield* messageOf({ env: CartPole.env, algorithm: Bc.make(shown, { planning: {} }) }), expected)
    }),
  )

  it.effect("a memory too small for a sequence", () =>
    Effect.gen(function* () {
      for (const algorithm of [Unreal, Randal]) {
        const message = yield* messageOf({
          env: PixelMaze.env,
          algorithm: algorithm.make({ replaySize: 20, replaySteps: 20 }),
        })
        assert.strictEqual(
          message,
          "Train.run: algorithm.replay_size: expected at least 21, for sequences of 20 steps, found 20",
        )
      }
    }),
  )

  it.effect("a replay buffer that no machine's memory holds", () =>
    Effect.gen(function* () {
      const algorithm = Sac.make({ bufferSize: 1_000_000_000 })
      assert.strictEqual(
        yield* messageOf({ env: Pendulum.env, algorithm }),
        "Train.run: algorithm.buffer_size: 1000000000 transitions need 23 GiB of memory; make it smaller, so that at most 16 GiB are needed",
      )
    }),
  )

  it.effect("a memory of sequences that no machine's memory holds", () =>
    Effect.gen(function* () {
      for (const algorithm of [Unreal, Randal]) {
        const message = yield* messageOf({ env: PixelMaze.env, algorithm: algorithm.make({ replaySize: 1e9 }) })
        assert.match(
          message,
          /^Train\.run: algorithm\.replay_size: 1000000000 steps of 2 envs need \d+ GiB of memory; make it smaller/,
        )
      }
    }),
  )

  it.effect("a goal that no validation measures", () =>
    Effect.gen(function* () {
      const message = yield* messageOf({ env: CartPole.env, algorithm: Ppo.make(), stopAtReturn: 100 })
      assert.match(
        message,
        /stop_at_return: only validations measure whether 100 is reached; set validation\.every_steps/,
      )
    }),
  )

  it.effect("limits that no validation measures", () =>
    Effect.gen(function* () {
      const stopBelow = [{ step: 100, return: 0 }]
      const message = yield* messageOf({ env: CartPole.env, algorithm: Ppo.make(), totalSteps: 200, stopBelow })
      assert.match(message, /stop_below: only validations measure whether .*; set validation\.every_steps/)
    }),
  )

  it.effect("a loss of one's own that divides by 0", () =>
    Effect.gen(function* () {
      // The actions are 0 and 1, so some logarithms are of 0.
      const broken = (actions: Graph.Tensor) => Graph.mean(Graph.div(1, Graph.cast(actions, "f32")))
      const ppo = Ppo.make({ nsteps: 16, minibatches: 1, hidden: [8], loss: ({ actions }) => broken(actions) })
      const message = (algorithm: ReturnType<typeof Ppo.make>) =>
        messageOf({ env: CartPole.env, algorithm, totalSteps: 640 })
      assert.strictEqual(
        yield* message(ppo),
        "update 1: losses/own_loss is Infinity: your own loss, algorithm.loss, gives no finite number; look for a division by 0 or a logarithm of 0 in it, or lower the learning_rate",
      )
    }),
  )

  it.effect("behaviour cloning that diverges", () =>
    Effect.gen(function* () {
      const algorithm = Bc.make(shown, { learningRate: 3e38 })
      assert.match(yield* messageOf({ env: CartPole.env, algorithm, totalSteps: 6400 }), /the training has diverged/)
    }),
  )
})

describe("demonstrations", () => {
  const step = (action: unknown, observation: ReadonlyArray<number> = [0, 0, 0, 0]) =>
    Effect.map(
      Effect.flip(Demonstrations.fromJson(CartPole.env, JSON.stringify([{ trajectory: [{ observation, action }] }]))),
      ({ message }) => message,
    )

  it.effect("hold only what is an action of the env", () =>
    Effect.gen(function* () {
      const expected = "demonstrations: step 0: an action of CartPole-v1 is a whole number from 0 to 1, found"
      assert.strictEqual(yield* step(0.5), `${expected} 0.5`)
      assert.strictEqual(yield* step(2), `${expected} 2`)
      assert.match(yield* step([0, 1]), /an action of CartPole-v1 has 1 numbers, found \[0,1\]/)
      assert.match(yield* step(0, [1]), /an observation of CartPole-v1 has 4 numbers, found 1/)
      const masked = [{ trajectory: [{ observation: [0, 0, 1, 0, 1, 1, 1, 1], action: [1, 0] }] }]
      const forbidden = yield* Effect.flip(Demonstrations.fromJson(lock, JSON.stringify(masked)))
      assert.strictEqual(forbidden.message, "demonstrations: step 0: the action mask forbids [1,0]")
    }),
  )

  it("are not recorded of a policy that gives something else", () => {
    const record = (env: Parameters<typeof Demonstrations.record>[0], action: number | ReadonlyArray<number>) => () =>
      Demonstrations.record(env, { episodes: 1, policy: () => action })
    assert.throws(record(CartPole.env, -1), /demonstrations: episode 0, step 1: an action of CartPole-v1 is a whole/)
    assert.throws(record(Pendulum.env, []), /an action of Pendulum-v1 has 1 numbers, found \[\]/)
    assert.throws(record(Pendulum.env, NaN), /an action of Pendulum-v1 consists of finite numbers, found \[NaN\]/)
  })
})
