import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { DqnConfig, dqnLoss } from "../../src/algorithms/replay/Dqn.ts"
import { epsilonGreedy, epsilonSchedule } from "../../src/learner/exploration.ts"
import * as Reference from "../../src/backend/reference.ts"
import { decode } from "../../src/config/Config.ts"
import * as G from "../../src/graph/ops.ts"
import type { Tensor } from "../../src/graph/Tensor.ts"
import { stream } from "../../src/rng/Rng.ts"
import { compileWith } from "../../property-tests/support/agreement.ts"

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
