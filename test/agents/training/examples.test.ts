import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { parse } from "yaml"
import { camelCase } from "../../../src/base/config/Config.ts"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder } from "../../../src/run/record/Recorder.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import * as Runtime from "../../../src/agents/training/Runtime.ts"
import { disk } from "../../run/store/disk.ts"

const codebook: unknown = parse(readFileSync("examples/codebook.yaml", "utf8"))

/** The example with a setting changed, as `--set` does. */
const run = (...settings: ReadonlyArray<string>) =>
  Runtime.fromConfig(codebook, { baseDir: "examples" }).pipe(
    Effect.provideService(RunOptions, {
      source: "codebook.yaml",
      name: "codebook",
      overrides: settings.map((setting) => {
        const [key, value] = setting.split("=")
        return { path: camelCase(key), value: JSON.parse(value), source: "--set" }
      }),
    }),
    Effect.provide(Layer.mergeAll(RunStore.memory().layer, Recorder.layerSilent, disk, FetchHttpClient.layer)),
  )

describe("examples of agents that talk", () => {
  it.effect("that documents show with another setting come to something else by it", () =>
    Effect.gen(function* () {
      const commands = readFileSync("docs/agents.md", "utf8").matchAll(
        /^npx effect run examples\/codebook\.yaml (.*)$/gm,
      )
      const plain = yield* run()
      let shown = 0
      for (const [, args] of commands) {
        const settings = [...args.matchAll(/--set (\S+)/g)].map(([, setting]) => setting)
        if (settings.length === 0) continue
        shown++
        const { digest, validation } = yield* run(...settings)
        assert.notStrictEqual(digest, plain.digest)
        const [, changed, usual] = /: ([\d.]+), not ([\d.]+)$/.exec(args) ?? []
        assert.deepStrictEqual([validation?.meanReturn, plain.validation?.meanReturn], [Number(changed), Number(usual)])
      }
      assert.isAbove(shown, 0)
    }),
  )

  it("ask other questions in a validation than in the training", () => {
    const questions = (file: string): ReadonlyArray<string> =>
      readFileSync(`examples/agents/${file}`, "utf8")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).question)
    const config = readFileSync("examples/agents/qa.yaml", "utf8")
    const [train, validation] = [...config.matchAll(/dataset_path: (\S+)/g)].map(([, file]) => questions(file))
    assert.strictEqual(new Set([...train, ...validation]).size, train.length + validation.length)
  })
})
