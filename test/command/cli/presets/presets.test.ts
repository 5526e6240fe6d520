import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parseAllDocuments } from "yaml"
import { fileWords, isPresetFile } from "../../../../src/command/cli/presets/packaged.ts"
import { areOwnFiles } from "../../../../src/command/cli/trust/ownFiles.ts"
import { ids } from "../../../../src/rl/presets/Presets.ts"
import { effect, resultOf, root, withFolder, write } from "../effect.ts"

describe("effect presets", () => {
  it("lists all presets, with their sources and what they need", async () => {
    const { code, stdout } = await effect(["presets"])
    assert.strictEqual(code, 0)
    const [heading, ...rows] = stdout.trimEnd().split("\n")
    assert.match(heading, /^preset +steps +source +needs$/)
    assert.deepEqual(
      rows.map((row) => row.split(" ")[0]),
      ids,
    )
    const cheetah = rows.find((row) => row.startsWith("ppo/HalfCheetah-v5 "))
    assert.match(cheetah ?? "", / +1,000,000 +RL Baselines3 Zoo, HalfCheetah-v4 +@mujoco\/mujoco$/)
  })

  it("lists those that have all words: an algorithm, or a part of the rest", async () => {
    const listed = async (...words: ReadonlyArray<string>) => {
      const { stdout } = await effect(["presets", ...words, "--json"])
      return stdout
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line))
    }
    for (const name of ["ppo", "rainbow"])
      assert.isTrue(
        (await listed(name)).every(({ algorithm }) => algorithm === name),
        name,
      )
    assert.deepEqual(
      (await listed("dqn", "CARTPOLE")).map(({ preset }) => preset),
      ["dqn/CartPole-v1"],
    )
    const [cheetah] = await listed("sac/HalfCheetah-v5")
    assert.containSubset(cheetah, {
      env: "HalfCheetah-v5",
      settings: { total_steps: 1_000_000, algorithm: { name: "sac" } },
    })
    assert.deepEqual(
      (await listed("ppo/halfcheetah")).map(({ preset }) => preset),
      ["ppo/HalfCheetah-v5"],
    )
    assert.isTrue((await listed("gymnasium")).every(({ env }) => String(env).startsWith("LunarLander")))
  })

  it("prints presets in YAML", async () => {
    const { stdout } = await effect(["presets", "acrobot", "--yaml"])
    const documents = parseAllDocuments(stdout).map((document) => Object(document).toJS().name)
    assert.deepEqual(
      documents,
      ids.filter((id) => id.endsWith("/Acrobot-v1")).map((id) => id.replace("/", "-")),
    )
  })

  it("refuses words that no preset has, and two formats", async () => {
    const nothing = await effect(["presets", "ppo", "chess"])
    assert.deepEqual(
      [nothing.code, nothing.stderr],
      [2, "effect: no preset has ppo and chess; effect presets without words lists all\n"],
    )
    assert.include((await effect(["presets", "--yaml", "--json"])).stderr, "choose one")
  })
})

describe("effect run --preset", () => {
  const short = ["--total-steps", "512", "--set", "validation.episodes=1", "--set", "algorithm.hidden=[4]"]

  it("trains with the settings of the preset and those that override them, and resumes", () =>
    withFolder(async (folder) => {
      const run = await effect(["run", "--preset", "ppo/CartPole-v1", ...short, "--json"], folder)
      assert.strictEqual(run.code, 0, run.stderr)
      const { runDir, steps } = resultOf(run)
      assert.strictEqual(steps, 512)
      assert.include(String(runDir), "_ppo-CartPole-v1_")
      const further = ["--resume", "latest", "--total-steps", "768", "--json"]
      const resumed = await effect(["run", "--preset", "ppo/CartPole-v1", ...further], folder)
      assert.strictEqual(resumed.code, 0, resumed.stderr)
      assert.containSubset(resultOf(resumed), { runDir, steps: 768 })
    }))

  it("lists the runs of a sweep whose settings follow --population", () =>
    withFolder(async (folder) => {
      const sweep = ["--population", "algorithm.gamma=0.9,0.99", "algorithm.epochs=4,8", "--dry-run"]
      const { code, stdout } = await effect(["run", "--preset", "ppo/CartPole-v1", ...sweep], folder)
      assert.strictEqual(code, 0)
      assert.strictEqual(stdout.match(/gamma=0.9\b/g)?.length, 2)
    }))

  it("refuses an unknown preset, a preset and a file, and neither", () =>
    withFolder(async (folder) => {
      write(folder, "train.yaml", "env: CartPole-v1")
      for (const [args, expected] of [
        [["--preset", "ppo/CartPol-v1"], '--preset: unknown preset "ppo/CartPol-v1"; did you mean "ppo/CartPole-v1"?'],
        [
          ["--preset", "../a2c/CartPole-v1"],
          '--preset: unknown preset "../a2c/CartPole-v1"; did you mean "a2c/CartPole-v1"?',
        ],
        [
          ["train.yaml", "--preset", "ppo/CartPole-v1"],
          "--preset ppo/CartPole-v1 takes the place of the file train.yaml; leave one of them out",
        ],
        [
          [],
          "Missing required argument: file; see `effect run --help`, or write one with `effect init train.ts` and run it with `effect run train.ts`, or choose tuned settings of `effect presets`",
        ],
      ] as const) {
        const { code, stderr } = await effect(["run", ...args], folder)
        assert.deepEqual([code, stderr], [2, `effect: ${expected}\n`])
      }
    }))

  it("is repeated by the commands that resume and repeat a run, in place of the file", () => {
    const file = join(root, "examples/presets/ppo/HalfCheetah-v5.yaml")
    assert.isTrue(isPresetFile(file))
    assert.isTrue(areOwnFiles(file, []))
    assert.deepEqual(fileWords(file), ["--preset", "ppo/HalfCheetah-v5"])
    const outside = `${join(root, "examples/presets")}/../../../other/train.yaml`
    for (const other of [
      "examples/cartpole.ts",
      "examples/presets/x.yaml",
      join(root, "examples/codebook.yaml"),
      outside,
    ]) {
      assert.isFalse(isPresetFile(other))
      assert.deepEqual(fileWords(other), [other])
    }
  })
})
