import { createRequire } from "node:module"
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Layer } from "effect"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { stringify } from "yaml"
import * as Wasm from "../../../src/tensor/backend/wasm.ts"
import { decode } from "../../../src/base/formats/safetensors.ts"
import { decoderEngine } from "../../../src/decoder/engine/openDecoder.ts"
import * as Adapter from "../../../src/decoder/huggingFace/Adapter.ts"
import * as LmDirectory from "../../../src/decoder/huggingFace/LmDirectory.ts"
import { onDisk } from "../../../src/run/store/FileTree.ts"
import { configOf, runConfig, validated } from "../../trainer/smallTraining.ts"
import { effect, resultOf, root, write } from "./effect.ts"

/** The reader of the npm package `safetensors`, which is somebody else's. It has no types. */
interface Reader {
  readonly metadata: ReadonlyMap<string, { readonly dtype: string; readonly shape: ReadonlyArray<number> }>
  readonly getTensor: (name: string) => Uint8Array
}
const { SafeTensor }: { readonly SafeTensor: new (bytes: Uint8Array) => Reader } = createRequire(import.meta.url)(
  "safetensors",
)

/** Opens a file with that reader. It knows no `__metadata__`, which files of Hugging Face have, so that is left out. */
const readerOf = (path: string): Reader => {
  const bytes = readFileSync(path)
  const start = 8 + Number(bytes.readBigUInt64LE(0))
  const { __metadata__: metadata, ...header } = JSON.parse(bytes.toString("utf8", 8, start))
  assert.deepStrictEqual(metadata, { format: "pt" })
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(8)
  length.writeBigUInt64LE(BigInt(json.length))
  return new SafeTensor(new Uint8Array(Buffer.concat([length, json, bytes.subarray(start)])))
}

let folder = ""
/** A trainer's folder with two runs. Run `letters` has an adapter and checkpoints of steps 2 and 3. */
let trainer = ""
let run = ""

/** A training of agents that ask a script. */
const echo = `
kind: agents
agent: { type: memoryless_agent, lm_config: { model: scripted:echo } }
train_dataset: { type: reverse_text, num_tasks: 6 }
`

/** Trains by the command, and returns the folder of the trainer. */
const trainedBy = async (name: string, config: unknown): Promise<string> => {
  const file = write(folder, `${name}.yaml`, stringify(config))
  const place = ["--results-dir", join(folder, "results"), "--name", name, "--backend", "wasm"]
  const outcome = await effect(["run", file, ...place, "--quiet", "--json"])
  assert.strictEqual(outcome.code, 0, outcome.stderr)
  return resultOf(outcome).runDir
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "models-"))
  const letters = runConfig(1, { checkpoint: { every: 2 }, ...validated })
  // A thread would load the whole library once more.
  const config = configOf({ letters, others: runConfig(2) })
  trainer = await trainedBy("adapters", { ...config, inference: { ...config.inference, own_thread: false } })
  run = join(trainer, "run_letters")
})

/** Makes the folder of a run that trains all weights, so long that some of its answers are right. */
const trainWhole = async (): Promise<string> => {
  const long = { max_steps: 40, supervised: { steps: 40, lr: 0.02 }, batch: { size: 32, group_size: 4 } }
  const saved = { ...validated, validation: { every: 20 }, checkpoint: { every: 20 }, sampling: { max_tokens: 6 } }
  const config = configOf({ words: runConfig(1, { ...long, ...saved }) }, { trainer: { lora: null } })
  return join(await trainedBy("whole", { ...config, broadcast: { keep: 1 } }), "run_words")
}

let trainedWhole: Promise<string> | undefined
/** The folder of that run, which the first test that needs it trains. */
const wholeRun = (): Promise<string> => (trainedWhole ??= trainWhole())

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Exports a model into a new folder, and returns the outcome and the folder. */
const exported = async (from: string, to: string, name: string, ...more: ReadonlyArray<string>) => {
  const out = join(folder, name)
  const outcome = await effect(["export", from, "--to", to, "--out", out, ...more])
  return { ...outcome, out }
}

