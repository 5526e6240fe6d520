import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { A2cConfig, a2cLoss } from "../../../src/rl/algorithms/rollouts/A2c.ts"
import { PpoConfig, ppoLoss } from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import { decode } from "../../../src/base/config/Config.ts"
import { categorical } from "../../../src/tensor/graph/distributions.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import { standardised } from "../../../src/rl/losses/policyGradient.ts"
import { resolved } from "../../../src/rl/learner/rollout/fields.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"

/** Three rows, two actions, numbers chosen so that every clip bites somewhere. */
const rows = {
  logits: [0.2, -0.3, 1, 0, -0.5, 0.5],
  value: [0.5, 1.2, -0.4],
  actions: [0, 1, 1],
  logProbs: [-0.9, -1.0, -0.3],
  values: [0.1, 1.1, 0.3],
  advantages: [1, -2, 0.5],
  targets: [1, 1, -1],
}

const batch = {
  observations: G.constant([0, 0, 0], [3, 1]),
  actions: G.constant(Int32Array.from(rows.actions)),
  logProbs: G.constant(rows.logProbs),
  values: G.constant(rows.values),
  advantages: G.constant(rows.advantages),
  targets: G.constant(rows.targets),
}
const evaluation = { distribution: categorical(G.constant(rows.logits, [3, 2])), value: G.constant(rows.value) }

const evaluated = (outputs: Readonly<Record<string, Tensor>>): Readonly<Record<string, number>> => {
  const program = compileWith(Reference.layer, { name: "loss", inputs: {}, state: {}, outputs })
  program.runSync?.()
  return Object.fromEntries(Object.keys(outputs).map((name) => [name, program.results[name][0]]))
}

const mean = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b, 0) / values.length
const clip = (value: number, low: number, high: number): number => Math.min(Math.max(value, low), high)
const rowLogProbabilities = [0, 1, 2].map((row) => {
  const [a, b] = rows.logits.slice(2 * row, 2 * row + 2)
  const total = Math.log(Math.exp(a) + Math.exp(b))
  return [a - total, b - total]
})
const logProbabilities = rows.actions.map((action, row) => rowLogProbabilities[row][action])
const entropies = rowLogProbabilities.map(([a, b]) => -(Math.exp(a) * a + Math.exp(b) * b))

describe("the loss of PPO", () => {
  const advantageMean = mean(rows.advantages)
  const deviation = Math.sqrt(rows.advantages.reduce((sum, a) => sum + (a - advantageMean) ** 2, 0) / 2)
  const normal = rows.advantages.map((a) => (a - advantageMean) / (deviation + 1e-8))
  const ratios = logProbabilities.map((now, row) => Math.exp(now - rows.logProbs[row]))
  const expected = {
    policy: -mean(ratios.map((ratio, row) => Math.min(ratio * normal[row], clip(ratio, 0.8, 1.2) * normal[row]))),
    value:
      0.5 *
      mean(
        rows.value.map((value, row) => {
          const clipped = rows.values[row] + clip(value - rows.values[row], -0.2, 0.2)
          return Math.max((value - rows.targets[row]) ** 2, (clipped - rows.targets[row]) ** 2)
        }),
      ),
    entropy: mean(entropies),
    kl: mean(ratios.map((ratio) => ratio - 1 - Math.log(ratio))),
    clipped: mean(ratios.map((ratio) => (Math.abs(ratio - 1) > 0.2 ? 1 : 0))),
  }

  it.effect("equals the formulas of the paper, written out row by row", () =>
    Effect.gen(function* () {
      const config = yield* decode(PpoConfig, {}, { source: "test" })
      const { loss, metrics } = ppoLoss(resolved(config), batch, evaluation, standardised)
      const results = evaluated({ loss, ...metrics })
      assert.closeTo(results["losses/policy_loss"], expected.policy, 1e-6)
      assert.closeTo(results["losses/value_loss"], expected.value, 1e-6)
      assert.closeTo(results["losses/entropy"], expected.entropy, 1e-6)
      assert.closeTo(results["losses/approx_kl"], expected.kl, 1e-6)
      assert.closeTo(results["losses/clipfrac"], expected.clipped, 1e-6)
      assert.closeTo(results.loss, expected.policy + 0.5 * expected.value - 0.01 * expected.entropy, 1e-6)
      // The numbers do exercise what they are for.
      assert.isTrue(expected.clipped > 0 && expected.clipped < 1)
    }),
  )

  it.effect("has neither normalised advantages nor clipped values if the config turns them off", () =>
    Effect.gen(function* () {
      const config = yield* decode(PpoConfig, { normalizeAdvantages: false, clipValue: false }, { source: "test" })
      const results = evaluated(ppoLoss(resolved(config), batch, evaluation, standardised).metrics)
      const policy = -mean(
        ratios.map((ratio, row) =>
          Math.min(ratio * rows.advantages[row], clip(ratio, 0.8, 1.2) * rows.advantages[row]),
        ),
      )
      assert.closeTo(results["losses/policy_loss"], policy, 1e-6)
      assert.closeTo(
        results["losses/value_loss"],
        0.5 * mean(rows.value.map((v, row) => (v - rows.targets[row]) ** 2)),
        1e-6,
      )
    }),
  )
})

describe("the loss of A2C", () => {
  it.effect("is −E[A log π] + c_v E[(V − target)²] − c_e H", () =>
    Effect.gen(function* () {
      const config = yield* decode(A2cConfig, {}, { source: "test" })
      const { loss, metrics } = a2cLoss(resolved(config), batch, evaluation)
      const results = evaluated({ loss, ...metrics })
      const policy = -mean(logProbabilities.map((log, row) => log * rows.advantages[row]))
      const value = mean(rows.value.map((v, row) => (v - rows.targets[row]) ** 2))
      assert.closeTo(results["losses/policy_loss"], policy, 1e-6)
      assert.closeTo(results["losses/value_loss"], value, 1e-6)
      assert.closeTo(results.loss, policy + 0.5 * value - 0.01 * mean(entropies), 1e-6)
    }),
  )
})
