import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { decode, isPlain, toCamelCase } from "../../src/base/config/Config.ts"
import { MultiRunConfig } from "../../src/trainer/config/MultiRunConfig.ts"
import { OrchestratorConfig } from "../../src/trainer/config/OrchestratorConfig.ts"
import { validator } from "../house/validators.ts"
import { effect, resultOf, root, withFolder } from "../command/cli/effect.ts"

const textOf = (name: string): string => readFileSync(join(root, "examples/trainer", name), "utf8")

/** The names of all examples of a multi-run trainer. */
const names = readdirSync(join(root, "examples/trainer"))
  .filter((file) => file.endsWith(".yaml") && /^kind: multirun$/m.test(textOf(file)))
  .map((file) => file.replace(".yaml", ""))

/**
 * The examples that learn from rewards in one process. `teacher/distillation.slow.test.ts` and `tinker/onServer.slow.test.ts`
 * train what the others use.
 */
const rewarded = ["calculator", "reverse-text", "tictactoe-self-play", "two-tasks"]

/** Decodes a config of a trainer and those of its runs. */
const decoded = (config: unknown) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const settings = yield* decode(MultiRunConfig, toCamelCase(config), { source: "example" })
      const runs = yield* Effect.forEach(Object.values(settings.runs), (run) =>
        decode(OrchestratorConfig, toCamelCase(run), { source: "example" }),
      )
      return { ...settings, runs }
    }),
  )

/** Shortens an example to a supervised step and one that learns from rewards, by few small answers. */
const shortened = (name: string): ReadonlyArray<string> => {
  const config: unknown = parse(textOf(`${name}.yaml`))
  const runs = isPlain(config) && isPlain(config.runs) ? Object.keys(config.runs) : []
  const ofRuns = runs.flatMap((run) =>
    ["max_steps=2", "supervised.steps=1", "supervised.schedule.warmup_steps=0", "batch.size=8", "batch.group_size=4"]
      .concat("validation_dataset.num_tasks=4", "validation.every=1")
      .map((setting) => `runs.${run}.${setting}`),
  )
  const hasRank = isPlain(config) && isPlain(config.trainer) && isPlain(config.trainer.lora)
  const ofTrainer = ["model.hidden_size=8", "model.layers=1", "model.heads=2", "trainer.rows=4"].concat(
    hasRank ? ["trainer.lora.rank=8"] : [],
  )
  const sizes = ["inference.generating=[16]", "inference.reading=[8]"]
  return [...ofTrainer, ...sizes, ...ofRuns].flatMap((setting) => ["--set", setting])
}

describe("examples of a multi-run trainer", () => {
  it("are the same in YAML and in code", async () => {
    const others = ["on-server", "teacher", "hints", "distillation", "self-distillation", "dpo"]
    assert.sameMembers(names, [...rewarded, ...others])
    for (const name of names) {
      const { config }: { readonly config: unknown } = await import(`../../examples/trainer/${name}.ts`)
      assert.deepStrictEqual(await decoded(config), await decoded(parse(textOf(`${name}.yaml`))), name)
    }
  })

  it("keep the schema, which completes them in an editor", { tags: "slow" }, () => {
    const ofTrainer = validator("multirun.schema.json")
    const ofRun = validator("orchestrator.schema.json")
    for (const name of names) {
      const config = parse(textOf(`${name}.yaml`))
      assert.isUndefined(ofTrainer(config), name)
      for (const run of Object.values(config.runs)) assert.isUndefined(ofRun(run), name)
    }
  })

  for (const name of rewarded) {
    it(`${name} runs, imitates and learns from rewards`, { tags: "slow" }, () =>
      withFolder(async (folder) => {
        const command = [
          "run",
          `examples/trainer/${name}.yaml`,
          "--results-dir",
          folder,
          "--backend",
          "wasm",
          "--json",
          "--quiet",
        ]
        const outcome = await effect([...command, "--csv", ...shortened(name)])
        assert.strictEqual(outcome.code, 0, outcome.stderr)
        const { runDir, steps, validation } = resultOf(outcome)
        const runs = Object.keys(parse(textOf(`${name}.yaml`)).runs)
        assert.strictEqual(steps, 2 * runs.length)
        assert.deepInclude(validation, { step: 2, episodes: 4 * runs.length })
        for (const run of runs) {
          const curve = readFileSync(join(runDir, `run_${run}`, "progress.csv"), "utf8")
          assert.deepStrictEqual(
            Array.from(curve.matchAll(/^(\d+),sampling\/(reward|samples),/gm), ([, step, figure]) => [step, figure]),
            [
              ["1", "samples"],
              ["2", "samples"],
              ["2", "reward"],
            ],
          )
        }
      }),
    )
  }
})
