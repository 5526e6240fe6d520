import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Schema } from "effect"
import { assert, describe, it } from "vitest"
import { toCamelCase } from "../../src/base/config/Config.ts"
import * as Safetensors from "../../src/base/formats/safetensors.ts"
import { stream } from "../../src/base/rng/Rng.ts"
import * as LmDirectory from "../../src/decoder/huggingFace/LmDirectory.ts"
import * as Decoder from "../../src/decoder/networks/Decoder.ts"
import { onDisk } from "../../src/run/store/FileTree.ts"
import { modelToSave, openBaseModel } from "../../src/trainer/baseModel.ts"
import { MultiRunConfig } from "../../src/trainer/config/MultiRunConfig.ts"
import { configOf, interruptedAndResumed, resultsFolder, runConfig, trained } from "./smallTraining.ts"

const experts = { count: 5, perToken: 2, units: 6, normalised: true }

/** Saves a small mixture of experts with the tokens of the small training, and returns its folder. */
const savedExperts = Effect.fnUntraced(function* (folder: string) {
  const { model } = configOf({})
  const settings = Schema.decodeUnknownSync(MultiRunConfig.fields.model)(toCamelCase(model))
  const base = yield* openBaseModel(settings, { baseDir: folder, seed: 1 })
  const decoder: Decoder.DecoderConfig = { ...base.decoder, architecture: "qwen3_moe", queryKeyNorm: "head", experts }
  const values = Decoder.initialValues(Decoder.parametersOf(decoder, 0.3), stream(1, "experts"))
  yield* LmDirectory.save(yield* onDisk(folder), "experts", modelToSave({ ...base, decoder, weights: values }))
  return join(folder, "experts")
}, Effect.provide(NodeServices.layer))

describe("a training with trainer.enable_router_replay", () => {
  it("trains on the experts that sampled, and resumes with the same digest", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const resultsDir = yield* resultsFolder
        const path = yield* savedExperts(resultsDir)
        const run = runConfig(3, { objective: { type: "grpo", kl: { coefficient: 0 } } })
        const settings = configOf({ a: run }, { trainer: { enable_router_replay: true, lora: null } })
        const replaying = { ...settings, model: { type: "folder", path } }
        const whole = yield* trained(replaying, { resultsDir })
        const samplesAt = (step: number) =>
          Safetensors.decode(readFileSync(join(whole.runDir, `run_a/rollouts/step_${step}/samples.safetensors`)))
        // The first step imitates answers, which no model has sampled.
        assert.notProperty(samplesAt(0), "routed_experts")
        const { routed_experts: recorded, tokens } = samplesAt(2)
        assert.deepStrictEqual(recorded.shape, [tokens.data.length - 8, 1, experts.perToken])
        const resumed = yield* interruptedAndResumed(replaying, resultsDir, 2)
        assert.strictEqual(resumed.digest, whole.digest)
        // With the weights that sampled, the routers would have chosen the same experts. (Those of a reference model would not.)
        const choosing = { ...replaying, trainer: { ...replaying.trainer, enable_router_replay: false } }
        assert.strictEqual((yield* trained(choosing, { resultsDir })).digest, whole.digest)
      }).pipe(Effect.scoped),
    ))

  it("is refused for a model without experts", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const settings = configOf({ a: runConfig(3) }, { trainer: { enable_router_replay: true } })
        const { message } = yield* Effect.flip(trained(settings, { resultsDir: "never" }))
        assert.include(message, "trainer.enable_router_replay: expected false, because the model has no experts")
      }),
    ))
})
