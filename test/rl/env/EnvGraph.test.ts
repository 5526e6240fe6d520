import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { Backend, type BackendUnavailable } from "../../../src/tensor/backend/Backend.ts"
import * as OnnxNode from "../../../src/tensor/backend/onnx-node.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as Batch from "../../../src/rl/env/Batch.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import * as MemoryChain from "../../../src/rl/env/games/MemoryChain.ts"
import { type EnvGraph, graphOf } from "../../../src/rl/env/EnvGraph.ts"
import * as ApplePicker from "../../../src/rl/env/grid/ApplePicker.ts"
import * as DeepSea from "../../../src/rl/env/grid/DeepSea.ts"
import * as GridWorld from "../../../src/rl/env/grid/GridWorld.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import * as Breakout from "../../../src/rl/env/pixel/Breakout.ts"
import * as SpaceInvaders from "../../../src/rl/env/pixel/SpaceInvaders.ts"
import { sizeOf } from "../../../src/rl/env/Space.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { ProgramSpec } from "../../../src/tensor/graph/Program.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const backends: Readonly<Record<string, Layer.Layer<Backend, BackendUnavailable>>> = {
  wasm: Wasm.layer,
  cpu: OnnxNode.layerCpu(),
  reference: Reference.layer,
}

/** The envs, the number of steps to compare, and the largest difference of an observation or a reward. */
const cases: ReadonlyArray<readonly [Env, number, number]> = [
  [CartPole.env, 150, 1e-5],
  [Pendulum.env, 250, 1e-5],
  [GridWorld.env, 150, 0],
  [GridWorld.make({ size: 5, density: 0.5 }), 100, 0],
  [KeyDoor.make({ size: 5 }), 300, 0],
  [KeyDoor.make({ size: 9, rooms: 3, maxSteps: 200 }), 300, 0],
  [ApplePicker.make({ size: 8, apples: 5 }), 300, 0],
  [Breakout.make({ stickyActionProb: 0 }), 150, 0],
  [SpaceInvaders.make({ stickyActionProb: 0, useMinimalActionSet: false }), 200, 0],
  [DeepSea.make({ size: 6 }), 60, 0],
  [MemoryChain.make({ length: 3, bits: 4 }), 60, 1e-6],
]

const numEnvs = 16

const formOf = (env: Env): EnvGraph => {
  const graph = graphOf(env)
  assert.isDefined(graph, `${env.id} has a graph form`)
  return graph
}

/** One step of all copies. */
const stepSpec = (env: Env, { stateSize, observe, step }: EnvGraph): ProgramSpec => {
  const { actionSpace } = env
  const state = G.state("state", [numEnvs, stateSize])
  const isDiscrete = actionSpace._tag === "Discrete"
  const actions = G.input(
    "actions",
    isDiscrete ? [numEnvs] : [numEnvs, sizeOf(actionSpace)],
    isDiscrete ? "i32" : "f32",
  )
  const moved = step(state, actions)
  return {
    name: "step",
    inputs: { actions },
    state: { state: { tensor: state, next: moved.state } },
    outputs: {
      before: observe(state),
      after: observe(moved.state),
      reward: moved.reward,
      terminated: moved.terminated,
    },
  }
}

const closeTo = (actual: ArrayLike<number>, expected: ArrayLike<number>, delta: number, what: string): void => {
  assert.strictEqual(actual.length, expected.length, what)
  for (let at = 0; at < actual.length; at++)
    if (!(Math.abs(actual[at] - expected[at]) <= delta))
      assert.fail(`${what}[${at}]: ${actual[at]}, not ${expected[at]}`)
}