/** Returns the log-probabilities of the likeliest tokens at each place of a greedy answer. */
const logprobsOf = (out: string, adapterFolder?: string) =>
  Effect.gen(function* () {
    const { decoder, tokenizer, weights } = yield* LmDirectory.open(yield* onDisk(out))
    const adapter =
      adapterFolder === undefined ? undefined : yield* Adapter.load(yield* onDisk(adapterFolder), ".", decoder)
    const model = { name: "base", decoder, tokenizer, weights: yield* weights.readAll, eosIds: [] }
    const engine = yield* decoderEngine(model, {
      slots: 1,
      adapters: adapter === undefined ? undefined : { slots: 1, shape: adapter },
    })
    if (adapter !== undefined) yield* engine.loadAdapter({ name: "adapter", step: 0, adapter })
    const { tokens } = yield* engine.generate({
      model: adapter === undefined ? "base" : "adapter",
      promptIds: tokenizer.encode("reverse abc"),
      sampling: { temperature: 0, maxTokens: 4, topLogprobs: 20 },
    })
    return tokens.flatMap(({ top }) => top).sort((a, b) => a.id - b.id)
  }).pipe(Effect.scoped, Effect.provide(Layer.merge(Wasm.layer, NodeServices.layer)), Effect.runPromise)

describe("effect export of a language model", () => {
  it("writes an adapter that other readers of peft's files can read", async () => {
    const { code, stdout, stderr, out } = await exported(run, "adapter", "adapter")
    assert.strictEqual(code, 0, stderr)
    assert.strictEqual(stdout, `${out}\n`)
    assert.sameMembers(readdirSync(out), ["adapter_config.json", "adapter_model.safetensors"])
    const config: unknown = JSON.parse(readFileSync(join(out, "adapter_config.json"), "utf8"))
    assert.deepInclude(config, {
      peft_type: "LORA",
      r: 2,
      lora_alpha: 4,
      base_model_name_or_path: join(trainer, "base"),
    })
    const reader = readerOf(join(out, "adapter_model.safetensors"))
    const saved = decode(readFileSync(join(run, "checkpoints/step_3/weights.safetensors")))
    assert.strictEqual(reader.metadata.size, Object.keys(saved).length)
    for (const [name, { shape, data }] of Object.entries(saved)) {
      const inFile = `base_model.model.${name}`
      assert.deepInclude(reader.metadata.get(inFile), { dtype: "F32", shape: [...shape] })
      assert.deepEqual(new Float32Array(reader.getTensor(inFile).slice().buffer), data)
    }
  })

  it("writes a model that gives the same probabilities as its base with the adapter", async () => {
    const adapter = await exported(run, "adapter", "adapter_2", "--step", "2")
    const merged = await exported(run, "model", "merged", "--step", "2")
    assert.strictEqual(merged.code, 0, merged.stderr)
    const expected = await logprobsOf(join(trainer, "base"), adapter.out)
    const found = await logprobsOf(merged.out)
    assert.deepStrictEqual(
      found.map(({ id }) => id),
      expected.map(({ id }) => id),
    )
    for (const [at, { logprob }] of expected.entries()) assert.closeTo(found[at].logprob, logprob, 1e-5)
    const base = await logprobsOf(join(trainer, "base"))
    assert.isTrue(base.some(({ logprob }, at) => Math.abs(logprob - expected[at].logprob) > 1e-3))
    const reader = readerOf(join(merged.out, "model.safetensors"))
    assert.deepInclude(reader.metadata.get("model.layers.0.self_attn.q_proj.weight"), { dtype: "F32", shape: [16, 16] })
    const again = await exported(merged.out, "model", "merged_again")
    assert.deepEqual(
      readFileSync(join(again.out, "model.safetensors")),
      readFileSync(join(merged.out, "model.safetensors")),
    )
  })

  it("writes the weights of a run that trains the whole model", { tags: "slow" }, async () => {
    const whole = await wholeRun()
    const weightsOf = (place: string) => decode(readFileSync(join(place, "model.safetensors")))
    const newest = await exported(whole, "model", "whole_model")
    assert.strictEqual(newest.code, 0, newest.stderr)
    assert.deepEqual(weightsOf(newest.out), weightsOf(join(whole, "broadcast/step_40")))
    const earlier = await exported(whole, "model", "whole_20", "--step", "20")
    assert.deepEqual(
      weightsOf(earlier.out),
      decode(readFileSync(join(whole, "checkpoints/step_20/weights.safetensors"))),
    )
  })

  it("says what can't be written, and replaces no files", async () => {
    const refused = async (...args: Parameters<typeof exported>) => {
      const { code, stderr } = await exported(...args)
      assert.notStrictEqual(code, 0)
      return stderr
    }
    assert.include(
      await refused(run, "model", "none", "--step", "9"),
      "it has no weights of step 9; expected one of 2, 3",
    )
    assert.include(await refused(join(trainer, "base"), "adapter", "none"), "has no adapter")
    assert.include(await refused(run, "model", "results"), "expected a new or empty folder")
    assert.include(await refused(trainer, "onnx", "none"), "--to adapter or model exports it")
    assert.notInclude(readdirSync(folder), "none")
  })
})

