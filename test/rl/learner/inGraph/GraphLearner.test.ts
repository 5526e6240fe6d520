import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import * as Ppo from "../../../../src/rl/algorithms/rollouts/Ppo.ts"
import type { Backend, BackendUnavailable } from "../../../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../../../src/tensor/backend/onnx-node.ts"
import * as Reference from "../../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../../src/rl/env/classic/CartPole.ts"
import { builtIn } from "../../../../src/rl/env/Envs.ts"
import * as Breakout from "../../../../src/rl/env/pixel/Breakout.ts"
import * as SpaceInvaders from "../../../../src/rl/env/pixel/SpaceInvaders.ts"
import * as Pendulum from "../../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../../src/rl/env/Env.ts"
import { graphOf, withGraph } from "../../../../src/rl/env/EnvGraph.ts"
import * as EpisodeLog from "../../../../src/rl/env/EpisodeLog.ts"
import * as GridWorld from "../../../../src/rl/env/grid/GridWorld.ts"
import * as KeyDoor from "../../../../src/rl/env/grid/KeyDoor.ts"
import * as Wrapper from "../../../../src/rl/env/Wrapper.ts"
import { evaluate } from "../../../../src/tensor/graph/evaluate.ts"
import { input } from "../../../../src/tensor/graph/ops.ts"
import type { Learner } from "../../../../src/rl/learner/Learner.ts"
import { advantagesOf } from "../../../../src/rl/learner/inGraph/advantages.ts"
import { mostResets } from "../../../../src/rl/learner/inGraph/Starts.ts"
import { gae } from "../../../../src/rl/returns/gae.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import { keep } from "../../train/inMemory.ts"
import { learnerOf } from "../../../../src/rl/learner/learnerOf.ts"

const backends: Readonly<Record<string, Layer.Layer<Backend, BackendUnavailable>>> = {
  wasm: Wasm.layer,
  cpu: OnnxNode.layerCpu(),
  reference: Reference.layer,
}

const numEnvs = 6

const learnerFor = (env: Env, options: Parameters<typeof Ppo.make>[0]) =>
  Effect.gen(function* () {
    const algorithm = Ppo.make({ hidden: [8], nsteps: 24, learningRate: 1e-2, schedule: "constant", ...options })
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const { observationSpace, actionSpace, maxSteps } = env
    const task = { observationSpace, actionSpace, maxSteps, graph: graphOf(env), numEnvs, totalSteps: 10_000, seed: 5 }
    return yield* learnerOf(configured, task)
  })

type Episodes = EpisodeLog.EpisodeLog

/** Plays rollouts and learns from them; returns the log of the episodes and the weights after each update. */
const train = (env: Env, learner: Learner, iterations: number) =>
  Effect.gen(function* () {
    const envs = EpisodeLog.record(Batch.make(env, numEnvs))
    envs.reset(5, "env")
    const { episodes }: { readonly episodes: Episodes } =
      learner.episodes === undefined ? envs : { episodes: learner.episodes }
    const weights: Array<ReadonlyArray<number>> = []
    let step = 0
    for (let iteration = 0; iteration < iterations; iteration++) {
      const position = { iteration, step }
      step += yield* learner.rollout(envs, position)
      yield* learner.update(position)
      weights.push(Object.values(yield* learner.weights).flatMap(({ data }) => [...data]))
    }
    const rows = Array.from({ length: episodes.length }, (_, at) => ({
      env: episodes.envs[at],
      episode: episodes.episodes[at],
      length: episodes.lengths[at],
      step: episodes.steps[at],
      terminated: episodes.terminated[at],
      truncated: episodes.truncated[at],
    }))
    return { rows, weights, returns: episodes.returns.slice(0, episodes.length), metrics: learner.metrics() }
  })

/** Each env, with how often both learners play and learn before rounding makes them differ. */
const cases: ReadonlyArray<readonly [Env, number]> = [
  [CartPole.env, 3],
  [Wrapper.timeLimit(CartPole.env, 10), 3],
  [Wrapper.timeLimit(Pendulum.env, 15), 2],
  [GridWorld.make({ size: 5 }), 3],
  [KeyDoor.make({ size: 6, maxSteps: 10 }), 2],
]

/** Numbers and choices, with episodes that end within a rollout, stay quick; maps and longer episodes are slow. */
const quick = new Set(cases.slice(1, 3).map(([env]) => env))

for (const [name, layer] of Object.entries(backends)) {
  describe(`rollouts in the graph on ${name}`, () => {
    // The reference is too slow for the networks that read maps.
    for (const [env, iterations] of name === "reference" ? cases.slice(0, 3) : cases) {
      it.effect(
        `learn what rollouts in JavaScript learn: ${env.id}, at most ${env.maxSteps} steps`,
        () =>
          Effect.gen(function* () {
            const inGraph = yield* train(env, yield* learnerFor(env, { rollouts: "graph" }), iterations)
            const inJavaScript = yield* train(env, yield* learnerFor(env, {}), iterations)
            assert.isAbove(inGraph.rows.length, 3)
            assert.deepStrictEqual(inGraph.rows, inJavaScript.rows)
            inGraph.returns.forEach((total, at) => assert.closeTo(total, inJavaScript.returns[at], 1e-3))
            inGraph.weights.forEach((weights, update) =>
              weights.forEach((weight, at) =>
                assert.closeTo(weight, inJavaScript.weights[update][at], 2e-3, `${update}`),
              ),
            )
            assert.deepStrictEqual(Object.keys(inGraph.metrics).sort(), Object.keys(inJavaScript.metrics).sort())
            for (const [key, value] of Object.entries(inGraph.metrics))
              assert.closeTo(value, inJavaScript.metrics[key], 1e-2 * Math.max(1, Math.abs(value)), key)
          }).pipe(Effect.scoped, Effect.provide(layer)),
        { tags: quick.has(env) ? [] : "slow" },
      )
    }
  })
}

