import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as AlphaZero from "../../../src/rl/algorithms/planning/AlphaZero.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import * as Env from "../../../src/rl/env/Env.ts"
import * as MultiEnv from "../../../src/rl/env/MultiEnv.ts"
import { box, discrete } from "../../../src/rl/env/Space.ts"
import { categorical } from "../../../src/tensor/graph/distributions.ts"
import * as G from "../../../src/tensor/graph/ops.ts"
import { alphaZeroLoss } from "../../../src/rl/algorithms/planning/AlphaZero.ts"
import { evaluated } from "../losses/evaluated.ts"
import { keep } from "../train/inMemory.ts"

/** A lock of four numbers, each 0, 1 or 2, of which one combination opens it; a mask forbids to repeat the last number. */
const code = [2, 0, 2, 1]
const lock = Env.make({
  id: "lock",
  observationSpace: box(0, 3, [4]),
  actionSpace: discrete(3),
  reset: () => ({ tried: [] as ReadonlyArray<number> }),
  observe: ({ tried }) => [0, 1, 2, 3].map((at) => (tried[at] ?? -1) + 1),
  step: ({ tried }, action) => {
    const next = [...tried, action]
    const isOver = next.length === code.length
    const isOpen = isOver && next.every((number, at) => number === code[at])
    return { state: { tried: next }, reward: isOpen ? 1 : 0, terminated: isOver }
  },
  actionMask: ({ tried }) => [0, 1, 2].map((action) => action !== tried.at(-1)),
})

const game = MultiEnv.parallel({
  id: "game",
  agents: ["a", "b"],
  observationSpace: box(0, 1),
  actionSpace: discrete(2),
  reset: () => 0,
  observe: () => [0],
  step: () => ({ state: 0, rewards: [0, 0], terminated: true }),
})

const settings = { hidden: [16], nsteps: 8, updates: 4, batchSize: 16 }
const validated = (options: AlphaZero.AlphaZeroOptions, totalSteps: number, seed: number) =>
  keep({
    env: lock,
    algorithm: AlphaZero.make({ ...settings, ...options }),
    numEnvs: 4,
    totalSteps,
    seed,
    validation: { everySteps: totalSteps, episodes: 4 },
  })

describe("AlphaZero", () => {
  it.effect("finds a rare reward in validations by searching, where a network that has learnt nothing does not", () =>
    Effect.gen(function* () {
      for (const seed of [1, 2, 3]) {
        const [searched, alone] = yield* Effect.all([
          validated({ learningRate: 1e-9, simulations: 200, exploration: 4 }, 32, seed),
          validated({ learningRate: 1e-9, simulations: 200, exploration: 4, validateBy: "network" }, 32, seed),
        ])
        assert.strictEqual(searched.result.validation?.meanReturn, 1)
        assert.strictEqual(alone.result.validation?.meanReturn, 0)
      }
    }),
  )

  it.effect("teaches the network what its searches found", () =>
    Effect.gen(function* () {
      const { result } = yield* validated(
        { learningRate: 1e-2, simulations: 40, validateBy: "network", updates: 16 },
        640,
        1,
      )
      assert.strictEqual(result.validation?.meanReturn, 1)
    }),
  )

  const refusals: Readonly<Record<string, readonly [Parameters<typeof keep>[0], RegExp]>> = {
    "real numbers as actions": [
      { env: Pendulum.env, algorithm: AlphaZero.make(), totalSteps: 100 },
      /alpha-zero needs discrete actions/,
    ],
    "normalised observations": [
      { env: CartPole.env, algorithm: AlphaZero.make(), totalSteps: 100, normalize: { observations: true } },
      /expected false with algorithm "alpha-zero", which searches the env's own states/,
    ],
    "games of several agents": [
      { env: game, algorithm: AlphaZero.make(), numEnvs: 2, totalSteps: 100 },
      /alpha-zero needs an env of one agent, found game; MultiEnv.against makes one of a game/,
    ],
    "worker threads": [
      { env: CartPole.env, algorithm: AlphaZero.make(), totalSteps: 100, workers: 2 },
      /expected 0 with algorithm "alpha-zero"/,
    ],
  }
  for (const [what, [input, message]] of Object.entries(refusals)) {
    it.effect(`refuses ${what}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(keep(input))
        assert.match(error.message, message)
      }),
    )
  }

  it("has the loss c_v E[(z − v)²] − E[Σ π log p]", () => {
    const { loss } = alphaZeroLoss(
      { valueCoefficient: 2 },
      { visits: G.constant([0.75, 0.25], [1, 2]), targets: G.constant([1]) },
      { distribution: categorical(G.constant([1, 0], [1, 2])), value: G.constant([0.5]) },
    )
    const total = Math.log(Math.E + 1)
    assert.closeTo(evaluated(loss)[0], 2 * 0.25 - 0.75 * (1 - total) + 0.25 * total, 1e-6)
  })
})
