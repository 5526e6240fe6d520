import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DqnConfig } from "../../../src/rl/algorithms/replay/Dqn.ts"
import { distributionalLoss, dqnLoss } from "../../../src/rl/losses/dqnLosses.ts"
import { epsilonGreedy, epsilonSchedule } from "../../../src/rl/learner/exploration.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import { decode } from "../../../src/base/config/Config.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import { expectedReturn, type ValueDistribution } from "../../../src/rl/model/valueDistribution.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"

/** A table in place of a network: the observation is the index of its row. */
const table = (rows: ReadonlyArray<ReadonlyArray<number>>) => ({
  q: G.constant(rows.flat(), [rows.length, rows[0].length]),
})
const network = {
  apply: ({ q }: Readonly<Record<string, Tensor>>, observations: Tensor) =>
    G.gather(q, G.cast(G.reshape(observations, [observations.shape[0]]), "i32")),
}

const online = table([
  [1, 2],
  [5, 3],
  [0, 4],
])
const targetNetwork = table([
  [9, 8],
  [10, 20],
  [30, 40],
])

const inputs = (importance: Tensor = G.constant([0, 0, 0])) => ({
  online,
  targetNetwork,
  batch: {
    observations: G.constant([0, 0, 1], [3, 1]),
    actions: G.constant(Int32Array.of(1, 0, 1)),
    rewards: G.constant([1, 2, 3]),
    nextObservations: G.constant([1, 2, 2], [3, 1]),
    // The last episode ended; the second transition spans several steps.
    discounts: G.constant([0.9, 0.5, 0]),
    importance,
    noise: G.constant([0]),
  },
})

const run = (outputs: Readonly<Record<string, Tensor>>): Readonly<Record<string, ReadonlyArray<number>>> => {
  const program = compileWith(Reference.layer, { name: "test", inputs: {}, state: {}, outputs })
  program.runSync?.()
  return Object.fromEntries(Object.entries(program.results).map(([name, values]) => [name, Array.from(values)]))
}

const huber = (error: number): number => (Math.abs(error) <= 1 ? error ** 2 / 2 : Math.abs(error) - 0.5)
const mean = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b) / values.length

describe("the loss of DQN", () => {
  // Q(s, a) is 2, 1, 3; the online network prefers the first action after row 0 and the second after row 1.
  const doubled = [1 + 0.9 * 10, 2 + 0.5 * 40, 3]
  const plain = [1 + 0.9 * 20, 2 + 0.5 * 40, 3]
  const errorsOf = (targets: ReadonlyArray<number>) => [2 - targets[0], 1 - targets[1], 3 - targets[2]]

  it.effect("selects the action by the online network and values it by the target network", () =>
    Effect.gen(function* () {
      for (const [double, targets] of [
        [true, doubled],
        [false, plain],
      ] as const) {
        const config = yield* decode(DqnConfig, { double }, { source: "test" })
        const { loss, errors } = dqnLoss(config, network, inputs())
        const results = run({ loss, errors })
        assert.closeTo(results.loss[0], mean(errorsOf(targets).map(huber)), 1e-6)
        for (const [row, error] of errorsOf(targets).entries())
          assert.closeTo(results.errors[row], Math.abs(error), 1e-5)
      }
    }),
  )

  it.effect("multiplies rows by their importance weights", () =>
    Effect.gen(function* () {
      const config = yield* decode(DqnConfig, { prioritised: {} }, { source: "test" })
      const { loss } = dqnLoss(config, network, inputs(G.constant([0, 1, 0.5])))
      const [, second, third] = errorsOf(doubled).map(huber)
      assert.closeTo(run({ loss }).loss[0], (second + 0.5 * third) / 3, 1e-6)
    }),
  )
})

