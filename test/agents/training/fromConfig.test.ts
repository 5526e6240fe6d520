import { resolve } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Path } from "effect"
import { FetchHttpClient } from "effect/http"
import { RunStore } from "../../../src/run/store/RunStore.ts"
import { Recorder, type Sink } from "../../../src/run/record/Recorder.ts"
import { RunOptions } from "../../../src/run/RunOptions.ts"
import { disk } from "../../run/store/disk.ts"
import * as Runtime from "../../../src/agents/training/Runtime.ts"

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

describe("a key", () => {
  /** Returns the warnings for a config with this API key. */
  const warnings = (apiKey: string) =>
    Effect.gen(function* () {
      const said: Array<string> = []
      const sink: Sink = () =>
        Effect.succeed({
          emit: (events) =>
            Effect.sync(() => {
              for (const event of events) if (event._tag === "Warning") said.push(event.message)
            }),
          flush: Effect.void,
        })
      const override = { path: "agent.lm_config.api_key", value: apiKey, source: "--set" }
      yield* Runtime.fromConfig({
        train_dataset: { type: "codebook", num_tasks: 1 },
        agent: { lm_config: { model: "scripted:reader" } },
      }).pipe(
        Effect.provideService(RunOptions, { source: "experiment.yaml", name: "run", overrides: [override] }),
        Effect.provide(Recorder.layer(sink)),
        Effect.provide(layers),
      )
      return said
    })

  it.effect("that stands itself where others may read it is warned of, and not said", () =>
    Effect.gen(function* () {
      const [warning, ...more] = yield* warnings("sk-abcdef")
      assert.match(warning, /^--set: agent\.lm_config\.api_key: the key itself stands there.*\$\{MY_KEY\}$/)
      assert.notInclude(warning, "sk-abcdef")
      assert.lengthOf(more, 0)
      for (const fine of ["${MY_KEY}", "none", "<redacted>"]) assert.deepStrictEqual(yield* warnings(fine), [])
    }),
  )
})

describe("a config of the original", () => {
  const withFolder = Effect.flatMap(FileSystem.FileSystem, (fs) => fs.makeTempDirectoryScoped())

  it.effect("runs from its repository's root, whatever folder it is in, and with its nulls", () =>
    Effect.gen(function* () {
      const baseDir = yield* withFolder
      const config = {
        runtime: { max_envs_to_visit: 2, max_steps_per_episode: 1, resume_from: null, checkpoint_dir: null },
        train_dataset: {
          type: "qa",
          dataset_path: "examples/agents/qa.jsonl",
          split: null,
          instruction_template: null,
          max_samples: 2,
        },
        agent: {
          type: "reflexion_agent",
          lm_config: { model: "scripted:reader", stop_sequences: null },
          system_prompt: "{file:examples/agents/qa.jsonl}",
          memory_config: { _type: "history_list", max_length: 2000 },
          history_k: null,
          max_reflections_in_prompt: null,
          reflection_system_prompt: null,
          reflection_few_shot_examples: null,
        },
        output: null,
        seed: null,
      }
      const store = RunStore.memory()
      const result = yield* Runtime.fromConfig(config, { baseDir }).pipe(
        Effect.provide(Layer.mergeAll(store.layer, Recorder.layerSilent, disk, FetchHttpClient.layer)),
      )
      assert.strictEqual(result.trainEpisodes, 2)
      // The run's own config has absolute paths.
      const saved = [...store.files].find(([path]) => path.endsWith("/config.yaml"))?.[1]
      const text = new TextDecoder().decode(saved)
      assert.include(text, `dataset_path: ${resolve("examples/agents/qa.jsonl")}`)
      assert.include(text, "max_reflections_in_prompt: null")
      assert.include(text, "seed: 0\n")
    }).pipe(Effect.scoped, Effect.provide(disk)),
  )
})
