import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"
import * as DiscreteSac from "../../../src/rl/algorithms/replay/DiscreteSac.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Es from "../../../src/rl/algorithms/episodes/Es.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Td3 from "../../../src/rl/algorithms/replay/Td3.ts"
import * as Trpo from "../../../src/rl/algorithms/rollouts/Trpo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import { type Env, rowSpaceOf } from "../../../src/rl/env/Env.ts"
import { drawAllowed } from "../../../src/rl/env/internal/rows.ts"
import * as Catch from "../../../src/rl/env/pixel/Catch.ts"
import { make as moments } from "../../../src/rl/env/RunningMoments.ts"
import * as Normalise from "../../../src/rl/env/Normalise.ts"
import { sizeOf } from "../../../src/rl/env/Space.ts"
import { evaluate } from "../../../src/rl/export/DenseActor.ts"
import { denseActor } from "../../../src/rl/export/policyFiles.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { withFolder } from "../../command/cli/effect.ts"
import { courier } from "../env/courier.ts"

/** A program that knows ONNX Runtime and nothing else: observations in, actions out, the memory carried along. */
const bare = `
import { readFileSync } from "node:fs"
import * as ort from "onnxruntime-node"
const [model, inputs] = process.argv.slice(2)
const session = await ort.InferenceSession.create(model)
const actions = []
let memory
for (const observation of JSON.parse(readFileSync(inputs, "utf8"))) {
  const feeds = { observations: new ort.Tensor("float32", Float32Array.from(observation), [1, observation.length]) }
  if (session.inputNames.includes("memory")) {
    const size = session.inputMetadata.find(({ name }) => name === "memory").shape[1]
    feeds.memory = memory ?? new ort.Tensor("float32", new Float32Array(size), [1, size])
  }
  const results = await session.run(feeds)
  memory = results.nextMemory
  actions.push(Array.from(results.actions.data, Number))
}
console.log(JSON.stringify(actions))
`

const hidden = [24]
const cases: Readonly<Record<string, readonly [Env, Algorithm]>> = {
  "of PPO": [CartPole.env, Ppo.make({ hidden })],
  "of PPO with real actions": [Pendulum.env, Ppo.make({ hidden })],
  "of A2C with a memory": [CartPole.env, A2c.make({ hidden, lstm: 8 })],
  "of PPO with a shared memory between hidden layers": [
    CartPole.env,
    Ppo.make({ hidden: [8, 8], lstm: 8, lstmAfter: 1, criticMemory: "shared", minibatches: 1 }),
  ],
  "of DQN on images": [Catch.env, Dqn.make({ hidden, dueling: true })],
  "of Rainbow on images": [
    Catch.env,
    Dqn.make({ hidden, dueling: true, distribution: { type: "categories", count: 7, min: -1, max: 1 }, noisy: true }),
  ],
  "of DQN with a memory": [Catch.env, Dqn.make({ hidden, lstm: 8 })],
  "of SAC": [Pendulum.env, Sac.make({ hidden })],
  "of SAC for choices": [CartPole.env, DiscreteSac.make({ hidden })],
  "of TRPO": [CartPole.env, Trpo.make({ hidden })],
  "of TD3": [Pendulum.env, Td3.make({ hidden })],
  "of evolution strategies": [CartPole.env, Es.make({ hidden })],
}