describe("a model in this process", () => {
  it("plays the example of the docs", { tags: "slow" }, async () => {
    const page = readFileSync(join(root, "docs/agents/models.md"), "utf8")
    const [, example = ""] = /```yaml\n(# An evaluation[^]*?)```/.exec(page) ?? []
    assert.include(example, "decoder:results/…/run_letters")
    const file = write(folder, "example.yaml", example.replace("results/…/run_letters", "here/run_letters"))
    symlinkSync(trainer, join(folder, "here"))
    const outcome = await effect(["eval", file, "--results-dir", join(folder, "results"), "--quiet", "--json"])
    assert.strictEqual(outcome.code, 0, outcome.stderr)
    const { runDir, episodes, failed } = resultOf(outcome)
    assert.deepStrictEqual({ episodes, failed }, { episodes: 100, failed: 0 })
    // The saved config names the folder in such a way that it can be run from another place.
    const again = await effect(["eval", join(runDir, "config.yaml"), "--results-dir", folder, "--quiet", "--json"], "/")
    assert.strictEqual(resultOf(again).digest, resultOf(outcome).digest)
  })
})

describe("a training of agents", () => {
  it("asks a model in this process, and is replayed from its folder", { tags: "slow" }, async () => {
    const whole = await wholeRun()
    const tasks = { type: "reverse_text", num_tasks: 6, max_letters: 3, scoring: "similarity" }
    const file = write(
      folder,
      "agents.yaml",
      stringify({
        kind: "agents",
        agent: {
          type: "memoryless_agent",
          lm_config: { model: `decoder:${relative(folder, whole)}`, temperature: 1, max_output_tokens: 6 },
        },
        train_dataset: { ...tasks, seed: 1 },
        runtime: { max_envs_to_visit: 6 },
      }),
    )
    const place = ["--results-dir", join(folder, "agents"), "--quiet", "--json"]
    const outcome = await effect(["run", file, ...place, "--backend", "wasm"])
    assert.strictEqual(outcome.code, 0, outcome.stderr)
    const again = await effect(["replay", resultOf(outcome).runDir, "--backend", "wasm", "--quiet", "--json"])
    assert.strictEqual(again.code, 0, again.stderr)
    const { same, lines }: { readonly [key: string]: unknown } = resultOf(again)
    assert.deepStrictEqual({ same, lines }, { same: true, lines: 6 })
    const other = await effect(["run", write(folder, "echo.yaml", echo), ...place, "--backend", "wasm"])
    assert.include(
      other.stderr,
      "--backend wasm only works with reinforcement learning and with models in this process",
    )
    const ranks = await effect(["run", join(folder, "echo.yaml"), ...place, "--ranks", "2"])
    assert.deepStrictEqual(
      [ranks.code, ranks.stderr],
      [2, "effect: --ranks only works with reinforcement learning and with multi-run trainers\n"],
    )
  })
})

