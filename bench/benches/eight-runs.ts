/**
 * Measures eight LoRA runs over one base model of ten million weights: in one trainer, whose engine and reference have threads of
 * their own; in one trainer that does all in one thread; in one trainer with a rank (a process that trains) for each core; and
 * in eight trainers at the same time with one run each. All learn by GRPO to write words backwards. Their weights may be as old
 * as `max_async_level` allows by default; one trainer and eight trainers are also measured with the newest weights for each
 * answer (level 0), where a run generates only while it is not trained. The settings suit the eight trainers: their micro-batches
 * leave little padding, and the engine has a program for exactly the samples of a step. Tokens are those of the trained
 * samples, while all runs are at work: after the start-up, and long before the first run ends. One trainer and eight trainers
 * are measured in turn, three times each, and the bench reports the pair with the median ratio.
 *
 * Generating gains most from a shared trainer, so the length of the answers matters: one bench has answers of at most 24 tokens, the
 * other of at most 96, after prompts of about 20. The untrained model ends many answers sooner, so the longer ones have 40
 * tokens on average.
 *
 * Memory is the sum of the most that each process has held at any time. Set `EFFECT_RL_BENCH_BACKEND` to measure another
 * backend than `auto`, and `EFFECT_RL_BENCH_STEPS` for longer measurements.
 */
import { mkdirSync } from "node:fs"
import { availableParallelism } from "node:os"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import { LmDirectory, MultiRun } from "effect-rl"
import { platform } from "effect-rl/node"
import { openBaseModel } from "../../src/trainer/baseModel.ts"
import { onDisk } from "../../src/run/store/FileTree.ts"
import { defineBench } from "../Bench.ts"
import { temporaryFolder } from "../measuring.ts"
import { type Length, type Load, measureTrainers } from "../multirun.ts"

const names = ["a", "b", "c", "d", "e", "f", "g", "h"]
const template =
  "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}"
const length: Length = { warmUp: 3, steps: Number(process.env["EFFECT_RL_BENCH_STEPS"] ?? 6) }
const pairs = 3
const device = process.env["EFFECT_RL_BENCH_BACKEND"] ?? "auto"

const runOf = (name: string, answer: number, isNewest: boolean) => ({
  seed: names.indexOf(name) + 1,
  train_dataset: { type: "reverse_text", num_tasks: 1000, seed: names.indexOf(name) + 1, min_letters: 8 },
  objective: { type: "grpo" },
  max_steps: 100_000,
  batch: { size: 8, group_size: 4 },
  sampling: { max_tokens: answer },
  ...(isNewest ? { max_async_level: 0 } : {}),
})

interface Variant {
  readonly ranks?: number
  /** Whether the engine and the reference have threads of their own; by default, if there are several runs. */
  readonly ownThreads?: boolean
  /** Whether answers come from the newest weights. */
  readonly isNewest?: boolean
}

/** The config of a trainer of some runs. The model is untrained. */
const trainerOf = (
  path: string,
  runs: ReadonlyArray<string>,
  answer: number,
  { ranks = 1, ownThreads = runs.length > 1, isNewest = false }: Variant,
) => ({
  kind: "multirun",
  model: { type: "folder", path },
  trainer: {
    max_runs: runs.length,
    ranks,
    ...windowsOf(answer),
    lora: { rank: 8, alpha: 16 },
    reference_thread: ownThreads && ranks === 1,
  },
  inference: {
    generating: [8, 16, 24, 32, 40, 48, 64].filter((rows) => rows <= 8 * runs.length),
    reading: [2, 4, 8, 16].filter((rows) => rows <= 2 * runs.length),
    own_thread: ownThreads,
  },
  broadcast: { keep: 1000 },
  runs: Object.fromEntries(runs.map((name) => [name, runOf(name, answer, isNewest)])),
})

/** The most tokens of a prompt. */
const prompt = 24

/**
 * The windows of a micro-batch. With short answers, each of the step's two groups has a window, in which its samples share
 * their prompt. With long ones that saves too few tokens to make up for attention in wide windows: the eight samples of a step
 * fill one or two micro-batches of four narrow windows, two short samples in some of them.
 */
const windowsOf = (answer: number) => {
  const [rows, width] = answer > 2 * prompt ? [4, prompt + answer] : [2, prompt + 4 * answer]
  return { rows, width, block: width }
}

