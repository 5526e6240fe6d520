/**
 * Measures eight LoRA runs over one base model of ten million weights: in one trainer, in one trainer with a rank (a
 * process that trains) or with a thread of ONNX Runtime for each core, and in eight trainers at the same time with one run
 * each. All learn by GRPO to write
 * words backwards, and play with the newest weights. The settings suit the eight trainers: a micro-batch has as many
 * windows as a step has samples, and the engine a program for exactly these. Tokens are those of the trained samples,
 * after the start-up.
 *
 * Memory is the sum of the most that each process has held at any time. Set `EFFECT_RL_BENCH_BACKEND` to measure another
 * backend than `auto`, `EFFECT_RL_BENCH_STEPS` for longer trainings, and `EFFECT_RL_BENCH_ANSWER` for answers of another
 * number of tokens than 24: the longer they are, the more of the time is spent with generating, which gains most.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { availableParallelism, tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { LmDirectory, MultiRun } from "effect-rl"
import { platform } from "effect-rl/node"
import { openBaseModel } from "../../src/multirun/baseModel.ts"
import { onDisk } from "../../src/run/store/FileTree.ts"
import { defineBench } from "../Bench.ts"
import { measureTrainers } from "../multirun.ts"

const names = ["a", "b", "c", "d", "e", "f", "g", "h"]
const template =
  "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}"
const warmUp = 2
const steps = Number(process.env["EFFECT_RL_BENCH_STEPS"] ?? 8)
/** The tokens of an answer: the model is untrained, and nearly never ends an answer by itself. */
const answer = Number(process.env["EFFECT_RL_BENCH_ANSWER"] ?? 24)
/** The tokens of a window: a prompt and an answer. */
const width = answer + 24
const device = process.env["EFFECT_RL_BENCH_BACKEND"] ?? "auto"

const runOf = (name: string) => ({
  seed: names.indexOf(name) + 1,
  train_dataset: { type: "reverse_text", num_tasks: 1000, seed: names.indexOf(name) + 1, min_letters: 8 },
  objective: { type: "grpo" },
  max_steps: warmUp + steps,
  batch: { size: 8, group_size: 4 },
  sampling: { max_tokens: answer },
  max_async_level: 0,
})

/** The config of a trainer of some runs. */
const trainerOf = (path: string, runs: ReadonlyArray<string>, ranks: number) => ({
  kind: "multirun",
  model: { type: "folder", path },
  trainer: {
    max_runs: runs.length,
    ranks,
    rows: 8,
    width,
    block: width,
    lora: { rank: 8, alpha: 16 },
  },
  inference: {
    generating: [8, 16, 32, 64].filter((rows) => rows <= 8 * runs.length),
    reading: [2, 16].filter((rows) => rows <= 2 * runs.length),
  },
  broadcast: { keep: 1000 },
  runs: Object.fromEntries(runs.map((name) => [name, runOf(name)])),
})

const decode = Schema.decodeUnknownSync(MultiRun.MultiRunConfig)

const saveModel = (path: string) =>
  Effect.gen(function* () {
    const tokenizer = { alphabet: "abcdefghijklmnopqrstuvwxyz: ", template }
    const sizes = { hiddenSize: 320, intermediateSize: 864, layers: 8, heads: 5, maxPositions: Math.max(144, width) }
    const { model } = decode({ kind: "multirun", model: { type: "scratch", ...sizes, tokenizer }, runs: {} })
    const base = yield* openBaseModel(model, { baseDir: ".", seed: 1 })
    yield* LmDirectory.save(yield* onDisk(path), "model", base)
  }).pipe(Effect.provide(platform), Effect.runPromise)

export default defineBench({
  name: "eight-runs",
  unit: "times",
  higherIsBetter: true,
  about: "Tokens a second of eight LoRA runs in one trainer, compared with those of eight trainers at the same time",
  run: async () => {
    const folder = mkdtempSync(join(tmpdir(), "effect-rl-bench-"))
    try {
      await saveModel(folder)
      const measure = (name: string, groups: ReadonlyArray<ReadonlyArray<string>>, { ranks = 1, threads = 1 } = {}) => {
        mkdirSync(join(folder, name))
        const configs = groups.map((runs) => trainerOf(join(folder, "model"), runs, ranks))
        return measureTrainers(configs, { folder: join(folder, name), backend: device, threads, warmUp })
      }
      const one = await measure("one", [names])
      const ranks = await measure("ranks", [names], { ranks: availableParallelism() })
      // Other backends than those of ONNX Runtime use one thread.
      const isThreaded = device !== "wasm" && device !== "reference"
      const threaded = isThreaded ? await measure("threads", [names], { threads: availableParallelism() }) : one
      const eight = await measure(
        "eight",
        names.map((name) => [name]),
      )
      const megabytes = (bytes: number): number => bytes / 1e6
      return {
        value: one.trainedASecond / eight.trainedASecond,
        details: {
          "one trainer, tokens/s": one.trainedASecond,
          "of them generated": one.generatedASecond,
          "eight trainers, tokens/s": eight.trainedASecond,
          "of them generated there": eight.generatedASecond,
          "one trainer, tokens/s of a core": one.trainedACoreSecond,
          "eight trainers, tokens/s of a core": eight.trainedACoreSecond,
          "with a rank for each core": ranks.trainedASecond / eight.trainedASecond,
          "its tokens/s": ranks.trainedASecond,
          "with a thread for each core": threaded.trainedASecond / eight.trainedASecond,
          "tokens/s with threads": threaded.trainedASecond,
          "its share of the memory": ranks.residentBytes / eight.residentBytes,
          "one trainer, MB": megabytes(one.residentBytes),
          "eight trainers, MB": megabytes(eight.residentBytes),
          "share of the memory": one.residentBytes / eight.residentBytes,
          "share of the memory by PSS": one.proportionalBytes / eight.proportionalBytes,
          "one trainer, s": one.seconds,
          "eight trainers, s": eight.seconds,
        },
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
})
