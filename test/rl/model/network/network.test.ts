import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Wasm from "../../../../src/tensor/backend/wasm.ts"
import * as Reference from "../../../../src/tensor/backend/reference.ts"
import { Backend } from "../../../../src/tensor/backend/Backend.ts"
import { GraphError } from "../../../../src/tensor/graph/GraphError.ts"
import * as Space from "../../../../src/rl/env/Space.ts"
import * as Graph from "../../../../src/tensor/graph/ops.ts"
import * as Initialisers from "../../../../src/tensor/graph/initialisers.ts"
import { layout } from "../../../../src/tensor/graph/Parameters.ts"
import { netOf } from "../../../../src/rl/learner/graphs.ts"
import { networkTrunk } from "../../../../src/rl/model/network/build.ts"
import * as Network from "../../../../src/rl/model/network/Network.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

/** A space with boxes of these shapes, or the only one if its name is empty. */
const spaceOf = (shapes: Readonly<Record<string, ReadonlyArray<number>>>): Space.Space =>
  "" in shapes
    ? Space.box(-1, 1, shapes[""])
    : Space.dict(Object.fromEntries(Object.entries(shapes).map(([name, shape]) => [name, Space.box(-1, 1, shape)])))

const { dense, tanh, relu, norm, attention, reshape, mean, residual, parallel, inputs, custom, convolution } = Network

const trunkOf = (network: Network.Network, shapes: Readonly<Record<string, ReadonlyArray<number>>> = { "": [6] }) =>
  networkTrunk("actor", spaceOf(shapes), network)

const problemOf = (network: Network.Network, shapes?: Readonly<Record<string, ReadonlyArray<number>>>): string => {
  try {
    trunkOf(network, shapes)
    return "fits"
  } catch (error) {
    return error instanceof GraphError ? error.message : `no GraphError: ${String(error)}`
  }
}

/** Computes the features of two rows of numbers, with weights drawn from a seed. */
const featuresOf = (network: Network.Network, shapes?: Readonly<Record<string, ReadonlyArray<number>>>) =>
  Effect.gen(function* () {
    const trunk = trunkOf(network, shapes)
    const parameters = layout(trunk.parameters)
    const net = netOf(parameters, "theta")
    const width = Object.values(shapes ?? { "": [6] })
      .map((shape) => shape.reduce((product, length) => product * length, 1))
      .reduce((sum, size) => sum + size, 0)
    const observations = Graph.input("observations", [2, width])
    const features = trunk.apply(net.weights, observations)
    const { compile } = yield* Backend
    const program = yield* compile({
      name: "trunk",
      inputs: { observations },
      state: { theta: { tensor: net.theta } },
      outputs: { features },
    })
    if (parameters.size > 0) yield* program.write("theta", parameters.initialise(stream(1, "weights")))
    stream(2, "observations").fillNormal(
      program.feeds.observations instanceof Float32Array ? program.feeds.observations : new Float32Array(0),
    )
    yield* program.run
    return { shape: features.shape, outputs: trunk.outputs, values: Array.from(program.results.features) }
  }).pipe(Effect.scoped)

const shapesOf = ({ parameters }: ReturnType<typeof networkTrunk>) =>
  Object.entries(parameters).map(([name, { shape }]) => [name, shape])