describe("rollouts in the graph", () => {
  it.effect("repeat the noise of actions as often as rollouts in JavaScript", () =>
    Effect.gen(function* () {
      const [inGraph, inJavaScript] = [
        yield* train(CartPole.env, yield* learnerFor(CartPole.env, { rollouts: "graph", noiseRepeat: 5 }), 2),
        yield* train(CartPole.env, yield* learnerFor(CartPole.env, { noiseRepeat: 5 }), 2),
      ]
      assert.deepStrictEqual(inGraph.rows, inJavaScript.rows)
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("fail if episodes are shorter than the graph form says", () =>
    Effect.gen(function* () {
      const form = graphOf(CartPole.env)
      assert.isDefined(form)
      const env = withGraph({ ...CartPole.env }, { ...form, shortest: 100 })
      const error = yield* Effect.flip(train(env, yield* learnerFor(env, { rollouts: "graph", nsteps: 64 }), 1))
      assert.match(
        error.message,
        /^2 episodes ended within 64 steps, but the env's graph form names 100 as the least number of steps/,
      )
    }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
  )

  it.effect("refuse what they cannot play, and name the setting", () =>
    Effect.gen(function* () {
      const messageOf = (input: Parameters<typeof keep>[0]) =>
        Effect.map(Effect.flip(keep({ totalSteps: 64, numEnvs: 2, ...input })), ({ message }) => message)
      const algorithm = Ppo.make({ rollouts: "graph" })
      const withoutGraph = yield* messageOf({ env: Wrapper.scaleReward(CartPole.env, 2), algorithm })
      const named = [...builtIn, Breakout.make({ stickyActionProb: 0 }), SpaceInvaders.make({ stickyActionProb: 0 })]
      for (const env of named.filter((env) => graphOf(env) !== undefined))
        assert.include(withoutGraph, env.id.replace(/^MinAtar\/|Deterministic|-.*$/g, ""))
      assert.strictEqual(
        withoutGraph,
        'Train.run: algorithm.rollouts: "graph" needs an env with a graph form; CartPole, Pendulum, GridWorld, KeyDoor, ApplePicker, DeepSea and MemoryChain have one, with any time limit, and Breakout and SpaceInvaders of MinAtar with stickyActionProb 0. Use "envs" for other envs',
      )
      assert.strictEqual(
        yield* messageOf({ env: CartPole.env, algorithm: Ppo.make({ rollouts: "graph", lstm: 8 }) }),
        'Train.run: algorithm.lstm: expected 0 with algorithm.rollouts "graph"',
      )
      assert.strictEqual(
        yield* messageOf({ env: CartPole.env, algorithm, normalize: { rewards: true } }),
        'Train.run: normalize.rewards: expected false with algorithm.rollouts "graph", whose envs are stepped in the graph',
      )
      assert.strictEqual(
        yield* messageOf({ env: CartPole.env, algorithm, workers: 1 }),
        'Train.run: workers: expected 0 with algorithm.rollouts "graph", which steps all envs in one program',
      )
    }),
  )
})

describe("advantages as tensors", () => {
  it("are those of Returns.gae, for any number of steps", () => {
    for (const steps of [1, 2, 3, 7, 16, 33]) {
      const [envs, gamma, lambda] = [3, 0.97, 0.9]
      const random = stream(steps, "rollout")
      const draw = () => Float64Array.from({ length: steps * envs }, () => random.normal())
      const mark = (share: number) =>
        Uint8Array.from({ length: steps * envs }, () => (random.uniform() < share ? 1 : 0))
      const [rewards, values, truncatedValues] = [draw(), draw(), draw()]
      const [terminated, truncated] = [mark(0.1), mark(0.1)]
      const lastValues = Float64Array.from({ length: envs }, () => random.normal())
      const nextValues = values.map((_, at) => {
        if (terminated[at] !== 0) return 0
        if (truncated[at] !== 0) return truncatedValues[at]
        return at + envs < values.length ? values[at + envs] : lastValues[at % envs]
      })
      const ended = Float64Array.from(terminated, (one, at) => one | truncated[at])
      const tensors = {
        rewards: input("rewards", [steps, envs]),
        values: input("values", [steps, envs]),
        nextValues: input("nextValues", [steps, envs]),
        ended: input("ended", [steps, envs]),
      }
      const leaves = new Map(
        Object.entries({ rewards, values, nextValues, ended }).map(([key, numbers]) => [
          tensors[key === "rewards" || key === "values" || key === "nextValues" ? key : "ended"],
          numbers,
        ]),
      )
      const [actual] = evaluate([advantagesOf(tensors, { gamma, lambda })], leaves)
      const expected = gae({ rewards, values, lastValues, terminated, truncated, truncatedValues, gamma, lambda })
      actual.forEach((advantage, at) => assert.closeTo(advantage, expected[at], 1e-6, `${steps} steps, row ${at}`))
    }
  })
})

describe("the number of first states that a rollout can take", () => {
  it("counts an episode that ends at once, and whole ones after it", () => {
    const form = graphOf(CartPole.env)
    assert.isDefined(form)
    const resets = (steps: number, shortest: number, maxSteps: number): number =>
      mostResets({ graph: { ...form, shortest }, steps, maxSteps })
    assert.strictEqual(resets(1, 8, 500), 1)
    assert.strictEqual(resets(8, 8, 500), 1)
    assert.strictEqual(resets(9, 8, 500), 2)
    assert.strictEqual(resets(17, 8, 500), 3)
    assert.strictEqual(resets(17, 8, 1), 17)
    assert.strictEqual(resets(1000, Infinity, Infinity), 1)
  })
})
