import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Tqc from "../../../src/rl/algorithms/replay/Tqc.ts"
import { decode } from "../../../src/base/config/Config.ts"
import { box } from "../../../src/rl/env/Space.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import * as Model from "../../../src/rl/model/Model.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import { evaluated } from "../losses/evaluated.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

const rows = 6
const random = stream(4, "tqc")
const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, () => random.normal())
const matrix = (width: number): Tensor => G.constant(numbers(rows * width), [rows, width])

/** The critics' outputs, one list of quantiles for each row of each critic. */
const listsOf = (
  outputs: ReadonlyArray<Tensor>,
  quantiles: number,
): ReadonlyArray<ReadonlyArray<ReadonlyArray<number>>> =>
  outputs.map((output) => {
    const all = evaluated(output)
    return Array.from({ length: rows }, (_, row) => all.slice(row * quantiles, (row + 1) * quantiles))
  })

const huber = (error: number): number => (Math.abs(error) <= 1 ? error ** 2 / 2 : Math.abs(error) - 0.5)
const mean = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b) / values.length

/** The message with which TQC refuses settings. */
const refusalOf = (settings: Tqc.TqcOptions) =>
  Effect.gen(function* () {
    const algorithm = Tqc.make(settings)
    const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
    const { observationSpace, actionSpace } = Pendulum.env
    yield* learnerOf(configured, { observationSpace, actionSpace, numEnvs: 1, totalSteps: 10, seed: 1 })
  }).pipe(Effect.flip, Effect.map(String), Effect.scoped, Effect.provide(Wasm.layer))

describe("the critics of TQC", () => {
  it.effect(
    "have the loss of the paper's equations 5 to 10, worked out by sorting, and the mean of all quantiles as value",
    () =>
      Effect.gen(function* () {
        for (const dropped of [0, 1, 3]) {
          const settings = { hidden: [5], critics: 3, quantiles: 4, dropped }
          const config = yield* decode(Tqc.TqcConfig, settings, { source: "test" })
          const spaces = [box(-9, 9, [3]), box(-1, 1, [2])] as const
          const critics = Tqc.quantileCritics(config)(...spaces)
          const weightsOf = (): Model.Weights =>
            Object.fromEntries(
              Object.entries(critics.parameters).map(([name, { shape }]) => [
                name,
                G.constant(numbers(shape.reduce((a, b) => a * b, 1)), shape),
              ]),
            )
          const [weights, targetWeights] = [weightsOf(), weightsOf()]
          const [observations, nextObservations] = [matrix(3), matrix(3)]
          const [actions, nextActions] = [G.tanh(matrix(2)), G.tanh(matrix(2))]
          const [rewards, logProbability] = [numbers(rows), numbers(rows)]
          const discounts = [0.99, 0, 0.5, 0.9, 0.99, 0]
          const alpha = 0.3
          const { loss } = critics.loss({
            batch: {
              observations,
              actions,
              rewards: G.constant(rewards),
              nextObservations,
              discounts: G.constant(discounts),
              importance: G.constant([0]),
              noise: G.constant([0]),
            },
            actions,
            next: { action: nextActions, logProbability: G.constant(logProbability) },
            weights,
            targetWeights,
            alpha,
          })

          const networks = Model.critics(3, ...spaces, config, 4)
          const estimates = listsOf(networks.apply(weights, observations, actions), 4)
          const nexts = listsOf(networks.apply(targetWeights, nextObservations, nextActions), 4)
          const targets = rewards.map((reward, row) =>
            nexts
              .flatMap((critic) => critic[row])
              .toSorted((a, b) => a - b)
              .slice(0, 3 * (4 - dropped))
              .map((quantile) => reward + discounts[row] * (quantile - alpha * logProbability[row])),
          )
          const losses = estimates.map((critic) =>
            mean(
              critic.flatMap((quantiles, row) =>
                quantiles.flatMap((quantile, index) =>
                  targets[row].map((target) => {
                    const error = target - quantile
                    return Math.abs((2 * index + 1) / 8 - (error < 0 ? 1 : 0)) * huber(error)
                  }),
                ),
              ),
            ),
          )
          assert.closeTo(evaluated(loss)[0], mean(losses), 1e-5)

          const [values] = critics.values(weights, observations, actions)
          const means = Array.from({ length: rows }, (_, row) => mean(estimates.flatMap((critic) => critic[row])))
          for (const [row, value] of evaluated(values).entries()) assert.closeTo(value, means[row], 1e-5)
        }
      }),
  )

  it("have the loss of sb3-contrib's quantile_huber_loss, the mean over rows, critics and quantiles", () => {
    const estimates = [
      [0.1, 0.5, -2, 0, -1, 0.3],
      [1, 2, 3, 0.2, 0.4, 4],
    ].map((critic) => G.constant(critic, [2, 3]))
    const target = G.constant([0.3, -0.2, 1.5, 2, -1, 0.6, 0.1, 3], [2, 4])
    assert.closeTo(evaluated(Tqc.criticLoss(estimates, target))[0], 0.4718576, 1e-6)
  })

  it.effect("must keep at least one quantile", () =>
    Effect.gen(function* () {
      assert.include(
        yield* refusalOf({ quantiles: 4, dropped: 4 }),
        "algorithm.dropped: expected less than quantiles, which is 4, found 4",
      )
    }),
  )

  it.effect("have at most 500 quantiles together, because their order takes n² numbers for each row", () =>
    Effect.gen(function* () {
      assert.include(
        yield* refusalOf({ critics: 6, quantiles: 100 }),
        "algorithm.quantiles: expected at most 500 of all 6 critics together, found 600",
      )
      assert.include(yield* refusalOf({ quantiles: 100_000 }), "quantiles")
    }),
  )
})