describe("networks of layers", () => {
  it("count their parameters as trunks do, and have the outputs of their last layer", () => {
    const { parameters, outputs, depth } = trunkOf([dense(8), tanh, norm, dense(3)])
    assert.deepStrictEqual(
      Object.entries(parameters).map(([name, { shape }]) => `${name} ${shape.join("x")}`),
      [
        "actor.0.weight 6x8",
        "actor.0.bias 8",
        "actor.1.scale 8",
        "actor.1.shift 8",
        "actor.2.weight 8x3",
        "actor.2.bias 3",
      ],
    )
    assert.deepStrictEqual([outputs, depth], [3, 3])
  })

  it("read all parts of an observation, with choices as one-hot vectors, or the named parts", () => {
    const car = Space.dict({ gear: Space.discrete(3), speed: Space.box(-1, 1), map: Space.box(0, 1, [2, 2]) })
    const all = networkTrunk("actor", car, dense(2))
    assert.deepStrictEqual(all.parameters["actor.0.weight"].shape, [8, 2])
    const named = networkTrunk("actor", car, [inputs({ gear: dense(5), map: [mean] }), dense(2)])
    assert.deepStrictEqual(named.parameters["actor.0.weight"].shape, [3, 5])
    assert.deepStrictEqual(named.parameters["actor.1.weight"].shape, [5 + 2, 2])
    const inSequence = networkTrunk(
      "actor",
      car,
      Network.sequential([inputs({ gear: dense(5), map: [mean] }), dense(2)]),
    )
    assert.deepStrictEqual(shapesOf(inSequence), shapesOf(named))
  })

  it.effect("compute the same on two backends: attention, convolution, branches, own layers", () =>
    Effect.gen(function* () {
      const doubled = custom("doubled", { apply: (_, x) => Graph.mul(x, 2) })
      const image: Network.Network = [
        convolution({ filters: 4, kernel: 2, padding: "same" }),
        relu,
        Network.tokens,
        Network.positions({ deviation: 1 }),
        residual([norm, attention({ heads: 2 })]),
        mean,
      ]
      const network = [inputs({ map: image, speed: [doubled, parallel([dense(3), [dense(2), tanh]])] })]
      const shapes = { map: [2, 3, 3], unread: [2], speed: [1] }
      const first = yield* Effect.provide(featuresOf(network, shapes), Wasm.layer)
      const second = yield* Effect.provide(featuresOf(network, shapes), Reference.layer)
      assert.deepStrictEqual(first.shape, [2, 4 + 5])
      for (const [at, value] of first.values.entries()) assert.closeTo(value, second.values[at], 1e-5)
      assert.isTrue(first.values.every((value) => Number.isFinite(value)))
    }),
  )

  it.effect("attend: the mean of tokens does not depend on their order, unless they have positions", () =>
    Effect.gen(function* () {
      const plain = [reshape(3, 2), attention({ heads: 2, units: 4 }), mean]
      const placed = [reshape(3, 2), Network.positions({ deviation: 1 }), attention({ heads: 2, units: 4 }), mean]
      /** Exchanges the first and the last token before the network reads them. */
      const turned = custom("turned", {
        apply: (_, x) =>
          Graph.concat(
            [2, 1, 0].map((token) => Graph.slice(x, [0, 2 * token], [x.shape[0], 2])),
            1,
          ),
      })
      const valuesOf = (network: ReadonlyArray<Network.Layer>) =>
        Effect.map(Effect.provide(featuresOf(network), Wasm.layer), ({ values }) => values)
      const [a, b] = [yield* valuesOf(plain), yield* valuesOf([turned, ...plain])]
      for (const [at, value] of a.entries()) assert.closeTo(value, b[at], 1e-5)
      const [c, d] = [yield* valuesOf(placed), yield* valuesOf([turned, ...placed])]
      assert.isAbove(Math.max(...c.map((value, at) => Math.abs(value - d[at]))), 1e-3)
    }),
  )

  it("that do not fit are refused with the layer's name, and with what was expected", () => {
    const narrow = custom("narrow", { apply: (_, x) => Graph.sum(x) })
    const wrong = custom("wrong", {
      parameters: () => ({ w: { shape: [2, 2], init: Initialisers.zeros } }),
      apply: ({ w }, x) => Graph.matmul(x, w),
    })
    const broken = custom("broken", {
      apply: () => {
        throw new Error("no such thing")
      },
    })
    const problems: ReadonlyArray<readonly [Network.Network, string]> = [
      [reshape(4, 2), "actor, layer 1 (reshape): cannot make [4, 2], which has 8 numbers; the row has 6"],
      [[dense(3), mean], "actor, layer 2 (mean): expected tokens [tokens, features], found [3]"],
      [
        [convolution({ filters: 2, kernel: 2 })],
        "actor, layer 1 (convolution): expected an image [channels, height, width]",
      ],
      [
        [reshape(1, 2, 3), convolution({ filters: 2, kernel: 3 })],
        "layer 2 (convolution): conv2d: the kernel is larger",
      ],
      [[residual([dense(5)])], "actor, layer 1 (residual): expected layers that keep the shape [6], found [5]"],
      [
        [residual([reshape(3, 2), attention({ heads: 3 })])],
        "layer 1 (residual), layer 2 (attention): expected heads that divide",
      ],
      [
        Network.sequential([dense(2), dense(3), attention({ heads: 2 })]),
        "actor, layer 3 (attention): expected tokens",
      ],
      [[dense(2), inputs({ a: dense(1) })], "actor, layer 2 (inputs): expected it as the first layer"],
      [[inputs({ a: dense(1) })], 'layer 1 (inputs): there is no part "a"; the observation has no parts'],
      [[parallel([])], "actor, layer 1 (parallel): expected at least one branch"],
      [[narrow], 'layer 1 (custom "narrow"): expected real numbers of shape [rows, …] for an input with 2 rows'],
      [[wrong], 'layer 1 (custom "wrong"): matmul: inner sizes 6 and 2 differ'],
      [[broken], 'layer 1 (custom "broken"): no such thing'],
      [[{ type: "custom", name: "absent" }], 'layer 1 (custom "absent"): this layer is made in code'],
    ]
    for (const [network, expected] of problems) {
      const problem = problemOf(network)
      assert.include(problem, expected)
      assert.isTrue(problem.startsWith("algorithm.network: "), problem)
    }
    assert.include(problemOf([inputs({ b: dense(1) })], { a: [2], c: [1] }), 'no part "b"; the observation has a, c')
  })
})
