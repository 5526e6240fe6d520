import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { stringify } from "yaml"
import type { Plain } from "../../src/base/config/Config.ts"
import * as Layout from "../../src/trainer/Layout.ts"
import { configOf, resultsFolder, runConfig, runFiles, trained } from "./smallTraining.ts"

/** A run that only imitates, for one step. */
const short = (more: Plain = {}) => runConfig(1, { max_steps: 1, ...more })

/** Settings that don't fit the trainer, by the name of a run, each with what is said of it. */
const misfits: Readonly<Record<string, readonly [Plain, string]>> = {
  alone: [
    { batch: { size: 4, group_size: 1 } },
    "batch.group_size: expected at least 2 for grpo, which compares the answers of a group",
  ],
  long: [{ sampling: { max_tokens: 100_000 } }, "sampling.max_tokens: expected less than 24"],
  wide: [{ lora: { rank: 4 } }, "lora.rank: expected at most trainer.lora.rank (2), found 4"],
}

describe("a run that is added to the folder of a trainer", () => {
  it("is refused as in a config if it does not fit the trainer, and warned of letters; the others are trained", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const added = {
          ...Object.fromEntries(Object.entries(misfits).map(([name, [settings]]) => [name, short(settings)])),
          sums: short({ validation_dataset: { type: "arithmetic", num_tasks: 4 }, validation: { every: 0 } }),
        }
        const warnings: Array<string> = []
        let runDir = ""
        const { message } = yield* trained(configOf({ a: short() }), {
          resultsDir: yield* resultsFolder,
          onOpen: (directory) => {
            runDir = directory
            for (const [name, config] of Object.entries(added)) {
              mkdirSync(join(directory, `run_${name}`, Layout.configs), { recursive: true })
              writeFileSync(join(directory, `run_${name}`, Layout.configFiles.yaml), stringify(config))
            }
          },
          onEvent: (event) => void (event._tag === "Warning" && warnings.push(event.message)),
        }).pipe(Effect.flip)
        assert.match(message, /; the other runs are finished, in /)
        for (const [name, [, problem]] of Object.entries(misfits)) {
          const { textOf, evicted } = runFiles(runDir, name)
          const expected = `${join(runDir, `run_${name}`, Layout.configs)}: ${problem}`
          assert.include(textOf(Layout.configProblem), expected)
          assert.include(message, expected)
          assert.isUndefined(evicted())
          assert.isFalse(existsSync(join(runDir, `run_${name}`, Layout.rollouts)))
        }
        for (const name of ["a", "sums"]) assert.isTrue(existsSync(join(runDir, `run_${name}`, "return.json")), name)
        assert.match(warnings.join("\n"), /^run_sums: model\.tokenizer\.alphabet lacks .*"\?"/m)
        assert.notMatch(warnings.join("\n"), /run.a: model/)
      }).pipe(Effect.scoped),
    ))
})
