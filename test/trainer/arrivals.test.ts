import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { stringify } from "yaml"
import * as Layout from "../../src/trainer/Layout.ts"
import { textPrograms } from "../../src/node.ts"
import { configOf, resultsFolder, runConfig, trained } from "./smallTraining.ts"

const write = (folder: string, path: string, text: string): void => {
  mkdirSync(join(folder, path, ".."), { recursive: true })
  writeFileSync(join(folder, path), text)
}

describe("a run folder that is put into a trainer's folder", () => {
  it.live("starts no program that its config names, and the trainer trains the others", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const mark = join(resultsDir, "mark")
        const evil = {
          ...runConfig(2),
          train_dataset: { type: "foreign", id: "x", command: ["touch", mark], num_tasks: 4 },
        }
        let trainer = ""
        const error = yield* trained(configOf({ a: runConfig(1) }, { trainer: { max_runs: 2 } }), {
          resultsDir,
          onOpen: (directory) => {
            trainer = directory
            write(directory, `run_evil/${Layout.configs}/orch.yaml`, stringify(evil))
          },
        }).pipe(Effect.provide(textPrograms), Effect.flip)
        assert.isFalse(existsSync(mark))
        const refused = /train_dataset\.command: this would start \["touch",".*mark"\], which is not permitted/
        assert.match(error.message, refused)
        assert.include(error.message, "the other runs are finished")
        assert.match(readFileSync(join(trainer, "run_evil", Layout.configProblem), "utf8"), refused)
      }),
    ),
  )
})
