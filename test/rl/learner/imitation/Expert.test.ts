import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Batch from "../../../../src/rl/env/Batch.ts"
import * as Env from "../../../../src/rl/env/Env.ts"
import type { PolicyLike } from "../../../../src/rl/env/multi/opponents.ts"
import { box, discrete, masked } from "../../../../src/rl/env/Space.ts"
import { drive } from "../../../../src/rl/learner/drive.ts"
import { type Expert, makeLabeller } from "../../../../src/rl/learner/imitation/Expert.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"

/** Counts its steps, which are its observation, and ends after three. */
const counting = Env.make({
  id: "counting",
  observationSpace: box(0, 10, [1]),
  actionSpace: box(-1, 1, [1]),
  maxSteps: 3,
  reset: () => 0,
  observe: (count) => [count],
  step: (count) => ({ state: count + 1, reward: 0, terminated: false }),
})
const task = { observationSpace: counting.observationSpace, actionSpace: counting.actionSpace, numEnvs: 2 }
const taskOf = (others: object = {}) => ({ ...task, totalSteps: 100, seed: 1, ...others })

/** A policy that adds up what it has observed in the episode; its action is a tenth of the sum. */
const adding: PolicyLike = {
  actionSpace: counting.actionSpace,
  actAll: (observations, states = []) =>
    Effect.succeed(
      observations.map((observation, at) => {
        const total = Number(Array.isArray(observation) ? observation[0] : observation) + (states[at]?.[0] ?? 0)
        return { action: [total / 10], state: [total] }
      }),
    ),
}

/** Asks for the labels of some steps, from where a labeller and its envs are. */
const asked = (labeller: ReturnType<typeof makeLabeller>, envs: ReturnType<typeof Batch.make>, steps: number) =>
  drive(function* () {
    const labels: Array<number> = []
    for (let step = 0; step < steps; step++) {
      yield* labeller.ask(envs, stream(1, "expert", step))
      labels.push(labeller.labels[0])
      envs.step(new Float32Array(2))
      labeller.afterStep(envs)
    }
    return labels
  })

const begun = () => {
  const envs = Batch.make(counting, 2)
  envs.reset(1, "env")
  return envs
}

describe("an expert", () => {
  it.effect("that is a function sees each observation, and its actions are clipped to the bounds", () =>
    Effect.gen(function* () {
      const labeller = makeLabeller(([count]) => 0.6 * count, taskOf())
      const labels = yield* asked(labeller, begun(), 4)
      assert.deepStrictEqual(labels, [0, Math.fround(0.6), 1, 0])
    }),
  )

  it.effect("gets random numbers that depend on the stream alone", () =>
    Effect.gen(function* () {
      const expert: Expert = (_, random) => random.uniform()
      const labels = yield* asked(makeLabeller(expert, taskOf()), begun(), 3)
      assert.deepStrictEqual(
        labels,
        [0, 1, 2].map((step) => Math.fround(stream(1, "expert", step).uniform())),
      )
    }),
  )

  it.effect("that is a policy keeps its memory for an episode, and in a checkpoint", () =>
    Effect.gen(function* () {
      const [whole, first] = [makeLabeller(adding, taskOf()), makeLabeller(adding, taskOf())]
      const labels = yield* asked(whole, begun(), 6)
      assert.deepStrictEqual(labels, [0, 0.1, 0.3, 0, 0.1, 0.3].map(Math.fround))
      const envs = begun()
      yield* asked(first, envs, 2)
      const second = makeLabeller(adding, taskOf())
      second.restore(first.state())
      assert.deepStrictEqual(yield* asked(second, envs, 2), [0.3, 0].map(Math.fround))
    }),
  )

  it.effect("must not choose what the mask forbids", () =>
    Effect.gen(function* () {
      const masking = Env.make({
        id: "masking",
        observationSpace: box(0, 1, [1]),
        actionSpace: discrete(3),
        reset: () => 0,
        observe: () => [0.5],
        actionMask: () => [1, 0, 1],
        step: (state) => ({ state, reward: 0, terminated: false }),
      })
      const envs = Batch.make(masking, 2)
      envs.reset(1, "env")
      const space = masked(masking.observationSpace, masking.actionSpace)
      const spaces = taskOf({ observationSpace: space, actionSpace: masking.actionSpace })
      const ask = (expert: Expert) => drive(() => makeLabeller(expert, spaces).ask(envs, stream(1)))
      yield* ask((row) => row.lastIndexOf(1) - 1)
      const { message } = yield* Effect.flip(ask(() => 1))
      assert.include(message, "masking: the expert: the action mask forbids")
    }),
  )
})
