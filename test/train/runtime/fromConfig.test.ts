import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path } from "effect"
import { FetchHttpClient } from "effect/http"
import { RunStore } from "../../../src/experiment/RunStore.ts"
import { Recorder } from "../../../src/record/Recorder.ts"
import { RunOptions } from "../../../src/train/RunOptions.ts"
import * as Runtime from "../../../src/train/runtime/Runtime.ts"

const layers = Layer.mergeAll(
  RunStore.memory().layer,
  Recorder.layerSilent,
  FileSystem.layerNoop({}),
  Path.layer,
  FetchHttpClient.layer,
)

describe("a run's own config", () => {
  it.effect("that has something in the place of a secret leaves the secret as the file has it", () =>
    Effect.gen(function* () {
      const { message } = yield* Effect.flip(
        Runtime.fromConfig({ agent: { lm_config: { model: "vllm:m", base_url: "ftp://file?key=k-1" } } }).pipe(
          Effect.provideService(RunOptions, {
            source: "experiment.yaml",
            name: "run",
            overrides: [
              { path: "agent.lmConfig.baseUrl", value: "ftp://run?key=<redacted>", source: "config.yaml" },
              { path: "agent.lmConfig.apiKey", value: "<redacted>", source: "config.yaml" },
            ],
          }),
        ),
      )
      // It is the file's address that can't be.
      assert.include(message, 'found "ftp://file"')
    }).pipe(Effect.provide(layers)),
  )
})