describe("effect eval of a language model's run", () => {
  const scoresOf = (whole: string, step: number): ReadonlyArray<number> => {
    const saved: ReadonlyArray<{ readonly step: number; readonly returns: ReadonlyArray<number> }> = JSON.parse(
      readFileSync(join(dirname(whole), "return.json"), "utf8"),
    )
    return saved.find((one) => one.step === step)?.returns ?? []
  }
  const evaluated = async (whole: string, ...args: ReadonlyArray<string>) => {
    const place = ["--results-dir", join(folder, "results"), "--backend", "wasm", "--quiet", "--json"]
    const outcome = await effect(["eval", dirname(whole), ...place, ...args])
    assert.strictEqual(outcome.code, 0, outcome.stderr)
    const { runDir } = resultOf(outcome)
    const rows: ReadonlyArray<{ readonly scores: { readonly score: number } }> = readFileSync(
      join(runDir, "episodes.jsonl"),
      "utf8",
    )
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    return { runDir, scores: rows.map(({ scores }) => scores.score) }
  }

  it("gives the scores of the run's validations", { tags: "slow" }, async () => {
    const whole = await wholeRun()
    for (const step of [20, 40]) {
      const { scores, runDir } = await evaluated(whole, "--step", String(step))
      assert.lengthOf(scores, 4)
      assert.deepStrictEqual(scores, scoresOf(whole, step))
      assert.include(
        readFileSync(join(runDir, "config.yaml"), "utf8"),
        `decoder:${whole}/${step === 20 ? "checkpoints" : "broadcast"}/step_${step}`,
      )
    }
    assert.isTrue(scoresOf(whole, 40).some((score) => score > 0))
  })

  it("plays other tasks", { tags: "slow" }, async () => {
    const whole = await wholeRun()
    assert.lengthOf((await evaluated(whole, "--episodes", "3")).scores, 3)
    assert.lengthOf((await evaluated(whole, "--set", "dataset.num_tasks=7")).scores, 7)
    const sorting = ["dataset.type=sort_text", "dataset.num_tasks=2", "dataset.max_letters=2"]
    assert.lengthOf((await evaluated(whole, ...sorting.flatMap((setting) => ["--set", setting]))).scores, 2)
    for (const [setting, message] of [
      ["validation_dataset.num_tasks=3", "a setting of the training; the evaluation has dataset.num_tasks"],
      ["sampling.temperature=1", "a setting of the training; the evaluation has agent.lm_config.temperature"],
      ["dataset.num_task=3", 'effect: --set: unknown key "dataset.num_task"; did you mean "dataset.num_tasks"?'],
    ]) {
      const { code, stderr } = await effect(["eval", dirname(whole), "--set", setting, "--results-dir", folder])
      assert.strictEqual(code, 2)
      assert.include(stderr, message)
    }
    const outcome = await effect(["eval", trainer, "--render"])
    assert.deepStrictEqual(
      [outcome.code, outcome.stderr],
      [2, "effect: --render only works with the run of a policy\n"],
    )
  })
})

describe("effect replay of a trainer", () => {
  const replayed = async (of: string, ...args: ReadonlyArray<string>) =>
    effect(["replay", of, "--backend", "wasm", "--quiet", "--json", ...args])
  const digestOf = (of: string): unknown => JSON.parse(readFileSync(join(of, "metrics.json"), "utf8")).digest

  it("trains one run alone, or all together, and finds the same", { tags: "slow" }, async () => {
    for (const replayedRun of [run, trainer]) {
      const outcome = await replayed(replayedRun)
      assert.strictEqual(outcome.code, 0, outcome.stderr)
      const { same, lines, digest }: { readonly [key: string]: unknown } = resultOf(outcome)
      assert.isTrue(same)
      assert.isAbove(Number(lines), 10)
      assert.deepStrictEqual(digest, { then: digestOf(replayedRun), now: digestOf(replayedRun) })
    }
  })

  it("names the first score that differs", { tags: "slow" }, async () => {
    const file = join(run, "scores/val/3_seen_episodes_scores.jsonl")
    const text = readFileSync(file, "utf8")
    writeFileSync(file, text.replace(/"score":[\d.]+/, '"score":7'))
    const outcome = await replayed(run)
    writeFileSync(file, text)
    assert.strictEqual(outcome.code, 1)
    assert.match(
      outcome.stderr,
      /run_letters\/scores\/val\/3_seen_episodes_scores\.jsonl, line 1, step \S+: score was 7 and is 0/,
    )
    const wrong = await replayed(run, "--episode", "1")
    assert.include(wrong.stderr, "--episode does not work with runs of a language model's trainer")
  })
})
