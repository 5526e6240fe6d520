import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "yaml"
import manifest from "../../../package.json" with { type: "json" }
import { presetTexts } from "../../../scripts/presets.ts"
import { isPlain } from "../../../src/base/config/Config.ts"
import * as CartPole from "../../../src/rl/env/classic/CartPole.ts"
import { bodies } from "../../../src/rl/env/Envs.ts"
import { ForeignEnvs } from "../../../src/rl/env/foreign/options.ts"
import * as Presets from "../../../src/rl/presets/Presets.ts"
import { texts } from "../../../src/rl/presets/texts.ts"
import * as Ppo from "../../../src/rl/algorithms/rollouts/Ppo.ts"
import { configOf, plan } from "../../../src/rl/train/plan.ts"
import { keep } from "../train/inMemory.ts"
import { validator } from "../../house/validators.ts"

/** Stands in for Gymnasium's envs, which need Python. */
const foreign = { gymnasium: () => CartPole.env, pettingZoo: unused, command: unused, openEnv: unused }

function unused(): never {
  throw new Error("no preset has such an env")
}

const planOf = (settings: Presets.PresetSettings) => {
  const { config, values } = configOf(settings)
  return plan(config, values).pipe(Effect.provideService(ForeignEnvs, foreign))
}

const numberIn = (settings: object, key: string): number => {
  const value: unknown = Object.entries(settings).find(([name]) => name === key)?.[1]
  if (typeof value !== "number") throw new Error(`${key} is no number`)
  return value
}

const all = Presets.all()

