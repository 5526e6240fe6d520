import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "vitest"
import { ownerName } from "../../../src/run/store/owner-node.ts"
import { effect, withFolder } from "./effect.ts"

const config = (orchestrators: string): string => `kind: multirun
model: { type: scratch, hidden_size: 8, layers: 1, heads: 2, tokenizer: { alphabet: "ab" } }
trainer: { max_runs: 2, lora: { rank: 2 } }
orchestrators: ${orchestrators}
runs: {}
`

const put = (folder: string, files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
}

/** The folder of a trainer whose runs have ended: one after its last step, one because of an error. */
const endedRuns = {
  "config.yaml": config("outside"),
  "run_a/configs/orch.yaml": "max_steps: 3\n",
  "run_a/control/finished": "3\n",
  "run_b/configs/orch.yaml": "max_steps: 3\n",
  "run_b/control/evicted.txt": "its gradient is not finite\n",
  "run_c/notes.txt": "no config yet\n",
}

describe("effect orchestrate", () => {
  it("ends when all runs have ended, and tells how", () =>
    withFolder(async (folder) => {
      put(folder, endedRuns)
      const { code, stdout, stderr } = await effect(["orchestrate", folder, "--json"])
      assert.strictEqual(code, 0, stderr)
      assert.deepStrictEqual(JSON.parse(stdout), [
        { run: "run_a", ended: "Finished", reason: null },
        { run: "run_b", ended: "Evicted", reason: "its gradient is not finite" },
        { run: "run_c", ended: "Unconfigured", reason: null },
      ])
      assert.deepStrictEqual(stderr.trim().split("\n"), [
        "run_a: all steps are trained",
        "run_b: ended: its gradient is not finite",
      ])
      for (const words of [
        ["--run", "a"],
        ["--run", "run_a"],
      ]) {
        const one = await effect(["orchestrate", folder, "--json", ...words])
        assert.deepStrictEqual(JSON.parse(one.stdout), [{ run: "run_a", ended: "Finished", reason: null }])
      }
      const own = await effect(["orchestrate", join(folder, "run_b"), "--json", "--quiet"])
      assert.strictEqual(own.code, 0)
      assert.strictEqual(own.stderr, "run_b: ended: its gradient is not finite\n")
      assert.lengthOf(JSON.parse(own.stdout), 1)
    }))

  it("evicts a run whose data set cannot be opened, and no other", () =>
    withFolder(async (folder) => {
      put(folder, {
        ...endedRuns,
        "run_d/configs/orch.yaml": "train_dataset: { dataset_path: none.jsonl }\nmax_steps: 1\n",
        "run_d/control/token": "run_d 1 0\n",
        "run_d/broadcast/step_0/STABLE": "",
      })
      const { code, stdout, stderr } = await effect(["orchestrate", folder, "--json", "--quiet"])
      assert.strictEqual(code, 1, stderr)
      const reason = readFileSync(join(folder, "run_d/control/evicted.txt"), "utf8").trim()
      assert.match(
        reason,
        /^its orchestrator failed: .*run_d\/configs: train_dataset: none\.jsonl: there is no such file/,
      )
      assert.deepStrictEqual(JSON.parse(stdout).at(-1), { run: "run_d", ended: "Evicted", reason })
      assert.include(stderr, `run_d: ended: ${reason}\n`)
      assert.match(stderr.trim().split("\n").at(-1) ?? "", /evicted, because the orchestrator failed: run_d$/)
      assert.isFalse(existsSync(join(folder, "run_a/control/evicted.txt")))
    }))

  it("refuses a run that another process plays, and takes the place of one that was killed", () =>
    withFolder(async (folder) => {
      const lock = join(folder, "run_d/control/player.lock")
      const run = {
        "config.yaml": config("outside"),
        "run_d/configs/orch.yaml": "train_dataset: { dataset_path: none.jsonl }\nmax_steps: 1\n",
        "run_d/control/token": "run_d 1 0\n",
        "run_d/broadcast/step_0/STABLE": "",
      }
      const other = ownerName(process.ppid)
      put(folder, { ...run, "run_d/control/player.lock": other })
      const refused = await effect(["orchestrate", folder, "--quiet"])
      assert.strictEqual(refused.code, 1)
      const remedy = `stop it, or play other runs with --run; if it no longer exists, remove ${lock}`
      assert.include(refused.stderr, `run_d: ${other} plays this run already: ${remedy}\n`)
      assert.strictEqual(readFileSync(lock, "utf8"), other)
      assert.isFalse(existsSync(join(folder, "run_d/control/evicted.txt")))
      put(folder, { "run_d/control/player.lock": ownerName(2147483646) })
      assert.include((await effect(["orchestrate", folder, "--quiet"])).stderr, "none.jsonl: there is no such file")
      assert.isFalse(existsSync(lock))
    }))

  it("names what is wrong with its arguments", () =>
    withFolder(async (folder) => {
      const wrong = async (...words: ReadonlyArray<string>) => {
        const { code, stderr } = await effect(["orchestrate", ...words], folder)
        assert.isAbove(code ?? 0, 0)
        assert.lengthOf(stderr.trim().split("\n"), 1, stderr)
        return stderr
      }
      assert.include(await wrong("none"), "none: there is no such folder")
      assert.include(await wrong("."), ".: expected the folder of a trainer (config.yaml with kind: multirun)")
      put(folder, endedRuns)
      assert.include(await wrong(".", "--run", "z"), "--run: there is no run z in")
      assert.include(await wrong(".", "--server", "gpu"), "expected an address that begins with http://")
      put(folder, { "config.yaml": config("inside") })
      assert.include(await wrong("."), "orchestrators: its trainer plays the tasks itself")
    }))
})
