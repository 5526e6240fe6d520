import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { effect, resultOf, root } from "../effect.ts"

const model = join(root, "test/fixtures/hugging-face/llama")

/** A file in prime-rl's keys, with tasks of ours. */
const file = `max_steps = 2
seq_len = 80
batch_size = 8
group_size = 4
max_async_level = 0

[model]
name = ${JSON.stringify(model)}
lora = { rank = 2, alpha = 4 }

[wandb]
project = "words"

[sampling]
max_tokens = 8

[[env]]
id = "reverse-text"

[train_dataset]
type = "reverse_text"
num_tasks = 20
scoring = "similarity"

[batch]
replaced_groups = 2
filters = ["not_truncated"]

[objective]
type = "scalerl"
`

describe("effect run orch.toml", () => {
  it("trains the run that prime-rl's file describes, and says what it leaves out", async () => {
    const folder = mkdtempSync(join(tmpdir(), "orch-"))
    try {
      const run = async (text: string) => {
        writeFileSync(join(folder, "orch.toml"), text)
        return effect(["run", "orch.toml", "--results-dir", "out", "--backend", "wasm", "--json", "--quiet"], folder)
      }
      const wrong = await run(`${file}\n[buffer]\neasy_threshold = 1\n`)
      assert.strictEqual(wrong.code, 2)
      assert.match(wrong.stderr, /^effect: orch\.toml:33: buffer\.easy_threshold: write batch = /)
      assert.match((await run("batch_size = = 3\n[model]")).stderr, /^effect: orch\.toml:1: expected TOML: /)
      const misfit = await run(file.replace("rank = 2", "rank = 5000"))
      assert.match(misfit.stderr, /orch\.toml:9: .*rank: expected a value between 1 and 4096/)

      const outcome = await run(file)
      const { code, stderr } = outcome
      assert.strictEqual(code, 0, stderr)
      const directory = join(folder, resultOf(outcome).runDir)
      const log = readFileSync(join(directory, "run.log"), "utf8")
      for (const key of ["orch.toml:11: wandb: left out", "orch.toml:17: env: left out"]) assert.include(log, key)
      const own = join(directory, "run_orch")
      assert.includeMembers(readdirSync(join(own, "rollouts")), ["step_0", "step_1"])
      const { metrics } = JSON.parse(readFileSync(join(own, "rollouts/step_0/report.json"), "utf8"))
      assert.property(metrics, "sampling/replaced_groups")
      assert.property(metrics, "sampling/filtered_not_truncated")
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