const decode = Schema.decodeUnknownSync(MultiRun.MultiRunConfig)

const saveModel = (path: string, answer: number) =>
  Effect.gen(function* () {
    const tokenizer = { alphabet: "abcdefghijklmnopqrstuvwxyz: ", template }
    const maxPositions = Math.max(144, prompt + answer)
    const sizes = { hiddenSize: 320, intermediateSize: 864, layers: 8, heads: 5, maxPositions }
    const { model } = decode({ kind: "multirun", model: { type: "scratch", ...sizes, tokenizer }, runs: {} })
    const base = yield* openBaseModel(model, { baseDir: ".", seed: 1 })
    yield* LmDirectory.save(yield* onDisk(path), "model", base)
  }).pipe(Effect.provide(platform), Effect.runPromise)

interface Pair {
  readonly one: Load
  readonly eight: Load
}

/** Returns how many times as many tokens a second one trainer trained. */
const timesOf = ({ one, eight }: Pair): number => one.trainedASecond / eight.trainedASecond

const medianOf = (all: ReadonlyArray<Pair>): Pair =>
  all.toSorted((a, b) => timesOf(a) - timesOf(b))[Math.floor(all.length / 2)]

const bench = (name: string, answer: number) =>
  defineBench({
    name,
    unit: "times",
    higherIsBetter: true,
    about: `Tokens a second of eight LoRA runs in one trainer against eight trainers at once, with answers of at most ${answer} tokens`,
    run: async () => {
      const { folder, remove } = temporaryFolder()
      try {
        await saveModel(folder, answer)
        let measurements = 0
        const measure = (groups: ReadonlyArray<ReadonlyArray<string>>, variant: Variant = {}): Promise<Load> => {
          const own = join(folder, `measurement-${measurements++}`)
          mkdirSync(own)
          const configs = groups.map((runs) => trainerOf(join(folder, "model"), runs, answer, variant))
          return measureTrainers(configs, { ...length, folder: own, backend: device, runs: names.length })
        }
        const alone = names.map((name) => [name])
        const all: Array<Pair> = []
        for (let pair = 0; pair < pairs; pair++) all.push({ one: await measure([names]), eight: await measure(alone) })
        const { one, eight } = medianOf(all)
        const newest = await measure([names], { isNewest: true })
        const eightNewest = await measure(alone, { isNewest: true })
        const turns = await measure([names], { ownThreads: false })
        const ranks = await measure([names], { ranks: availableParallelism() })
        const megabytes = (bytes: number): number => bytes / 1e6
        return {
          value: timesOf({ one, eight }),
          details: {
            "one trainer, tokens/s": one.trainedASecond,
            "least and most times": all
              .map(timesOf)
              .sort((a, b) => a - b)
              .map((times) => times.toFixed(2))
              .join(", "),
            "of them generated": one.generatedASecond,
            "eight trainers, tokens/s": eight.trainedASecond,
            "of them generated there": eight.generatedASecond,
            "one trainer, tokens/s of a core": one.trainedACoreSecond,
            "eight trainers, tokens/s of a core": eight.trainedACoreSecond,
            "one trainer, MB": megabytes(one.residentBytes),
            "eight trainers, MB": megabytes(eight.residentBytes),
            "share of the memory": one.residentBytes / eight.residentBytes,
            "share of the memory by PSS": one.proportionalBytes / eight.proportionalBytes,
            "with the newest weights": newest.trainedASecond / eightNewest.trainedASecond,
            "one trainer, tokens/s then": newest.trainedASecond,
            "eight trainers, tokens/s then": eightNewest.trainedASecond,
            "one trainer, tokens/s of a core then": newest.trainedACoreSecond,
            "eight trainers, tokens/s of a core then": eightNewest.trainedACoreSecond,
            "with all in the trainer's thread": turns.trainedASecond / eight.trainedASecond,
            "its tokens/s of a core": turns.trainedACoreSecond,
            "its share of the memory": turns.residentBytes / eight.residentBytes,
            "with a rank for each core": ranks.trainedASecond / eight.trainedASecond,
            "its share of the memory then": ranks.residentBytes / eight.residentBytes,
            "one trainer, s": one.seconds,
            "eight trainers, s": eight.seconds,
          },
        }
      } finally {
        remove()
      }
    },
  })

export default [bench("eight-runs", 24), bench("eight-runs-long", 96)]
