import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import { type NamedTensors, layout } from "../../../src/tensor/graph/Parameters.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import * as Normalise from "../../../src/rl/env/Normalise.ts"
import { make as moments } from "../../../src/rl/env/RunningMoments.ts"
import { sizeOf } from "../../../src/rl/env/Space.ts"
import {
  checkExport,
  type DenseActor,
  evaluate,
  exampleOf,
  layer,
  outputSize,
} from "../../../src/rl/export/DenseActor.ts"
import { PolicyError } from "../../../src/rl/policy/PolicyError.ts"
import { evaluate as evaluateGraph } from "../../../src/tensor/graph/evaluate.ts"
import { mlp } from "../../../src/tensor/graph/layers.ts"
import { constant } from "../../../src/tensor/graph/ops.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { activations, drawn, squashed } from "./actors.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

const close = (found: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void => {
  assert.strictEqual(found.length, expected.length)
  for (let index = 0; index < expected.length; index++) assert.closeTo(found[index], expected[index], tolerance)
}

/** Two inputs, two hidden units of which the second is off for the first row, one output. */
const small: DenseActor = {
  inputs: 2,
  layers: [
    { weights: Float32Array.of(1, 2, 3, -4), biases: Float32Array.of(0.5, 0), activation: "relu" },
    { weights: Float32Array.of(2, 10), biases: Float32Array.of(1), activation: "identity" },
  ],
}

describe("a dense policy", () => {
  it("computes weights, biases and activations for each row", () => {
    // relu(1 + 2 + 0.5) = 3.5, relu(3 − 4) = 0; then relu(2 − 2 + 0.5) = 0.5, relu(6 + 4) = 10.
    assert.deepEqual(evaluate(small, Float32Array.of(1, 1, 2, -1)), Float32Array.of(8, 102))
  })

  it("normalises inputs by mean and deviation", () => {
    const normalisation = { mean: Float32Array.of(1, 3), deviation: Float32Array.of(2, 0.5) }
    const seen = {
      inputs: 2,
      normalisation,
      layers: [{ weights: Float32Array.of(1, 0, 0, 1), biases: new Float32Array(2), activation: "identity" }],
    } as const
    assert.deepEqual(evaluate(seen, Float32Array.of(0, 4, 9, -9)), Float32Array.of(-0.5, 2, 4, -24))
  })

  it("with sample_and_squash takes tanh of the first half", () => {
    const layers = [
      { weights: Float32Array.of(1, 2, 3, 4), biases: new Float32Array(4), activation: "identity" },
    ] as const
    const actor: DenseActor = { inputs: 1, layers, head: "sample_and_squash" }
    assert.strictEqual(outputSize(actor), 2)
    assert.deepEqual(evaluate(actor, Float32Array.of(0.5)), Float32Array.of(Math.tanh(0.5), Math.tanh(1)))
  })

  it("equals a graph's network, for each activation, from weights by name", () => {
    for (const activation of activations) {
      if (activation === "identity") continue
      const net = mlp("net", { sizes: [5, 16, 16, 3], activation })
      const parameters = layout(net.parameters)
      const theta = parameters.initialise(stream(4)).map((weight) => weight + 0.1)
      const named = parameters.toNamed(theta)
      const actor: DenseActor = {
        inputs: 5,
        layers: [0, 1, 2].map((index) => layer(named, [`net.${index}`], index === 2 ? "identity" : activation)),
      }
      const rows = drawn(10 * 5, 3)
      const [expected] = evaluateGraph([net.apply(parameters.tensorsOf(constant(theta)), constant(rows, [10, 5]))])
      close(evaluate(actor, rows), expected, 2e-5)
    }
  })

  it("normalises like an env's normalisation of observations", () => {
    const seen = moments(3)
    seen.update(drawn(30, 5))
    const rows = drawn(30, 5)
    const actor: DenseActor = {
      inputs: 3,
      normalisation: {
        mean: Float32Array.from(seen.mean),
        deviation: Float32Array.from(seen.variance, (value) => Math.sqrt(value + 1e-8)),
      },
      layers: [
        { weights: Float32Array.of(1, 0, 0, 0, 1, 0, 0, 0, 1), biases: new Float32Array(3), activation: "identity" },
      ],
    }
    const [expected] = evaluateGraph([Normalise.asGraph(seen)(constant(rows, [10, 3]))])
    close(evaluate(actor, rows), expected, 1e-5)
  })
})

const refused = (make: () => unknown): string => {
  try {
    make()
  } catch (error) {
    assert.instanceOf(error, PolicyError)
    return error.message
  }
  return assert.fail("it was taken")
}

describe("a policy whose parts do not fit is refused", () => {
  const example = exampleOf(small, Float32Array.of(1, 1))
  const [first, last] = small.layers
  const [mean, deviation] = [Float32Array.of(0, 0), Float32Array.of(1, 1)]
  const cases: ReadonlyArray<readonly [string, DenseActor]> = [
    ["inputs: expected a positive whole number, found 0", { ...small, inputs: 0 }],
    ["layers: expected at least one layer, found none", { ...small, layers: [] }],
    [
      "layer 1: expected at least one output, found none",
      { ...small, layers: [first, { ...last, biases: new Float32Array(0) }] },
    ],
    ["layer 0: expected 6 weights for [2, 3], found 4", { ...small, inputs: 3 }],
    ["layer 1: expected 1 weights for [1, 1], found 2", { inputs: 2, layers: [{ ...last }, last] }],
    [
      "layer 0: weights: expected finite numbers, found NaN",
      { ...small, layers: [{ ...first, weights: Float32Array.of(1, NaN, 3, 4) }, last] },
    ],
    [
      "layer 1: biases: expected finite numbers, found Infinity",
      { ...small, layers: [first, { ...last, biases: Float32Array.of(Infinity) }] },
    ],
    [
      "sample_and_squash: expected a mean and a deviation for each action, found 1 outputs",
      { ...small, head: "sample_and_squash" },
    ],
    [
      "normalisation: expected 2 means and deviations, one per input, found 1 and 2",
      { ...small, normalisation: { mean: Float32Array.of(0), deviation } },
    ],
    [
      "normalisation: 1 / deviation: expected finite numbers, found Infinity",
      { ...small, normalisation: { mean, deviation: Float32Array.of(1, 0) } },
    ],
    [
      "normalisation: expected deviations above 0",
      { ...small, normalisation: { mean, deviation: Float32Array.of(1, -1) } },
    ],
  ]
  for (const [message, actor] of cases) {
    it(message, () =>
      assert.strictEqual(
        refused(() => checkExport(actor, example)),
        message,
      ),
    )
  }

  it("also if its example does not fit or has no rows", () => {
    const message = "example: expected at least one row and 1 outputs per row, found 1 rows and 2 outputs"
    assert.strictEqual(
      refused(() => checkExport(small, { ...example, output: new Float32Array(2) })),
      message,
    )
    assert.include(
      refused(() => checkExport(small, exampleOf(small, new Float32Array(0)))),
      "0 rows",
    )
    assert.strictEqual(
      refused(() => evaluate(small, new Float32Array(3))),
      "input: expected rows of 2 numbers, found 3 numbers",
    )
    assert.strictEqual(checkExport(squashed, exampleOf(squashed, drawn(6))), 2)
  })

  it("also if a layer is missing or has other inputs than the one next to it", () => {
    const named: NamedTensors = {
      "a.weight": { shape: [2, 1], data: new Float32Array(2) },
      "a.bias": { shape: [1], data: new Float32Array(1) },
      "b.weight": { shape: [1, 1], data: new Float32Array(1) },
      "b.bias": { shape: [1], data: new Float32Array(1) },
      "image.weight": { shape: [1, 1, 3, 3], data: new Float32Array(9) },
      "image.bias": { shape: [1], data: new Float32Array(1) },
    }
    assert.strictEqual(
      refused(() => layer(named, ["c"], "relu")),
      `the weights have no layer "c"`,
    )
    assert.strictEqual(
      refused(() => layer(named, ["image"], "relu")),
      `"image" is not a dense layer; expected a weight [inputs, outputs] and a bias [outputs]`,
    )
    assert.strictEqual(
      refused(() => layer(named, ["a", "b"], "relu")),
      "a, b: expected layers with the same number of inputs",
    )
  })
})

/** A policy of a learner that learnt nothing yet: 40 observations, what it does, and its weights. */
const policyOf = (env: Env, algorithm: Algorithm) =>
  Effect.gen(function* () {
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const { observationSpace, actionSpace } = env
    const task = { observationSpace, actionSpace, numEnvs: 2, totalSteps: 100, seed: 5 }
    const learner = yield* learnerOf(configured, task)
    const observations = drawn(40 * sizeOf(observationSpace))
    const policy = yield* learner.policy?.(40) ?? Effect.die("no policy")
    yield* policy.refresh
    policy.observations.set(observations)
    yield* policy.program.run
    return { observations, actions: Array.from(policy.actions), weights: yield* learner.weights }
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer))

describe("a policy described layer by layer acts like the learner's", () => {
  it.effect("PPO's: the action that it prefers", () =>
    Effect.gen(function* () {
      const { observations, actions, weights } = yield* policyOf(CartPole.env, Ppo.make({ hidden: [24, 24] }))
      const hidden = [layer(weights, ["actor.0"], "tanh"), layer(weights, ["actor.1"], "tanh")]
      const found = evaluate({ inputs: 4, layers: [...hidden, layer(weights, ["actor.2"], "identity")] }, observations)
      const best = actions.map((_, row) => (found[2 * row + 1] > found[2 * row] ? 1 : 0))
      assert.deepStrictEqual(best, actions)
      assert.strictEqual(new Set(best).size, 2)
    }),
  )

  it.effect("SAC's: tanh of the means, which the env's bounds scale", () =>
    Effect.gen(function* () {
      const { observations, actions, weights } = yield* policyOf(Pendulum.env, Sac.make({ hidden: [24, 24] }))
      const hidden = [layer(weights, ["actor.0"], "relu"), layer(weights, ["actor.1"], "relu")]
      const both = layer(weights, ["actor.mean", "actor.logStd"], "identity")
      const actor: DenseActor = { inputs: 3, layers: [...hidden, both], head: "sample_and_squash" }
      close(
        evaluate(actor, observations).map((action) => 2 * action),
        actions,
        1e-6,
      )
      assert.isAbove(new Set(actions).size, 30)
    }),
  )
})
