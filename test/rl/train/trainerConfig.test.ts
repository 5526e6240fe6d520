import { gunzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { parse } from "yaml"
import type { Algorithm } from "../../../src/rl/learner/Algorithm.ts"
import * as A2c from "../../../src/rl/algorithms/rollouts/A2c.ts"
import * as Ddqn from "../../../src/rl/algorithms/rollouts/Ddqn.ts"
import * as Dqn from "../../../src/rl/algorithms/replay/Dqn.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import * as Sac from "../../../src/rl/algorithms/replay/Sac.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import * as Pendulum from "../../../src/rl/env/classic/Pendulum.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import * as Train from "../../../src/rl/train/Train.ts"
import * as PolicyHeaders from "../../../src/rl/train/policyHeaders-node.ts"
import { TrainerConfig } from "../../../src/rl/train/TrainerConfig.ts"
import { keep, textOf } from "./inMemory.ts"

const configOf = (kept: Effect.Success<ReturnType<typeof keep>>) => parse(textOf(kept, "config.yaml"))

describe("TrainerConfig", () => {
  it("has the defaults that its users know", () => {
    assert.deepEqual(Schema.decodeSync(TrainerConfig)({}), {
      trainMode: "nstep",
      returns: "NSTEP",
      totalSteps: 50_000_000,
      nsteps: 5,
      gamma: 0.99,
      lambda: 0.95,
      validateFreq: 1_000_000,
      numValEpisodes: 50,
      maxValSteps: 10_000,
      saveFreq: 0,
      logScalars: true,
      logDir: ".",
      modelDir: "checkpoints",
      updateTargetFreq: 0,
      renderFreq: 0,
    })
  })

  it.effect("stands for the settings that it names, which say more where they are given", () =>
    Effect.gen(function* () {
      const kept = yield* keep({
        env: CartPole.env,
        algorithm: A2c.make({ gamma: 0.9 }),
        trainer: { totalSteps: 800, validateFreq: 400, numValEpisodes: 3, saveFreq: 200, nsteps: 8, gamma: 0.5 },
        validation: { episodes: 2 },
      })
      const config = configOf(kept)
      assert.strictEqual(config.total_steps, 800)
      assert.deepInclude(config.validation, { every_steps: 400, episodes: 2, max_steps: 10_000 })
      assert.strictEqual(config.checkpoint.every_steps, 200)
      // Settings that are left out are the algorithm's own: A2C's λ is 1.
      assert.deepInclude(config.algorithm, { nsteps: 8, gamma: 0.9, lambda: 1 })
      assert.isUndefined(config.trainer)
      assert.strictEqual(kept.result.validation?.episodes, 2)
    }),
  )

  it.effect("is read from YAML by its own names, λ's underscore included", () =>
    Effect.gen(function* () {
      const text = `
env: CartPole-v1
algorithm: a2c
trainer: { total_steps: 400, lambda_: 0.9, train_mode: onestep, validate_freq: 0, returns: LAMBDA }
`
      const kept = yield* keepYaml(parse(text))
      assert.deepInclude(kept, { lambda: 0.9, train_mode: "onestep", returns: "LAMBDA" })
    }),
  )

  it.effect("refuses what it does not know, and what cannot be, by name", () =>
    Effect.gen(function* () {
      const base = { env: CartPole.env, algorithm: A2c.make() }
      const misspelt = yield* Effect.flip(keep({ ...base, trainer: Object({ validateFreqq: 3 }) }))
      assert.include(misspelt.message, 'unknown key "trainer.validate_freqq"; did you mean "trainer.validate_freq"?')
      const negative = yield* Effect.flip(keep({ ...base, trainer: { nsteps: 0 } }))
      assert.include(negative.message, "trainer.nsteps")
      const odd = yield* Effect.flip(
        keep({ ...base, trainer: { validateFreq: 400, renderFreq: 600, totalSteps: 800 } }),
      )
      assert.include(odd.message, "render.every_steps: expected a multiple of validation.every_steps, 400, found 600")
    }),
  )
})

describe("trainer.update_target_freq", () => {
  const ddqn = { env: CartPole.env, algorithm: Ddqn.make({ nsteps: 4 }), totalSteps: 320 }

  it.effect("0 never updates the target network, and left out it is the algorithm's own", () =>
    Effect.gen(function* () {
      const off = yield* keep({ ...ddqn, trainer: { updateTargetFreq: 0, validateFreq: 0 } })
      assert.strictEqual(configOf(off).algorithm.update_target_freq, 0)
      const late = yield* keep({ ...ddqn, trainer: { updateTargetFreq: 10_000, validateFreq: 0 } })
      assert.strictEqual(off.result.digest, late.result.digest)
      const often = yield* keep({ ...ddqn, trainer: { updateTargetFreq: 64, validateFreq: 0 } })
      assert.notStrictEqual(off.result.digest, often.result.digest)
      const own = yield* keep({ ...ddqn, trainer: { validateFreq: 0 } })
      assert.strictEqual(configOf(own).algorithm.update_target_freq, 1000)
    }),
  )

  it.effect("0 switches the target network's updates off for DDQN and DQN themselves", () =>
    Effect.gen(function* () {
      const digestOf = (algorithm: Algorithm) =>
        Effect.map(keep({ env: CartPole.env, algorithm, totalSteps: 400 }), ({ result }) => result.digest)
      const ofDqn = (updateTargetFreq: number) =>
        digestOf(Dqn.make({ hidden: [8], learningStarts: 50, batchSize: 8, updateTargetFreq }))
      assert.strictEqual(yield* ofDqn(0), yield* ofDqn(10_000))
      assert.notStrictEqual(yield* ofDqn(0), yield* ofDqn(100))
      assert.strictEqual(
        yield* digestOf(Ddqn.make({ updateTargetFreq: 0 })),
        yield* digestOf(Ddqn.make({ updateTargetFreq: 10_000 })),
      )
    }),
  )

  it.effect("of an algorithm without a target network may be 0, and is refused by its own name otherwise", () =>
    Effect.gen(function* () {
      const a2c = { env: CartPole.env, algorithm: A2c.make(), totalSteps: 80 }
      const off = yield* keep({ ...a2c, trainer: { updateTargetFreq: 0, validateFreq: 0 } })
      assert.notProperty(configOf(off).algorithm, "update_target_freq")
      const sac = { env: Pendulum.env, algorithm: Sac.make(), totalSteps: 80 }
      for (const input of [a2c, sac]) {
        const { message } = yield* Effect.flip(keep({ ...input, trainer: { updateTargetFreq: 500 } }))
        const { name } = input.algorithm
        assert.strictEqual(
          message,
          `Train.run: trainer.update_target_freq: the algorithm "${name}" has no such setting; leave it out`,
        )
      }
      const { message } = yield* Effect.flip(keep({ ...sac, trainer: { trainMode: "onestep" } }))
      assert.include(message, "trainer.train_mode")
    }),
  )
})

describe("a folder's name", () => {
  it.effect("may end with a slash, and paths below it have one", () =>
    Effect.gen(function* () {
      const kept = yield* keep({
        env: CartPole.env,
        algorithm: A2c.make(),
        trainer: { totalSteps: 80, validateFreq: 0, modelDir: "models/", logDir: "./logs/" },
      })
      const saved = kept.events.flatMap((event) => (event._tag === "CheckpointSaved" ? [event.path] : []))
      assert.deepEqual(saved, ["models/step_000000000000080"])
      assert.include([...kept.files.keys()], "models/step_000000000000080/manifest.json")
      assert.strictEqual(configOf(kept).checkpoint.dir, "models")
      assert.strictEqual(configOf(kept).log_dir, "logs")
    }),
  )
})

const keepYaml = (config: unknown) =>
  Effect.gen(function* () {
    const store = RunStore.memory()
    const { runDir } = yield* Train.fromConfig(config).pipe(
      Effect.provide(Layer.mergeAll(Wasm.layer, store.layer, Recorder.layerSilent)),
    )
    return parse(new TextDecoder().decode(store.files.get(`${runDir}/config.yaml`))).algorithm
  })

describe("one step at a time", () => {
  it.effect(
    "is the same as rollouts of one step",
    () =>
      Effect.gen(function* () {
        const base = { env: CartPole.env, totalSteps: 400 }
        const one = yield* keep({ ...base, algorithm: A2c.make({ trainMode: "onestep", nsteps: 20 }) })
        const short = yield* keep({ ...base, algorithm: A2c.make({ nsteps: 1 }) })
        assert.strictEqual(one.result.digest, short.result.digest)
      }),
    { tags: "slow" },
  )

  it.effect(
    "NSTEP is LAMBDA with λ = 1, and GAE's targets are LAMBDA's",
    () =>
      Effect.gen(function* () {
        const digestOf = (settings: Parameters<typeof A2c.make>[0]) =>
          Effect.map(
            keep({ env: CartPole.env, totalSteps: 400, algorithm: A2c.make(settings) }),
            (kept) => kept.result.digest,
          )
        assert.strictEqual(yield* digestOf({ returns: "NSTEP", lambda: 0.5 }), yield* digestOf({ lambda: 1 }))
        assert.strictEqual(yield* digestOf({ returns: "LAMBDA", lambda: 0.5 }), yield* digestOf({ lambda: 0.5 }))
        assert.notStrictEqual(yield* digestOf({ lambda: 0.5 }), yield* digestOf({ lambda: 1 }))
      }),
    { tags: "slow" },
  )
})

describe("a rendered episode", () => {
  it.effect(
    "is a moving picture and a trajectory of the validation's first episode",
    () =>
      Effect.gen(function* () {
        const kept = yield* keep({
          env: CartPole.env,
          algorithm: Ppo.make({ nsteps: 32 }),
          totalSteps: 1024,
          normalize: { observations: true },
          validation: { everySteps: 256, episodes: 3 },
          render: { everySteps: 512 },
        })
        const folders = [...kept.files.keys()].filter((path) => path.startsWith("steps/")).toSorted()
        const names = ["h", "h5", "onnx", "safetensors"].map((ending) => `checkpoint.${ending}`)
        assert.deepEqual(
          folders,
          ["000000000000512", "000000000001024"].flatMap((step) =>
            [...names, "episode.svg", "evaluation_results.json", "trajectories.json.gz"].map(
              (name) => `steps/${step}/${name}`,
            ),
          ),
        )
        const packed = kept.files.get("steps/000000000001024/trajectories.json.gz") ?? new Uint8Array(0)
        const [{ trajectory }] = JSON.parse(gunzipSync(packed).toString())
        assert.deepEqual(trajectory[0].state.map(Math.fround), trajectory[0].observation)
        const validation = kept.events.findLast((event) => event._tag === "ValidationEnded")
        assert.strictEqual(trajectory.length, validation?.episodes[0].length)
        assert.isTrue(trajectory.at(-1).terminated)
        assert.strictEqual(trajectory[0].observation.length, 4)
        const picture = textOf(kept, "steps/000000000001024/episode.svg")
        assert.strictEqual(picture.match(/<animate /g)?.length, trajectory.length)
        // Without it the training is the same.
        const plain = yield* keep({
          env: CartPole.env,
          algorithm: Ppo.make({ nsteps: 32 }),
          totalSteps: 1024,
          normalize: { observations: true },
          validation: { everySteps: 256, episodes: 3 },
        })
        assert.strictEqual(plain.result.digest, kept.result.digest)
      }).pipe(Effect.provide(PolicyHeaders.layer)),
    { tags: "slow" },
  )
})

describe("checkpoints", () => {
  it.effect("are saved before the first step, and by episodes, where that is asked for", () =>
    Effect.gen(function* () {
      const kept = yield* keep({
        env: CartPole.env,
        algorithm: A2c.make(),
        totalSteps: 800,
        checkpoint: { everySteps: 0, onStart: true, everyEpisodes: 10, strategy: { _tag: "LastN", keep: 0 } },
      })
      const saved = kept.events.flatMap((event) => (event._tag === "CheckpointSaved" ? [event.step] : []))
      assert.strictEqual(saved[0], 0)
      assert.strictEqual(saved.at(-1), 800)
      const ends = kept.events.flatMap((event) => (event._tag === "EpisodeEnded" ? [event.step] : []))
      const tenths = ends.filter((_, index) => index % 10 === 9).map((step) => 40 * Math.ceil(step / 40))
      assert.deepEqual([...new Set(saved.slice(1))], [...new Set([...tenths, 800])])
    }),
  )
})
