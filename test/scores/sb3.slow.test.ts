import { spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { effect, root, withFolder, write } from "../command/cli/effect.ts"
import { runsIn } from "../command/cli/crash.ts"

const python = process.env.EFFECT_RL_SB3_PYTHON ?? "python3"
const script = join(root, "scripts/scores/sb3.py")
const hasPeer = spawnSync(python, ["-c", "import stable_baselines3, gymnasium"]).status === 0

const config = (algorithm: string): string => `env: CartPole-v1
num_envs: 2
total_steps: 256
algorithm: ${algorithm}
`

/** Trains by the script with the settings that a run of ours has saved; returns its exit code, messages and outcome. */
const trainPeer = async (folder: string, algorithm: string) => {
  const file = write(folder, "train.yaml", config(algorithm))
  const { code, stderr: problem } = await effect(["run", file, "--results-dir", join(folder, "results"), "--quiet"])
  assert.strictEqual(code, 0, problem)
  const settings = JSON.parse(readFileSync(join(runsIn(join(folder, "results"))[0], "config.json"), "utf8"))
  const out = join(folder, "outcome.json")
  const task = { settings, env: "CartPole-v1", seed: 1, steps: 256, episodes: 3, out }
  const { status, stderr } = spawnSync(python, [script, write(folder, "task.json", JSON.stringify(task))], {
    encoding: "utf8",
  })
  return { status, stderr, outcome: () => JSON.parse(readFileSync(out, "utf8")) }
}

describe("Stable-Baselines3 beside a row", () => {
  it.skipIf(hasPeer)("is refused with the package's name where there is none", () => {
    const { status, stderr } = spawnSync(python, [script, "task.json"], { encoding: "utf8" })
    assert.strictEqual(status, 3)
    assert.match(stderr, /the Python package \w+ is missing; install stable-baselines3/)
  })

  it.runIf(hasPeer).for(["{ name: ppo, nsteps: 32 }", "{ name: dqn, double: false, learning_starts: 32 }"])(
    "trains with the settings of a run: %s",
    (algorithm) =>
      withFolder(async (folder) => {
        const { status, stderr, outcome } = await trainPeer(folder, algorithm)
        assert.strictEqual(status, 0, stderr)
        const { steps, training, evaluation } = outcome()
        assert.deepStrictEqual([steps, evaluation.length], [256, 3])
        assert.isAbove(training.length, 2)
      }),
  )

  it.runIf(hasPeer)("refuses a setting that it does not have", () =>
    withFolder(async (folder) => {
      const { status, stderr } = await trainPeer(folder, "{ name: ppo, target_kl: 0.1 }")
      assert.strictEqual(status, 3)
      assert.match(stderr, /algorithm\.target_kl: expected null, found 0\.1/)
    }),
  )
})
