import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DqnConfig } from "../../../src/rl/algorithms/replay/Dqn.ts"
import { sequenceLoss } from "../../../src/rl/losses/dqnLosses.ts"
import * as Reference from "../../../src/tensor/backend/reference.ts"
import { decode } from "../../../src/base/config/Config.ts"
import { gradients } from "../../../src/tensor/graph/gradients.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import type { Tensor } from "../../../src/tensor/graph/Tensor.ts"
import type { Recall } from "../../../src/rl/model/memory.ts"
import { compileWith } from "../../../property-tests/support/agreement.ts"

/**
 * A network whose memory is a sum: m ← w (1 − fresh) m + x at each observation x, with the values [m, 1 − m] of two actions.
 */
const network = {
  evaluate: ({ w }: Readonly<Record<string, Tensor>>, observations: Tensor, recall?: Recall) => {
    if (recall === undefined) return assert.fail("expected a memory")
    const [sequences] = recall.state.shape
    const steps = observations.shape[0] / sequences
    const column = (rows: Tensor, step: number) =>
      G.slice(G.reshape(rows, [sequences, steps]), [0, step], [sequences, 1])
    let memory = recall.state
    const values: Array<Tensor> = []
    for (let step = 0; step < steps; step++) {
      const kept = G.mul(memory, G.sub(1, column(recall.fresh, step)))
      memory = G.add(G.mul(kept, w), column(observations, step))
      values.push(G.reshape(G.concat([memory, G.sub(1, memory)], 1), [sequences, 1, 2]))
    }
    return { values: G.reshape(G.concat(values, 1), [sequences * steps, 2]), memory }
  },
}

const burnIn = 1
const length = 3
const nsteps = 2
const count = burnIn + length + nsteps

/** The first sequence passes the end of an episode that terminated; the second one, that of a truncated episode. */
const sequences = [
  {
    memory: 0.5,
    observations: [0.1, 0.4, -0.3, 0.6, 0.2, -0.5],
    fresh: [0, 0, 0, 1, 0, 0],
    actions: [0, 1, 0],
    rewards: [1, 2, -1],
    discounts: [0, 0, 0.81],
    next: [0, 1, 4],
    valid: [1, 1, 1],
  },
  {
    memory: -1,
    observations: [0.3, 0.2, 0.7, -0.2, 0.9, 0.1],
    // The third observation is the last one of an episode, which has no action.
    fresh: [0, 0, 0, 1, 0, 0],
    actions: [1, 0, 1],
    rewards: [0.5, 30, 4],
    discounts: [0.9, 0.81, 0.81],
    next: [1, 1, 4],
    valid: [1, 0, 1],
  },
]
const weights = { online: 0.8, target: -0.4, selector: 0.3 }

const column = (name: "observations" | "fresh" | "rewards" | "discounts" | "valid", width: number) =>
  G.constant(
    sequences.flatMap((each) => each[name]),
    [2, width],
  )
const ints = (name: "actions" | "next") =>
  G.constant(Int32Array.from(sequences.flatMap((each) => each[name])), [2, length])
const batch = {
  observations: G.reshape(column("observations", count), [2, count, 1]),
  fresh: column("fresh", count),
  memory: G.constant(
    sequences.map(({ memory }) => memory),
    [2, 1],
  ),
  actions: ints("actions"),
  rewards: column("rewards", length),
  discounts: column("discounts", length),
  next: ints("next"),
  valid: column("valid", length),
  importance: G.constant([1, 0.25]),
  noise: G.constant([0]),
}

type Sequence = (typeof sequences)[number]

/** The values after the burn-in, in plain numbers. With `held`, the memory after the burn-in is that of other weights. */
const valuesOf = ({ memory: first, observations, fresh }: Sequence, w: number, held = w) => {
  let memory = first
  const values: Array<readonly [number, number]> = []
  for (let at = 0; at < count; at++) {
    memory = (at < burnIn ? held : w) * (1 - fresh[at]) * memory + observations[at]
    if (at >= burnIn) values.push([memory, 1 - memory])
  }
  return values
}

const epsilon = 1e-3
const h = (x: number) => Math.sign(x) * (Math.sqrt(Math.abs(x) + 1) - 1) + epsilon * x
const inverse = (x: number) =>
  Math.sign(x) * (((Math.sqrt(1 + 4 * epsilon * (Math.abs(x) + 1 + epsilon)) - 1) / (2 * epsilon)) ** 2 - 1)
const huber = (error: number): number => (Math.abs(error) <= 1 ? error ** 2 / 2 : Math.abs(error) - 0.5)
const mean = (values: ReadonlyArray<number>): number => values.reduce((a, b) => a + b) / values.length

interface Case {
  readonly double: boolean
  readonly rescale: boolean
}

/** The errors of a sequence by the definition of the target; targets are those of the weights in `weights`. */
const errorsOf = (sequence: Sequence, { double, rescale }: Case, online: number) => {
  const values = valuesOf(sequence, online, weights.online)
  const target = valuesOf(sequence, weights.target)
  const selector = valuesOf(sequence, weights.selector)
  return sequence.actions.map((action, step) => {
    const next = target[sequence.next[step]]
    const chooser = double ? selector[sequence.next[step]] : next
    const value = next[chooser[0] >= chooser[1] ? 0 : 1]
    const unscaled = sequence.rewards[step] + sequence.discounts[step] * (rescale ? inverse(value) : value)
    return sequence.valid[step] * (values[step][action] - (rescale ? h(unscaled) : unscaled))
  })
}

const lossOf = (each: Case, online: number) =>
  mean(sequences.map((sequence, index) => [1, 0.25][index] * mean(errorsOf(sequence, each, online).map(huber))))

describe("the loss of sequences", () => {
  const cases = [true, false].flatMap((double) => [true, false].map((rescale): Case => ({ double, rescale })))
  for (const each of cases) {
    it.effect(`is that of its definition, with ${JSON.stringify(each)}`, () =>
      Effect.gen(function* () {
        const config = yield* decode(DqnConfig, { ...each, prioritised: {} }, { source: "test" })
        const w = G.constant(weights.online)
        const { loss, errors, metrics } = sequenceLoss({ ...config, length, burnIn }, network, {
          batch,
          online: { w },
          selector: { w: G.constant(weights.selector) },
          targetNetwork: { w: G.constant(weights.target) },
        })
        const [slope] = gradients(loss, [w])
        const outputs = { loss, errors, slope, error: metrics["losses/td_loss"] }
        const program = compileWith(Reference.layer, { name: "test", inputs: {}, state: {}, outputs })
        program.runSync?.()
        const { results } = program
        assert.closeTo(Number(results.loss[0]), lossOf(each, weights.online), 1e-5)
        // The gradient flows through the learned steps alone: the memory after the burn-in is a constant.
        const step = 1e-5
        const expected = (lossOf(each, weights.online + step) - lossOf(each, weights.online - step)) / (2 * step)
        assert.closeTo(Number(results.slope[0]), expected, 1e-4)
        for (const [index, sequence] of sequences.entries()) {
          const sizes = errorsOf(sequence, each, weights.online).map(Math.abs)
          assert.closeTo(Number(results.errors[index]), 0.9 * Math.max(...sizes) + 0.1 * mean(sizes), 1e-4)
        }
        const unweighted = sequences.map((sequence) => mean(errorsOf(sequence, each, weights.online).map(huber)))
        assert.closeTo(Number(results.error[0]), mean(unweighted), 1e-5)
      }),
    )
  }
})