for (const [name, layer] of Object.entries(backends)) {
  describe(`graph forms on ${name} do the same as the envs themselves`, () => {
    for (const [env, steps, delta] of cases) {
      it.effect(
        `${env.id}, with at most ${env.maxSteps} steps`,
        () =>
          Effect.gen(function* () {
            const graph = formOf(env)
            const program = yield* (yield* Backend).compile(stepSpec(env, graph))
            const batch = Batch.make(env, numEnvs)
            batch.reset(3, "env")
            const { stateSize } = graph
            const states = new Float32Array(numEnvs * stateSize)
            const episodes = new Int32Array(numEnvs)
            const begin = (index: number): void =>
              graph.start(states, index * stateSize, stream(3, "env", index, "episode", episodes[index]))
            for (let index = 0; index < numEnvs; index++) begin(index)
            yield* program.write("state", states)
            const random = stream(4, "actions")
            const { actions } = program.feeds
            const size = batch.observationSize
            let ended = 0
            for (let step = 0; step < steps; step++) {
              for (let at = 0; at < actions.length; at++)
                actions[at] =
                  env.actionSpace._tag === "Discrete" ? random.integer(env.actionSpace.n) : 4 * random.uniform() - 2
              yield* program.run
              const { before, after, reward, terminated } = program.results
              closeTo(before, batch.observations, delta, `step ${step}, before`)
              assert(actions instanceof Int32Array || actions instanceof Float32Array)
              batch.step(actions)
              closeTo(reward, batch.rewards, delta === 0 ? 1e-8 : delta, `step ${step}, rewards`)
              assert.deepStrictEqual([...terminated], [...batch.terminated], `step ${step}`)
              states.set(yield* program.read("state"))
              // A pendulum doubles small differences every few steps, so it goes on from the env's own state.
              if (env.id === Pendulum.env.id) {
                const { "state.angles": angles, "state.velocities": velocities } = batch.snapshot()
                for (let index = 0; index < numEnvs; index++)
                  states.set([angles[index] % (2 * Math.PI), velocities[index]], 2 * index)
              }
              for (let index = 0; index < numEnvs; index++) {
                const isOver = (batch.terminated[index] | batch.truncated[index]) !== 0
                const seen = isOver ? batch.finalObservations : batch.observations
                const row = [index * size, (index + 1) * size] as const
                closeTo(after.subarray(...row), seen.subarray(...row), delta, `step ${step}, env ${index}`)
                if (!isOver) continue
                ended++
                episodes[index]++
                begin(index)
              }
              yield* program.write("state", states)
            }
            assert.isAbove(ended, 3, "episodes ended")
          }).pipe(Effect.scoped, Effect.provide(layer)),
        { tags: name !== "cpu" && steps < 300 ? [] : "slow" },
      )
    }
  })
}

describe("the shortest episode of a graph form", () => {
  it("is not longer than an episode in which every push makes CartPole's pole fall", () => {
    let least = Infinity
    const edges = [-0.05, 0.05]
    for (const x of edges)
      for (const velocity of edges)
        for (const angle of edges)
          for (const spin of edges)
            for (let pushes = 0; pushes < 2 ** 10; pushes++) {
              let moved = { state: [x, velocity, angle, spin] as ReadonlyArray<number>, terminated: false }
              let steps = 0
              while (!moved.terminated && steps < 10) moved = CartPole.dynamics(moved.state, (pushes >> steps++) & 1)
              if (moved.terminated) least = Math.min(least, steps)
            }
    assert.strictEqual(formOf(CartPole.env).shortest, least)
  })

  it("is not longer than a planned episode in a grid", () => {
    const graph = formOf(GridWorld.env)
    let least = Infinity
    for (let seed = 0; seed < 300; seed++) {
      const state = GridWorld.env.reset(stream(seed, "map"))
      least = Math.min(least, GridWorld.distances(state)[state[1]])
    }
    assert.strictEqual(graph.shortest, least)
  })

  it.each([Breakout.make({ stickyActionProb: 0 }), SpaceInvaders.make({ stickyActionProb: 0 })])(
    "is not longer than one by random actions in $id",
    (env) => {
      const lengths = Array.from({ length: 200 }, (_, episode) => {
        const random = stream(5, episode)
        let state = env.reset(random)
        for (let steps = 1; ; steps++) {
          const moved = env.step(state, random.integer(env.actionSpace.n), random)
          if (moved.terminated) return steps
          state = moved.state
        }
      })
      assert.isAtLeast(Math.min(...lengths), formOf(env).shortest)
    },
  )
})

describe("an env without a graph form", () => {
  it("is one whose functions were changed, but not one with another time limit", () => {
    assert.isUndefined(graphOf({ ...CartPole.env }))
    assert.isUndefined(graphOf(Wrapper.scaleReward(CartPole.env, 2)))
    // Repeated actions need a random number in each step.
    assert.isUndefined(graphOf(Breakout.env))
    assert.strictEqual(graphOf(Wrapper.timeLimit(CartPole.env, 5)), graphOf(CartPole.env))
  })
})