describe("the loss of distributions", () => {
  /** Two numbers for each of two actions; the observation is the index of the row. */
  const numbersOf = (rows: ReadonlyArray<ReadonlyArray<ReadonlyArray<number>>>) => ({
    all: G.constant(rows.flat(2), [rows.length, 2, 2]),
  })
  const networkOf = (distribution: ValueDistribution) => {
    const distributions = ({ all }: Readonly<Record<string, Tensor>>, observations: Tensor) => {
      const outputs = G.gather(all, G.cast(G.reshape(observations, [observations.shape[0]]), "i32"))
      return distribution.type === "quantiles" ? outputs : G.logSoftmax(outputs)
    }
    const valuesOf = (outputs: Tensor) => expectedReturn(distribution, outputs)
    return {
      distributions,
      valuesOf,
      apply: (weights: Readonly<Record<string, Tensor>>, rows: Tensor) => valuesOf(distributions(weights, rows)),
    }
  }
  const onlineRows = [
    [
      [1, 2],
      [0, 2],
    ],
    [
      [0, 1],
      [2, 3],
    ],
    [
      [3, 1],
      [0, 0],
    ],
  ]
  const targetRows = [
    [
      [0, 0],
      [0, 0],
    ],
    [
      [5, 7],
      [1, 2],
    ],
    [
      [1, 4],
      [6, 5],
    ],
  ]
  /** By means, the online network prefers action 1 after row 1, and after row 2 action 0 (quantiles) or 1 (categories). */
  const weights = [1, 0.5, 2]
  const given = {
    ...inputs(G.constant(weights)),
    online: numbersOf(onlineRows),
    targetNetwork: numbersOf(targetRows),
  }
  const lossesOf = (distribution: ValueDistribution, double: boolean) => {
    const config = { double, prioritised: { alpha: 1, beta: 1, epsilon: 1 }, distribution }
    const { loss, errors } = distributionalLoss(config, networkOf(distribution), given)
    return run({ loss, errors })
  }
  const taken = [onlineRows[0][1], onlineRows[0][0], onlineRows[1][1]]

  it("by quantiles is that of quantile regression towards the moved quantiles of the chosen action", () => {
    const rowLoss = (quantiles: ReadonlyArray<number>, target: ReadonlyArray<number>) =>
      mean(
        target.map((y) =>
          quantiles.reduce((sum, q, i) => sum + Math.abs([0.25, 0.75][i] - (y < q ? 1 : 0)) * huber(y - q), 0),
        ),
      )
    const chosen = { true: [targetRows[1][1], targetRows[2][0]], false: [targetRows[1][0], targetRows[2][1]] }
    for (const double of [true, false]) {
      const [first, second] = chosen[`${double}`]
      const targets = [first.map((q) => 1 + 0.9 * q), second.map((q) => 2 + 0.5 * q), [3, 3]]
      const expected = taken.map((quantiles, row) => rowLoss(quantiles, targets[row]))
      const { loss, errors } = lossesOf({ type: "quantiles", count: 2 }, double)
      for (const [row, error] of expected.entries()) assert.closeTo(errors[row], error, 1e-5)
      assert.closeTo(loss[0], mean(expected.map((error, row) => error * weights[row])), 1e-5)
    }
  })

  it("by categories is the divergence from the projected distribution of the chosen action", () => {
    const [min, max] = [-2, 6]
    const upper = ([a, b]: ReadonlyArray<number>) => Math.exp(b) / (Math.exp(a) + Math.exp(b))
    // With two categories, a moved return divides its probability by its place between them.
    const share = (z: number) => (Math.min(Math.max(z, min), max) - min) / (max - min)
    const targetOf = (logits: ReadonlyArray<number>, reward: number, discount: number) =>
      upper(logits) * share(reward + discount * max) + (1 - upper(logits)) * share(reward + discount * min)
    const divergence = (p: number, target: number) =>
      (target === 0 ? 0 : target * Math.log(target / p)) +
      (target === 1 ? 0 : (1 - target) * Math.log((1 - target) / (1 - p)))
    // The mean grows with the upper category's logit above the lower one's: online in row 1 both are equal, so action 0.
    const chosen = { true: [targetRows[1][0], targetRows[2][1]], false: [targetRows[1][0], targetRows[2][0]] }
    for (const double of [true, false]) {
      const [first, second] = chosen[`${double}`]
      const targets = [targetOf(first, 1, 0.9), targetOf(second, 2, 0.5), share(3)]
      const expected = taken.map((logits, row) => divergence(upper(logits), targets[row]))
      const { loss, errors } = lossesOf({ type: "categories", count: 2, min, max }, double)
      for (const [row, error] of expected.entries()) assert.closeTo(errors[row], error, 1e-5)
      assert.closeTo(loss[0], mean(expected.map((error, row) => error * weights[row])), 1e-5)
    }
  })

  it.effect("needs a range in which the greatest return is above the least", () =>
    Effect.gen(function* () {
      const distribution = { type: "categories", min: 1, max: 1 }
      const error = yield* Effect.flip(decode(DqnConfig, { distribution }, { source: "test" }))
      assert.include(error.message, "distribution.max")
      assert.include(error.message.toLowerCase(), "expected more than min, 1")
    }),
  )
})

describe("ε-greedy", () => {
  it("takes a random action with probability ε, each with the same probability", () => {
    const rows = 4000
    const noise = new Float32Array(2 * rows)
    stream(3).fillUniform(noise)
    const values = G.constant(Array.from({ length: rows }, () => [0, 1, 0, 0]).flat(), [rows, 4])
    const { actions } = run({ actions: epsilonGreedy(values, G.constant(noise, [rows, 2]), G.constant(0.4)) })
    const counts = [0, 1, 2, 3].map((action) => actions.filter((taken) => taken === action).length / rows)
    assert.closeTo(counts[1], 0.6 + 0.1, 0.03)
    for (const other of [0, 2, 3]) assert.closeTo(counts[other], 0.1, 0.03)
  })

  it("falls linearly, then stays constant", () => {
    const fields = { epsilonStart: 1, epsilonEnd: 0.1, explorationFraction: 0.5 }
    const at = (step: number) => epsilonSchedule(fields)(step / 1000)
    assert.strictEqual(at(0), 1)
    assert.closeTo(at(250), 0.55, 1e-12)
    assert.closeTo(at(500), 0.1, 1e-12)
    assert.closeTo(at(900), 0.1, 1e-12)
  })
})

describe("the categories of a value distribution", () => {
  it.effect("are different numbers in float32", () =>
    Effect.gen(function* () {
      const refusal = (min: number, max: number) => {
        const settings = { distribution: { type: "categories", min, max } as const }
        return Effect.map(Effect.flip(decode(DqnConfig, settings, { source: "test" })), String)
      }
      assert.include(yield* refusal(-1e39, 1e39), "expected a number that float32 can hold")
      assert.include(yield* refusal(-3e38, 3e38), "expected a distance from min that float32 can hold")
      assert.include(yield* refusal(0, 1e39), "expected a number that float32 can hold")
      assert.include(yield* refusal(1e9, 1e9 + 1), "expected 51 different numbers in float32 from min, 1000000000")
      const { distribution } = yield* decode(
        DqnConfig,
        { distribution: { type: "categories", min: -1e38, max: 1e38 } },
        { source: "test" },
      )
      assert.strictEqual(distribution?.count, 51)
    }),
  )
})
