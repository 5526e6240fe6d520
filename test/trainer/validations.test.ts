import { readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { runsIn } from "../command/cli/crash.ts"
import { effect, withFolder, write } from "../command/cli/effect.ts"

/** A run whose validation asks for texts of 8 letters, but whose answers have at most 2 tokens. */
const run = `
    train_dataset: { type: reverse_text, num_tasks: 8, alphabet: 2 },
    validation_dataset: { type: reverse_text, num_tasks: 4, alphabet: 2, min_letters: 8 },
    validation: { every: 1 },
    max_steps: 1,
    batch: { size: 4, group_size: 4 },
    sampling: { max_tokens: 2 },
    max_async_level: 0,
`

/** Two runs of a tiny model, of which one has a seed. */
const config = `
kind: multirun
model: { type: scratch, hidden_size: 8, layers: 1, heads: 2, max_positions: 64, tokenizer: { alphabet: "abQ: revs" } }
trainer: { max_runs: 2, rows: 2, width: 64, block: 16, lora: { rank: 2, alpha: 2 } }
inference: { generating: [8], reading: [8], page_size: 8 }
broadcast: { keep: 0 }
runs:
  without: {${run}  }
  with: { seed: 3,${run}  }
`

describe("MultiRun", () => {
  it("gives its seed to runs that have none, and validates by the scores of the env alone", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "many.yaml", config)
      const results = join(folder, "results")
      const { code, stderr } = await effect(["run", file, "--seed", "7", "--results-dir", results, "--quiet"])
      assert.strictEqual(code, 0, stderr)
      const [run] = runsIn(results)
      const read = (path: string): string => readFileSync(join(run, path), "utf8")
      const seedOf = (name: string): unknown => parse(read(`${name}/configs/orch.yaml`)).seed
      assert.deepStrictEqual([seedOf("run_without"), seedOf("run_with")], [7, 3])
      // Both runs are in each validation. Without an answer, the reward is negative, but the env's score is 0.
      const validations: ReadonlyArray<{ step: number; returns: ReadonlyArray<number> }> = JSON.parse(
        read("return.json"),
      )
      assert.deepStrictEqual(
        validations.map(({ step, returns }) => ({ step, returns })),
        [0, 1].map((step) => ({ step, returns: Array.from({ length: 8 }, () => 0) })),
      )
    }),
  )
})
