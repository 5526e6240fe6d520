import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Schema } from "effect"
import { assert, describe, it } from "vitest"
import { type Plain, toCamelCase } from "../../../src/base/config/Config.ts"
import * as Safetensors from "../../../src/base/formats/safetensors.ts"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import type { TrainingSample } from "../../../src/trainer/batches/TrainingSample.ts"
import { openBaseModel } from "../../../src/trainer/baseModel.ts"
import { MultiRunConfig } from "../../../src/trainer/config/MultiRunConfig.ts"
import { compileFeatures } from "../../../src/trainer/teacher/compileScorer.ts"
import { configOf, interruptedAndResumed, resultsFolder, runConfig, runFiles, trained } from "../smallTraining.ts"

const arraysOf = (runDir: string, run: string, step: number, file: string) =>
  Safetensors.decode(readFileSync(join(runDir, `run_${run}`, `rollouts/step_${step}`, file)))

/** The model of the small training. */
const base = Effect.gen(function* () {
  const model = Schema.decodeUnknownSync(MultiRunConfig.fields.model)(toCamelCase(configOf({}).model))
  const { decoder, weights } = yield* openBaseModel(model, { baseDir: ".", seed: 1 })
  return { config: decoder, weights }
}).pipe(Effect.provide(NodeServices.layer))

const withCritic = (seed: number, more: Plain = {}) =>
  runConfig(seed, {
    objective: { type: "dapo", clip_high: 0.2 },
    critic: { lr: 0.02 },
    batch: { size: 8, group_size: 1 },
    max_steps: 5,
    checkpoint: { every: 2 },
    ...more,
  })

/** A sample of these tokens, of which the first one is the prompt. */
const sampleOf = (id: string, ...tokens: ReadonlyArray<number>): TrainingSample => ({
  id,
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(tokens, (_, at) => Math.min(1, at)),
  logprobs: new Float32Array(tokens.length),
  advantages: new Float32Array(tokens.length),
  temperature: 1,
})

describe("a critic in a training", () => {
  it("reads the hidden states of contexts, also of prompts that samples share", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const { config, weights } = yield* base
        const shape = { rows: 2, width: 16, block: 8 }
        const { features, size } = yield* compileFeatures(shape, { config, weights, adapters: null })
        const of = (...samples: ReadonlyArray<TrainingSample>) => features(samples, undefined)
        const all = yield* of(sampleOf("a", 5, 6, 7), sampleOf("b", 5, 6, 8), sampleOf("c", 5, 9, 7))
        const at = (id: string, token: number) => all.get(id)?.before.slice((token - 1) * size, token * size)
        const alone = (yield* of(sampleOf("c", 5, 9, 7))).get("c")
        assert.deepStrictEqual(all.get("c"), alone, "samples beside it change nothing")
        assert.deepStrictEqual(at("a", 1), at("b", 1))
        assert.deepStrictEqual(at("a", 2), at("b", 2), "the token itself is not in its context")
        assert.deepStrictEqual(at("a", 1), at("c", 1))
        assert.notDeepEqual(at("a", 2), at("c", 2), "the token before is")
      }).pipe(Effect.scoped, Effect.provide(Wasm.layer)),
    ))

  it("gives each token an advantage of its own, for several runs, and resumes to the bit", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const config = configOf({ a: withCritic(1), b: withCritic(2, { objective: { type: "sapo" } }) })
        const whole = yield* trained(config, { resultsDir })
        const { runDir } = whole
        for (const run of ["a", "b"]) {
          const { mask, advantages } = arraysOf(runDir, run, 2, "samples.safetensors")
          const counted = Array.from(advantages.data, Number).filter((_, at) => mask.data[at] === 1)
          assert.closeTo(
            counted.reduce((sum, advantage) => sum + advantage, 0),
            0,
            1e-4,
          )
          assert.isAbove(new Set(counted).size, 8, "tokens of one answer differ, too")
          const { weights, updates } = arraysOf(runDir, run, 4, "critic.safetensors")
          assert.strictEqual(updates.data[0], 4 * 4)
          assert.isTrue(Array.from(weights.data, Number).some((weight) => weight !== 0))
          const report = JSON.parse(runFiles(runDir, run).textOf("rollouts/step_3/report.json") ?? "{}")
          assert.isNumber(report.metrics["sampling/value_loss"])
        }
        const resumed = yield* interruptedAndResumed(config, resultsDir, 5)
        assert.notStrictEqual(resumed.runDir, runDir)
        assert.strictEqual(resumed.digest, whole.digest)
        for (const run of ["a", "b"])
          assert.deepStrictEqual(
            arraysOf(resumed.runDir, run, 4, "critic.safetensors"),
            arraysOf(runDir, run, 4, "critic.safetensors"),
          )
      }).pipe(Effect.scoped),
    ))
})
