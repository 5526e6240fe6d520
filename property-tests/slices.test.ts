import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { PpoConfig, ppoLoss } from "../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../src/tensor/backend/wasm.ts"
import { decode } from "../src/base/config/Config.ts"
import * as CartPole from "../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../src/rl/env/classic/Pendulum.ts"
import { sgd } from "../src/tensor/graph/optimisers.ts"
import { layout } from "../src/tensor/graph/Parameters.ts"
import { Averages } from "../src/rl/learner/Averages.ts"
import { arraysOf } from "../src/rl/learner/Batch.ts"
import { experience } from "../src/rl/learner/rollout/Experience.ts"
import { withMemory } from "../src/rl/learner/rollout/features.ts"
import { resolved } from "../src/rl/learner/rollout/fields.ts"
import type { Phase } from "../src/rl/learner/rollout/Phase.ts"
import { compileUpdate } from "../src/rl/learner/rollout/update.ts"
import { actorCritic } from "../src/rl/model/ActorCritic.ts"
import { stream } from "../src/base/rng/Rng.ts"
import { agree } from "./support/agreement.ts"
import { tries } from "../test/house/tries.ts"

const config = Effect.runSync(decode(PpoConfig, {}, { source: "test" }))

interface Shape {
  readonly env: typeof CartPole.env | typeof Pendulum.env
  /** The number of sequences in the minibatch: of rows without a memory, of four rows with one. */
  readonly sequences: number
  readonly lstm: number
  readonly seed: number
}

/** Takes one step of gradient descent with learning rate 1 on random rows, with `count` slices or with none. */
const stepped = (
  { env, sequences, lstm, seed }: Shape,
  count: number | undefined,
): { readonly theta: Float32Array; readonly metrics: Readonly<Record<string, number>> } =>
  Effect.gen(function* () {
    const steps = lstm > 0 ? 4 : 1
    const task = { ...env, numEnvs: sequences, totalSteps: 100, seed }
    const network = actorCritic({ ...task, hidden: [5], activation: "tanh", convolutions: null, lstm })
    const returns = { gamma: 0.9, lambda: 1 }
    const played = withMemory(experience({ name: "test", task, actor: network, steps, returns }))
    type C = (typeof played)["columns"]
    const phase: Phase<C> = {
      name: "update",
      epochs: 1,
      minibatches: 1,
      maxGradNorm: 0,
      optimiser: sgd,
      loss: ({ batch, weights, recall, standardised }) =>
        ppoLoss(resolved(config), batch, network.evaluate(weights, batch.observations, recall), standardised),
      slices: count,
    }
    const parameters = layout(played.parameters)
    const learning = yield* compileUpdate(played, parameters, layout({}), [phase])
    const random = stream(seed, "rows")
    const columns: Record<string, Float32Array | Int32Array> = arraysOf(played.columns, steps * sequences)
    columns.memory = new Float32Array(sequences * Math.max(1, network.memorySize))
    columns.fresh = new Float32Array(steps * sequences)
    for (const [name, column] of Object.entries(columns).sort())
      for (let at = 0; at < column.length; at++) {
        const drawn = random.uniform()
        column[at] =
          name === "fresh" ? (drawn < 0.2 ? 1 : 0) : column instanceof Int32Array ? (drawn < 0.5 ? 0 : 1) : drawn
      }
    for (const program of learning.programs)
      yield* program.write("theta", parameters.initialise(stream(seed, "weights")))
    learning.prepare(0, { rate: 1, progress: 0 }, columns)
    const averages = new Averages()
    yield* learning.run(averages)
    return { theta: yield* learning.last.read("theta"), metrics: averages.take() }
  }).pipe(Effect.scoped, Effect.provide(Wasm.layer), Effect.runSync)

const assertEqual = (shape: Shape, count: number): void => {
  const [whole, sliced] = [stepped(shape, undefined), stepped(shape, count)]
  assert.isUndefined(agree(sliced.theta, whole.theta))
  const names = Object.keys(whole.metrics).sort()
  assert.deepStrictEqual(Object.keys(sliced.metrics).sort(), names)
  for (const name of names) assert.closeTo(sliced.metrics[name], whole.metrics[name], 1e-4, name)
}

describe("the gradients of the slices of a minibatch add up to its gradient, and their metrics have its means", () => {
  it("for a few shapes", () => {
    assertEqual({ env: CartPole.env, sequences: 24, lstm: 0, seed: 1 }, 4)
    assertEqual({ env: Pendulum.env, sequences: 24, lstm: 0, seed: 2 }, 3)
    assertEqual({ env: CartPole.env, sequences: 12, lstm: 3, seed: 3 }, 6)
    assertEqual({ env: CartPole.env, sequences: 8, lstm: 0, seed: 4 }, 8)
  })

  it("for any shape", () => {
    const shapes = fc.record({
      env: fc.constantFrom(CartPole.env, Pendulum.env),
      lstm: fc.constantFrom(0, 0, 2),
      rows: fc.integer({ min: 1, max: 9 }),
      count: fc.integer({ min: 2, max: 7 }),
      seed: fc.integer({ min: 0, max: 1000 }),
    })
    fc.assert(
      fc.property(shapes, ({ rows, count, ...shape }) => assertEqual({ ...shape, sequences: rows * count }, count)),
      { numRuns: tries(12) },
    )
  })
})
