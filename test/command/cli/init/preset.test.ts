import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { presetInitFile } from "../../../../src/command/cli/init/preset.ts"
import { toSnakeCase } from "../../../../src/base/config/Config.ts"
import { all, byId } from "../../../../src/rl/presets/Presets.ts"
import { effect, resultOf, withFolder } from "../effect.ts"

/** Returns the input of `Train.run` in a program, with the settings of the algorithm by its module's name. */
const settingsIn = (program: string): unknown => {
  const input = /Train\.run\((\{[^]*\})\)\n$/.exec(program)?.[1] ?? ""
  return new Function("", `return ${input.replace(/\b(\w+)\.make\(([^]*)\),\n\}$/, "{ $1: $2 },\n}")}`)()
}

describe("effect init --preset", () => {
  it("writes the preset into a new folder, and says how to run it and what it needs", () =>
    withFolder(async (folder) => {
      const { code, stdout, stderr } = await effect(["init", "--preset", "ppo/HalfCheetah-v5"], folder)
      assert.strictEqual(code, 0, stderr)
      const file = "ppo-HalfCheetah-v5/training.yaml"
      assert.match(
        stdout,
        / {2}npm install @mujoco\/mujoco@3\.14\.0\n {2}npx effect run ppo-HalfCheetah-v5\/training\.yaml\n$/,
      )
      const text = readFileSync(join(folder, file), "utf8")
      assert.deepEqual(parse(text), parse(byId("ppo/HalfCheetah-v5").yaml))
      assert.include(text, `#   npx effect run ${file}\n`)
      assert.include(text, "RL Baselines3 Zoo for HalfCheetah-v4")
    }))

  it("writes a program with the same settings, which runs as it is", () =>
    withFolder(async (folder) => {
      const written = await effect(["init", "pole.ts", "--preset", "ppo/CartPole-v1"], folder)
      assert.strictEqual(written.code, 0, written.stderr)
      assert.notInclude(written.stdout, "mujoco")
      const run = await effect(
        ["run", "pole.ts", "--total-steps", "256", "--set", "validation.episodes=1", "--json"],
        folder,
      )
      assert.strictEqual(run.code, 0, run.stderr)
      const config = parse(readFileSync(join(folder, String(resultOf(run).runDir), "config.yaml"), "utf8"))
      const algorithm = toSnakeCase(byId("ppo/CartPole-v1").settings.algorithm)
      assert.containSubset(config, { name: "ppo-CartPole-v1", algorithm })
    }))

  it("writes every preset as a program without a change", () => {
    for (const preset of all()) {
      const { text } = presetInitFile(preset, "program")
      const { algorithm, ...settings } = preset.settings
      const { name, ...options } = algorithm
      const module = name === "discrete-sac" ? "DiscreteSac" : `${name[0].toUpperCase()}${name.slice(1)}`
      assert.deepEqual(settingsIn(text), { ...settings, algorithm: { [module]: options } }, preset.id)
      assert.include(text, `import { ${[module, "Train"].sort().join(", ")} } from "effect-rl"`)
      assert.match(text, /^\/\/ .*\n(\/\/.*\n)*import /)
    }
  })

  it("refuses an unknown preset, and a kind that is no training", () =>
    withFolder(async (folder) => {
      for (const [args, expected] of [
        [["--preset", "ppo/CartPol-v1"], '--preset: unknown preset "ppo/CartPol-v1"; did you mean "ppo/CartPole-v1"?'],
        [
          ["--preset", "ppo/CartPole-v1", "--kind", "questions"],
          "--kind questions: a preset is a training or a program; leave --kind or --preset out",
        ],
      ] as const) {
        const { code, stderr } = await effect(["init", ...args], folder)
        assert.deepEqual([code, stderr], [2, `effect: ${expected}\n`])
      }
      assert.isFalse(existsSync(join(folder, "ppo-CartPole-v1")))
    }))
})
