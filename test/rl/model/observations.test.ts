import { assert, describe, it } from "vitest"
import { box, dict, discrete, masked, multiBinary, multiDiscrete, tuple } from "../../../src/rl/env/Space.ts"
import { evaluate } from "../../../src/tensor/graph/evaluate.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { actorCritic } from "../../../src/rl/model/ActorCritic.ts"
import { qNetwork } from "../../../src/rl/model/qNetwork.ts"
import { asVectors, maskOf, vectorSizeOf } from "../../../src/rl/model/observations.ts"
import { trunk, type Weights } from "../../../src/rl/model/trunk.ts"

const config = { hidden: [8], activation: "tanh", convolutions: null } as const
const robot = dict({
  camera: box(0, 1, [2, 6, 6]),
  arm: tuple(discrete(3), box(-1, 1, [2])),
  lamps: multiBinary(2),
})

/** Weights of a network, all different. */
const weightsOf = (parameters: Readonly<Record<string, { readonly shape: ReadonlyArray<number> }>>): Weights =>
  Object.fromEntries(
    Object.entries(parameters).map(([name, { shape }], index) => {
      const size = shape.reduce((product, length) => product * length, 1)
      return [
        name,
        G.constant(
          Float32Array.from({ length: size }, (_, at) => Math.sin(at * 3 + index)),
          shape,
        ),
      ]
    }),
  )

describe("networks over observations with parts", () => {
  it("read choices as one-hot vectors, in the order of the parts", () => {
    const space = tuple(discrete(3), box(-1, 1, [2]), multiDiscrete([2, 3]), multiBinary(2))
    assert.strictEqual(vectorSizeOf(space), 12)
    const row = G.constant([2, 0.5, -0.5, 1, 0, 1, 0], [1, 7])
    assert.deepStrictEqual([...evaluate([asVectors(space, row)])[0]], [0, 0, 1, 0.5, -0.5, 0, 1, 1, 0, 0, 1, 0])
    const rows = G.constant([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 1, 1], [2, 7])
    assert.deepStrictEqual(asVectors(space, rows).shape, [2, 12])
  })

  it("give each image convolutions of its own, and join their outputs with the vectors", () => {
    const body = trunk("trunk", robot, config)
    const names = Object.keys(body.parameters)
    assert.deepStrictEqual(names, [
      "trunk.camera.conv0.weight",
      "trunk.camera.conv0.bias",
      "trunk.0.weight",
      "trunk.0.bias",
    ])
    // 16 filters of 3 × 3 over 6 × 6 pixels, three choices, two numbers and two lamps.
    assert.deepStrictEqual(body.parameters["trunk.0.weight"].shape, [16 * 16 + 3 + 2 + 2, 8])
    const features = body.apply(weightsOf(body.parameters), G.constant(0, [4, 72 + 1 + 2 + 2]))
    assert.deepStrictEqual(features.shape, [4, 8])
  })

  it("read images of bytes as numbers from 0 to 1", () => {
    const outputs = [1, 255].map((most) => {
      const body = trunk("trunk", box(0, most, [1, 8, 8]), config)
      const image = Float32Array.from({ length: 64 }, (_, at) => (most * (at % 5)) / 5)
      return evaluate([body.apply(weightsOf(body.parameters), G.constant(image, [1, 64]))])[0]
    })
    assert.isAbove(Math.max(...outputs[0]), 0)
    outputs[0].forEach((output, at) => assert.closeTo(outputs[1][at], output, 1e-5))
  })

  it("share one trunk between actor and critic if a part is an image", () => {
    const network = actorCritic({ ...config, observationSpace: robot, actionSpace: discrete(2), lstm: 0 })
    assert.isTrue(
      Object.keys(network.parameters).every((name) => /^(trunk|actor|critic)\.(camera|0|weight|bias)/.test(name)),
    )
    assert.isUndefined(network.dense)
  })
})

describe("networks over rows with action masks", () => {
  const plain = box(-1, 1, [4])
  const space = masked(plain, discrete(3))
  const observation = [0.1, -0.2, 0.3, 0.4]
  const row = (mask: ReadonlyArray<number>) => G.constant([...observation, ...mask], [1, 7])

  it("read the mask at the end of a row", () => {
    const mask = maskOf(space, row([1, 0, 1]))
    assert.deepStrictEqual(mask && [...evaluate([mask])[0]], [1, 0, 1])
    assert.isUndefined(maskOf(plain, G.constant(observation, [1, 4])))
  })

  it("have features and values that do not depend on the mask", () => {
    const options = { ...config, actionSpace: discrete(3), lstm: 0 }
    const network = actorCritic({ ...options, observationSpace: space })
    const unmasked = actorCritic({ ...options, observationSpace: plain })
    const weights = weightsOf(network.parameters)
    assert.deepStrictEqual(Object.keys(unmasked.parameters), Object.keys(network.parameters))
    const [one] = evaluate([network.evaluate(weights, row([1, 0, 1])).value])
    const [other] = evaluate([unmasked.evaluate(weights, G.constant(observation, [1, 4])).value])
    assert.deepStrictEqual([...one], [...other])
  })

  it.each([false, true])("give forbidden actions a value below all others (dueling: %s)", (dueling) => {
    const network = qNetwork({ ...config, observationSpace: space, actions: 3, dueling })
    const weights = weightsOf(network.parameters)
    const [all, masks] = [
      [1, 1, 1],
      [0, 1, 1],
    ].map((mask) => [...evaluate([network.apply(weights, row(mask))])[0]])
    assert.deepStrictEqual(masks.slice(1), all.slice(1))
    assert.isBelow(masks[0], -1e29)
  })
})