describe("Presets", () => {
  it("are the files of examples/presets: `npm run presets` writes them into the module", () =>
    assert.deepEqual(texts, presetTexts()))

  it("have names of their own, also for their runs, and valid settings", () => {
    assert.isAtLeast(all.length, 108)
    const problem = validator("config.schema.json")
    for (const { id, yaml, settings, source } of all) {
      assert.strictEqual(settings.name, id.replaceAll("/", "-"))
      assert.match(source, /^(RL Baselines3 Zoo|CleanRL|gymnax-blines|Revisiting Rainbow)\b.*, \S/, id)
      assert.include(yaml, `npx effect run --preset ${id}\n`)
      assert.isUndefined(problem(parse(yaml)), id)
    }
    assert.strictEqual(new Set(all.map(({ settings }) => settings.name)).size, all.length)
  })

  it.effect("can all be planned, without MuJoCo and without Python, and no default takes the place of a setting", () =>
    Effect.gen(function* () {
      for (const { id, env, settings } of all) {
        const { algorithm, env: planned, settings: decoded } = yield* planOf(settings)
        const isForeign = isPlain(settings.env)
        assert.strictEqual(planned.id, isForeign ? CartPole.env.id : env, id)
        assert.strictEqual(decoded.numEnvs, settings.numEnvs, id)
        for (const [key, value] of Object.entries(settings.algorithm))
          if (key !== "name" && typeof value !== "object")
            assert.deepEqual(algorithm.config[key], value, `${id}: ${key}`)
      }
    }),
  )

  it("say what their envs need", () => {
    for (const { id, env, needs } of all) {
      if (bodies.some((body) => body.id === env)) assert.strictEqual(needs?.packages, "@mujoco/mujoco", id)
      else if (env.startsWith("LunarLander")) assert.strictEqual(needs?.packages, "gymnasium[box2d]")
      else assert.isUndefined(needs, id)
    }
    assert.include(manifest.peerDependencies["@mujoco/mujoco"], "3.14.0")
    assert.strictEqual(Presets.byId("sac/Ant-v5").needs?.install, "npm install @mujoco/mujoco@3.14.0")
  })

  it("state what Stable-Baselines3 does by default and this library does not", () => {
    for (const { id, algorithm, settings, source } of all) {
      if (!source.startsWith("RL Baselines3 Zoo")) continue
      const stated = settings.algorithm
      if (typeof stated["learningRate"] === "number") assert.strictEqual(stated["schedule"], "constant", id)
      if (algorithm === "ppo") {
        assert.containSubset(stated, { clipValue: false, normalizeAdvantages: true, adamEpsilon: 1e-5 }, id)
        const steps = settings.numEnvs * numberIn(stated, "nsteps")
        assert.strictEqual(steps % numberIn(stated, "minibatches"), 0, id)
      }
      if (algorithm === "dqn") assert.containSubset(stated, { double: false, maxGradNorm: 10 }, id)
      if (["dqn", "qr-dqn", "sac", "td3", "ddpg", "tqc"].includes(algorithm))
        assert.strictEqual(stated["orthogonal"], false, id)
      if (algorithm === "td3" || algorithm === "ddpg") assert.containSubset(stated, { warmUpNoise: true }, id)
    }
  })

  it("have the Zoo's figures", () => {
    const { algorithm, normalize, numEnvs, totalSteps } = Presets.of("ppo", "HalfCheetah-v5")
    assert.deepEqual(
      { numEnvs, totalSteps, normalize },
      { numEnvs: 1, totalSteps: 1e6, normalize: { observations: true, rewards: true } },
    )
    assert.containSubset(algorithm, {
      name: "ppo",
      learningRate: 2.0633e-5,
      nsteps: 512,
      minibatches: 8,
      epochs: 20,
      gamma: 0.98,
      lambda: 0.92,
      clip: 0.1,
      entropyCoefficient: 0.000401762,
      valueCoefficient: 2 * 0.58096,
      maxGradNorm: 0.8,
      hidden: [256, 256],
      activation: "relu",
      orthogonal: false,
      logStdInit: -2,
    })
    // A rollout of the Zoo's 32 steps is smaller than its minibatch of 64.
    assert.containSubset(Presets.of("ppo", "InvertedPendulum-v5").algorithm, { nsteps: 32, minibatches: 1 })
    assert.containSubset(Presets.of("qr-dqn", "MountainCar-v0").algorithm, {
      name: "dqn",
      trainEvery: 16,
      gradientSteps: 8,
      updateTargetFreq: 600,
      distribution: { type: "quantiles", count: 25 },
    })
  })

  it("suggest what an unknown name probably means", () => {
    const problem = (algorithm: string, env: string): string => {
      try {
        Presets.of(algorithm, env)
      } catch (error) {
        return error instanceof Error ? error.message : ""
      }
      return ""
    }
    assert.strictEqual(
      problem("ppo", "HalfCheeta"),
      'unknown preset "ppo/HalfCheeta"; did you mean "ppo/HalfCheetah-v5"?',
    )
    assert.strictEqual(
      problem("dqn", "Seven"),
      'unknown preset "dqn/Seven"; dqn has presets for ' +
        Presets.ids.flatMap((id) => (id.startsWith("dqn/") ? id.slice("dqn/".length) : [])).join(", "),
    )
    assert.match(
      problem("nothing", "Seven"),
      /^unknown preset "nothing\/Seven"; expected .*: a2c, ddpg, discrete-sac, dqn, .*trpo$/,
    )
    assert.throws(
      () => Presets.byId("swimmer-v5"),
      /^unknown preset "swimmer-v5"; expected one of a2c\/Swimmer-v5, ddpg.*, trpo\/Swimmer-v5$/,
    )
    assert.match(problem("constructor", "prototype"), /^unknown preset/)
  })

  it.effect("train with changes", () =>
    Effect.gen(function* () {
      const { algorithm, ...settings } = Presets.of("ppo", "CartPole-v1")
      const small = { hidden: [4], epochs: 2 }
      const changed = { ...settings, totalSteps: 512, validation: {} }
      const { result } = yield* keep({ ...changed, algorithm: { ...algorithm, ...small } })
      assert.strictEqual(result.steps, 512)
      // A name with settings is the same as the algorithm that code makes of them.
      const { name: _, ...options } = { ...algorithm, ...small }
      const made = yield* keep({ ...changed, env: CartPole.env, algorithm: Ppo.make(options) })
      assert.strictEqual(made.result.digest, result.digest)
    }),
  )
})
