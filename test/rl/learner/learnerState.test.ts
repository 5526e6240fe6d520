import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import type { NamedArrays } from "../../../src/tensor/graph/Parameters.ts"
import { copyInto } from "../../../src/rl/learner/learnerState.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Rnd from "../../../src/rl/algorithms/rollouts/Rnd.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import type { Env } from "../../../src/rl/env/Env.ts"
import { learnerOf } from "../../../src/rl/learner/learnerOf.ts"

const learnerFor = Effect.fnUntraced(function* (algorithm: Algorithm, env: Env) {
  const { observationSpace, actionSpace } = env
  const configured = yield* algorithm.configure(algorithm.input, { source: "test" })
  return yield* learnerOf(configured, { observationSpace, actionSpace, numEnvs: 2, totalSteps: 100, seed: 1 })
}, Effect.provide(Wasm.layer))

const refusal = Effect.fnUntraced(function* (
  algorithm: Algorithm,
  env: Env,
  change: (state: Readonly<Record<string, NamedArrays>>) => Readonly<Record<string, NamedArrays>>,
) {
  const learner = yield* learnerFor(algorithm, env)
  const error = yield* Effect.flip(learner.restore(yield* learner.weights, change(yield* learner.state)))
  return error.message
}, Effect.scoped)

const sac = Sac.make({ hidden: [4] })

describe("a learner refuses a state that does not fit, and", () => {
  it.effect("names the file that is missing", () =>
    Effect.gen(function* () {
      assert.strictEqual(
        yield* refusal(sac, Pendulum.env, () => ({})),
        "optimizer: the file is missing from the checkpoint",
      )
      const withoutReplay = yield* refusal(sac, Pendulum.env, ({ optimizer }) => ({ optimizer }))
      assert.strictEqual(withoutReplay, "replay: the file is missing from the checkpoint")
      assert.strictEqual(
        yield* refusal(Ppo.make({ hidden: [4] }), CartPole.env, () => ({})),
        "optimizer: the file is missing from the checkpoint",
      )
    }),
  )

  it.effect(
    "names the array that is missing",
    () =>
      Effect.gen(function* () {
        const noMoments = yield* refusal(sac, Pendulum.env, (state) => ({ ...state, optimizer: {} }))
        assert.match(noMoments, /^optimizer: "[^"]+" is missing$/)
        const noRing = yield* refusal(sac, Pendulum.env, (state) => ({ ...state, replay: {} }))
        assert.strictEqual(noRing, 'replay: "position" is missing')
        const noBonus = yield* refusal(Rnd.make({ hidden: [4] }), CartPole.env, (state) => ({ ...state, learner: {} }))
        assert.match(noBonus, /^learner: "[^"]+" is missing$/)
      }),
    { tags: "slow" },
  )

  it.effect("names the expected and the actual shape of an array", () =>
    Effect.gen(function* () {
      const message = yield* refusal(sac, Pendulum.env, ({ optimizer, ...rest }) => {
        const changed = Object.entries(optimizer).map(
          ([name]) => [name, { shape: [3], data: new Float32Array(3) }] as const,
        )
        return { ...rest, optimizer: Object.fromEntries(changed) }
      })
      assert.match(
        message,
        /^optimizer: ".+": expected a Float32Array of shape \[.*\], found a Float32Array of shape \[3\]$/,
      )
      const arrays = { a: { shape: [2], data: Int32Array.of(1, 2) } }
      assert.throws(
        () => copyInto(arrays, "a", new Float32Array(3)),
        '"a": expected 3 × Float32Array, found 2 × Int32Array',
      )
    }),
  )
})
