import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { parse } from "yaml"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as GridWorld from "../../../src/rl/env/grid/GridWorld.ts"
import * as KeyDoor from "../../../src/rl/env/grid/KeyDoor.ts"
import * as Breakout from "../../../src/rl/env/pixel/Breakout.ts"
import * as Wrapper from "../../../src/rl/env/Wrapper.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import { keep, textOf } from "./inMemory.ts"
import { resumable } from "./resumable.ts"

const short = { numEnvs: 2, totalSteps: 64, algorithm: Ppo.make({ nsteps: 16, minibatches: 1, epochs: 1 }) }

const withOverrides = (input: Parameters<typeof Train.run>[0], set: Readonly<Record<string, unknown>>) => {
  const overrides = Object.entries(set).map(([path, value]) => ({ path, value, source: "--set" }))
  return Train.run(input).pipe(
    Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layerSilent)),
    Effect.provideService(RunOptions, { overrides, source: "train.ts", name: "run" }),
  )
}

describe("an algorithm that is named again", () => {
  it.effect("keeps the settings that code gives it; another one begins with its own", () =>
    Effect.gen(function* () {
      const input = { ...short, env: CartPole.env }
      const { digest } = (yield* keep(input)).result
      assert.strictEqual((yield* withOverrides(input, { algorithm: "ppo" })).digest, digest)
      const defaults = yield* withOverrides({ ...input, totalSteps: 2048 }, { algorithm: { name: "ppo" } })
      assert.strictEqual(
        defaults.digest,
        (yield* keep({ ...input, totalSteps: 2048, algorithm: Ppo.make() })).result.digest,
      )
      const other = yield* withOverrides(input, { algorithm: "a2c" })
      assert.strictEqual(other.digest, (yield* keep({ ...input, algorithm: "a2c" })).result.digest)
      const { message } = yield* Effect.flip(
        withOverrides({ ...input, algorithm: Ppo.make({ minibatches: 7 }) }, { algorithm: "ppo" }),
      )
      // The message names the program, which set the value, not the override, which only names the algorithm.
      assert.match(message, /^train\.ts: algorithm\.minibatches/)
    }),
  )
})

describe("the envs of a training", () => {
  it.effect("are those that code gave, also where another goes by the same id", () =>
    Effect.gen(function* () {
      const endless = Wrapper.timeLimit(CartPole.env, 3)
      const validation = { everySteps: 32, episodes: 4 }
      const { result } = yield* keep({ ...short, env: CartPole.env, validation: { ...validation, envs: [endless] } })
      assert.strictEqual(result.validation?.meanReturn, 3)
      const other = yield* keep({ ...short, env: endless, validation: { ...validation, envs: [CartPole.env] } })
      assert.isAbove(other.result.validation?.meanReturn ?? 0, 3)
    }),
  )

  it.effect("are in config.yaml with all that makes them, which repeats the run", () =>
    Effect.gen(function* () {
      const env = Wrapper.timeLimit(KeyDoor.make({ size: 7, layoutSeed: 3 }), 20)
      const validation = { everySteps: 32, episodes: 4, envs: [KeyDoor.make({ size: 7 })] }
      const run = yield* keep({ ...short, env, validation })
      const config = parse(textOf(run, "config.yaml"))
      assert.deepEqual(config.env, { name: "TimeLimit", steps: 20, env: { name: "KeyDoor", size: 7, layout_seed: 3 } })
      const again = yield* Train.fromConfig(config).pipe(
        Effect.provide(Layer.mergeAll(Wasm.layer, RunStore.memory().layer, Recorder.layerSilent)),
      )
      assert.strictEqual(again.digest, run.result.digest)
    }),
  )

  it.effect("take single options from the launcher", () =>
    Effect.gen(function* () {
      const input = { ...short, env: KeyDoor.env, validation: { everySteps: 64, episodes: 2 } }
      const set = yield* withOverrides(input, { "env.max_steps": 5, "env.size": 6 })
      const code = yield* keep({ ...input, env: KeyDoor.make({ size: 6, maxSteps: 5 }) })
      assert.strictEqual(set.digest, code.result.digest)
      const { message } = yield* Effect.flip(withOverrides(input, { "env.max_step": 5 }))
      assert.match(message, /^--set: unknown key "env\.max_step"; did you mean "env\.max_steps"\?/)
    }),
  )

  it.effect(
    "keep their options where only their names are said again; another one has its own",
    () =>
      Effect.gen(function* () {
        const input = { ...short, env: Wrapper.timeLimit(KeyDoor.make({ size: 6 }), 9) }
        const validated = { ...input, validation: { everySteps: 64, episodes: 2 } }
        const { digest } = (yield* keep(validated)).result
        for (const env of [input.env.id, "TimeLimit"]) {
          assert.strictEqual((yield* withOverrides(validated, { env })).digest, digest, env)
        }
        const said = yield* withOverrides({ ...validated, env: "KeyDoor" }, { "env.size": 6, env: "KeyDoor" })
        assert.strictEqual(said.digest, (yield* keep({ ...validated, env: KeyDoor.make({ size: 6 }) })).result.digest)
        const other = yield* withOverrides(validated, { env: KeyDoor.env.id })
        assert.strictEqual(other.digest, (yield* keep({ ...validated, env: KeyDoor.env })).result.digest)
      }),
    { tags: "slow" },
  )

  it.effect("may be said anew as a whole, with all their options", () =>
    Effect.gen(function* () {
      const input = { ...short, env: KeyDoor.make({ size: 6, rooms: 2 }), validation: { everySteps: 64, episodes: 2 } }
      const set = yield* withOverrides(input, { env: { name: "GridWorld", size: 9, maxSteps: 7 } })
      const code = yield* keep({ ...input, env: GridWorld.make({ size: 9, maxSteps: 7 }) })
      assert.strictEqual(set.digest, code.result.digest)
      const algorithm = { name: "ppo", nsteps: 16, minibatches: 1, epochs: 1, hidden: [3] }
      const small = yield* withOverrides({ ...input, algorithm: "a2c" }, { algorithm })
      const { name: _name, ...settings } = algorithm
      assert.strictEqual(small.digest, (yield* keep({ ...input, algorithm: Ppo.make(settings) })).result.digest)
    }),
  )

  it.effect("have ids of their own where they are changed copies of built-in ones", () =>
    Effect.gen(function* () {
      const changed = { ...CartPole.env, step: CartPole.env.step }
      const { message } = yield* Effect.flip(keep({ ...short, env: changed }))
      assert.match(message, /CartPole-v1 is the id of a built-in env, and this is a changed copy/)
    }),
  )

  it.effect("must be the same ones when a run goes on", () =>
    Effect.gen(function* () {
      const input = { ...short, env: Breakout.env }
      const error = yield* Effect.flip(resumable(input, 32, { env: Breakout.make({ stickyActionProb: 0 }) }))
      assert.match(error.message, /the checkpoint was saved with env\.sticky_action_prob = nothing, found 0/)
    }),
  )
})