describe("the ONNX model of a policy, in a program that imports nothing of ours, acts as the policy does", () => {
  for (const [name, [env, algorithm]] of Object.entries(cases)) {
    it.effect(
      name,
      () =>
        Effect.gen(function* () {
          const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
          const { observationSpace, actionSpace } = env
          const learner = yield* learnerOf(configured, {
            observationSpace,
            actionSpace,
            numEnvs: 2,
            totalSteps: 100,
            seed: 5,
          })
          const size = sizeOf(observationSpace)
          const random = stream(8)
          const observations = Array.from({ length: 40 }, () =>
            Array.from({ length: size }, () => Math.fround(random.normal())),
          )
          const policy = yield* learner.policy?.(1) ?? Effect.die("no policy")
          yield* policy.refresh
          const expected = observations.map((observation) => {
            policy.observations.set(observation)
            policy.program.runSync?.()
            return Array.from(policy.actions)
          })
          const model = yield* learner.exportPolicy?.() ?? Effect.die("no export")
          const outputs = yield* Effect.promise(() => runBare(model, observations))
          for (const [index, actions] of outputs.entries()) {
            for (const [at, action] of actions.entries()) assert.closeTo(action, expected[index][at], 1e-4)
          }
          assert.isAbove(new Set(outputs.map(String)).size, 1)
          if (learner.dense === undefined) return assert.isTrue(/memory|images/.test(name))
          // And as plain numbers, for the files that need no runtime at all.
          const actor = denseActor(learner.dense, yield* learner.weights, size)
          const scaled = ["of SAC", "of TD3"].includes(name)
          for (const [index, observation] of observations.entries()) {
            const outputs = Array.from(evaluate(actor, Float32Array.from(observation)), (value, at) => {
              if (actionSpace._tag !== "Box") return value
              const [low, high] = [actionSpace.low[at], actionSpace.high[at]]
              return scaled ? (value * (high - low)) / 2 + (high + low) / 2 : Math.min(Math.max(value, low), high)
            })
            const action = actionSpace._tag === "Discrete" ? [outputs.indexOf(Math.max(...outputs))] : outputs
            for (const [at, value] of action.entries()) assert.closeTo(value, expected[index][at], 1e-4)
          }
        }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
      // Each starts a process.
      { tags: ["of PPO", "of SAC"].includes(name) ? [] : "slow" },
    )
  }

  it.effect("on observations with parts and action masks, of which it normalises the real numbers", () =>
    Effect.gen(function* () {
      const env = courier(4)
      const space = rowSpaceOf(env)
      const algorithm = Ppo.make({ hidden })
      const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
      const task = { observationSpace: space, actionSpace: env.actionSpace, numEnvs: 1, totalSteps: 100, seed: 5 }
      const learner = yield* learnerOf(configured, task)
      const batch = Normalise.observations(Batch.make(env, 1))
      const raw = Batch.make(env, 1)
      const random = stream(8)
      const actions = new Int32Array(1)
      const policy = yield* learner.policy?.(1) ?? Effect.die("no policy")
      yield* policy.refresh
      for (const each of [batch, raw]) each.reset(1)
      for (let step = 0; step < 30 && space._tag === "Masked"; step++) {
        drawAllowed(space, raw.observations, random, actions)
        for (const each of [batch, raw]) each.step(actions)
      }
      const frozen = Normalise.observations(Batch.make(env, 1), { moments: batch.observationMoments, frozen: true })
      for (const each of [frozen, raw]) each.reset(2)
      const inputs: Array<ReadonlyArray<number>> = []
      const expected: Array<number> = []
      for (let step = 0; step < 30 && space._tag === "Masked"; step++) {
        inputs.push(Array.from(raw.observations))
        policy.observations.set(frozen.observations)
        policy.program.runSync?.()
        expected.push(policy.actions[0])
        drawAllowed(space, raw.observations, random, actions)
        for (const each of [frozen, raw]) each.step(actions)
      }
      const preprocess = Normalise.asGraph(batch.observationMoments, { space })
      const model = yield* learner.exportPolicy?.(preprocess) ?? Effect.die("no export")
      const outputs = yield* Effect.promise(() => runBare(model, inputs))
      assert.deepStrictEqual(outputs.flat(), expected)
      assert.isAbove(new Set(expected).size, 1)
      for (const [index, row] of inputs.entries()) assert.strictEqual(row[row.length - 4 + expected[index]], 1)
      assert.isUndefined(learner.dense)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("that normalises observations by statistics, from the observations of the env", () =>
    Effect.gen(function* () {
      const algorithm = Ppo.make({ hidden })
      const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
      const { observationSpace, actionSpace } = Pendulum.env
      const learner = yield* learnerOf(configured, {
        observationSpace,
        actionSpace,
        numEnvs: 1,
        totalSteps: 100,
        seed: 5,
      })
      const statistics = moments(3)
      statistics.update(Float32Array.of(1, 5, -20, 3, 6, 20, 2, 9, 60))
      const policy = yield* learner.policy?.(1) ?? Effect.die("no policy")
      yield* policy.refresh
      const inputs = [
        [2, 6, 20],
        [1, 9, -40],
      ]
      const expected = inputs.map((observation) => {
        const seen = observation.map((value, at) => {
          const away = (value - statistics.mean[at]) / Math.sqrt(statistics.variance[at] + 1e-8)
          return Math.min(Math.max(away, -10), 10)
        })
        policy.observations.set(seen)
        policy.program.runSync?.()
        return policy.actions[0]
      })
      const model = yield* learner.exportPolicy?.(Normalise.asGraph(statistics)) ?? Effect.die("no export")
      const outputs = yield* Effect.promise(() => runBare(model, inputs))
      for (const [index, [action]] of outputs.entries()) assert.closeTo(action, expected[index], 1e-5)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )
})

const runBare = (
  model: Uint8Array,
  observations: ReadonlyArray<ReadonlyArray<number>>,
): Promise<ReadonlyArray<ReadonlyArray<number>>> =>
  withFolder(async (folder) => {
    const [program, file, inputs] = ["bare.mjs", "policy.onnx", "observations.json"].map((name) => join(folder, name))
    writeFileSync(program, bare)
    writeFileSync(file, model)
    writeFileSync(inputs, JSON.stringify(observations))
    return JSON.parse(execFileSync(process.execPath, [program, file, inputs], { encoding: "utf8" }))
  })
