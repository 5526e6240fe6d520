import { assert, describe, it } from "@effect/vitest"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as GridWorld from "../../../src/rl/env/grid/GridWorld.ts"
import * as PixelMaze from "../../../src/rl/env/grid/PixelMaze.ts"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { type ActorCriticOptions, actorCritic } from "../../../src/rl/model/ActorCritic.ts"
import { dense } from "../../../src/rl/model/network/Network.ts"
import { plannerOf } from "../../../src/rl/model/valueIteration.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const config = { hidden: [5, 6], activation: "tanh", convolutions: [{ filters: 2, kernel: 3, stride: 2 }] } as const

const madeOf = (env: Pick<ActorCriticOptions, "observationSpace" | "actionSpace">, options: object) =>
  actorCritic({ ...config, observationSpace: env.observationSpace, actionSpace: env.actionSpace, lstm: 3, ...options })

/** The names of the layers, without `.weight` and `.bias`. */
const layersOf = (...[env, options]: Parameters<typeof madeOf>): ReadonlyArray<string> => [
  ...new Set(Object.keys(madeOf(env, options).parameters).map((name) => name.slice(0, name.lastIndexOf(".")))),
]

describe("a recurrent actor and critic", () => {
  it("of vectors have a memory each, which reads the observation before the hidden layers", () => {
    const half = (name: string) => [`${name}.memory`, `${name}.0`, `${name}.1`, `${name}.2`]
    assert.deepStrictEqual(layersOf(CartPole.env, {}), [...half("actor"), ...half("critic")])
    const { parameters, memorySize, featureSize } = madeOf(CartPole.env, {})
    assert.deepStrictEqual([...parameters["actor.memory.inputWeight"].shape], [4, 12])
    assert.deepStrictEqual([...parameters["actor.0.weight"].shape], [3, 5])
    assert.deepStrictEqual([memorySize, featureSize], [12, 6])
  })

  it("of images share all, with the memory after the hidden layers", () => {
    const env = PixelMaze.env
    assert.deepStrictEqual(layersOf(env, {}), ["trunk.conv0", "trunk.0", "trunk.1", "memory", "actor", "critic"])
    assert.strictEqual(madeOf(env, {}).memorySize, 6)
  })

  it("need a planner where they get its settings", () => {
    const planning = { iterations: 2, filters: 2, actions: 4, agentPlane: 2 }
    const options = { lstm: 0, planning }
    assert.throws(() => madeOf(GridWorld.env, options), /planning: expected a `planner` with these settings/)
    assert.isDefined(madeOf(GridWorld.env, { ...options, planner: plannerOf(planning) }).parameters)
    const network = { ...options, planner: plannerOf(planning), network: dense(4) }
    assert.throws(() => madeOf(GridWorld.env, network), /network: expected null with `planning`, whose planner is/)
  })

  it("have the hidden layers before and after the memory that `lstmAfter` says", () => {
    const { parameters } = madeOf(CartPole.env, { lstmAfter: 1 })
    assert.deepStrictEqual([...parameters["actor.0.weight"].shape], [4, 5])
    assert.deepStrictEqual([...parameters["actor.memory.inputWeight"].shape], [5, 12])
    assert.deepStrictEqual([...parameters["actor.1.weight"].shape], [3, 6])
    const last = madeOf(CartPole.env, { lstmAfter: 2 })
    assert.deepStrictEqual([...last.parameters["actor.memory.inputWeight"].shape], [6, 12])
    assert.deepStrictEqual([...last.parameters["actor.2.weight"].shape], [3, 2])
    const first = layersOf(PixelMaze.env, { lstmAfter: 0 })
    assert.deepStrictEqual(first, ["trunk.conv0", "memory", "trunk.0", "trunk.1", "actor", "critic"])
  })

  it("have one memory or two, as `criticMemory` says", () => {
    assert.deepStrictEqual(layersOf(CartPole.env, { criticMemory: "shared", lstmAfter: 1 }), [
      "trunk.0",
      "memory",
      "actor.1",
      "actor.2",
      "critic.1",
      "critic.2",
    ])
    assert.strictEqual(madeOf(CartPole.env, { criticMemory: "shared" }).memorySize, 6)
    assert.deepStrictEqual(layersOf(PixelMaze.env, { criticMemory: "own", lstmAfter: 1 }), [
      "trunk.conv0",
      "trunk.0",
      "actor.memory",
      "actor.1",
      "actor.2",
      "critic.memory",
      "critic.1",
      "critic.2",
    ])
    assert.strictEqual(madeOf(PixelMaze.env, { criticMemory: "own" }).memorySize, 12)
  })

  it("compute the same with an empty memory as without one", () => {
    const network = madeOf(CartPole.env, { lstmAfter: 1 })
    const random = stream(3)
    const weights = Object.fromEntries(
      Object.entries(network.parameters).map(([name, { shape, init }]) => [
        name,
        G.constant(init(random, shape), shape),
      ]),
    )
    const observations = G.constant([0.1, 0.2, -0.3, 0.4, 1, 2, 3, 4], [2, 4])
    const recall = { state: G.constant(new Float32Array(24).fill(0.7), [2, 12]), fresh: G.constant([1, 1]) }
    const [first, second] = evaluate([
      network.evaluate(weights, observations).value,
      network.evaluate(weights, observations, recall).value,
    ])
    assert.deepStrictEqual([...first], [...second])
    assert.notStrictEqual(first[0], first[1])
  })
})
