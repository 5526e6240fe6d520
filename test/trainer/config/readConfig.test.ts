import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { assert, describe, it } from "vitest"
import { parse } from "yaml"
import { runsIn } from "../../command/cli/crash.ts"
import { effect, root, withFolder, write } from "../../command/cli/effect.ts"

const right = `kind: multirun
model:
  type: scratch
  hidden_size: 8
  layers: 1
  heads: 2
  max_positions: 64
  tokenizer: { alphabet: "abQ: revs" }
trainer:
  rows: 2
  width: 64
  block: 16
  max_runs: 2
  lora: { rank: 2, alpha: 2 }
broadcast: { keep: 0 }
runs:
  my_letters:
    train_dataset: { type: reverse_text, num_tasks: 8, alphabet: 2 }
    optimiser: { lr: 0.01 }
    max_steps: 1
    batch: { size: 4, group_size: 4 }
    sampling: { max_tokens: 2 }
    max_async_level: 0
  Words2:
    train_dataset: { type: reverse_text, num_tasks: 8, alphabet: 2 }
    max_steps: 1
    batch: { size: 4, group_size: 4 }
    sampling: { max_tokens: 2 }
    max_async_level: 0
inference: { generating: [8], reading: [8], page_size: 8 }
`

/** Mistakes in the config: a text of it, the replacement, and the message without the path of the file. */
const mistakes: ReadonlyArray<readonly [text: string, wrong: string, message: string]> = [
  ["lr: 0.01", "lr: -1", ":19: runs.my_letters.optimiser.lr: expected a value greater than 0, found -1"],
  ["lr: 0.01", "lern_rate: 1", ':19: unknown key "runs.my_letters.optimiser.lern_rate"; known keys are type, lr'],
  [
    "max_steps: 1",
    "max_step: 1",
    ':20: unknown key "runs.my_letters.max_step"; did you mean "runs.my_letters.max_steps"?',
  ],
  [
    "size: 4,",
    "size: 6,",
    ":21: runs.my_letters.batch.group_size: expected a divisor of the batch's size, which is 6, found 4",
  ],
  [
    "type: reverse_text",
    "type: reverse_txt",
    ':18: runs.my_letters.train_dataset.type: unknown kind of data set "reverse_txt"; did you mean "reverse_text"?',
  ],
  [
    "type: reverse_text, num_tasks: 8, alphabet: 2",
    "dataset_path: none.jsonl",
    ":18: runs.my_letters.train_dataset: none.jsonl: there is no such file",
  ],
  ["train_dataset:", "validation_dataset:", ":17: runs.my_letters.train_dataset: expected the data set to learn from"],
  [
    "max_async_level: 0",
    "agent: { type: memoryless_agnt }",
    ':23: runs.my_letters.agent.type: unknown agent "memoryless_agnt"; did you mean "memoryless_agent"?',
  ],
  [
    "max_async_level: 0",
    "agent: { lm_config: { model: small } }",
    ":23: runs.my_letters.agent.lm_config: expected no model, as it is the one that is trained",
  ],
  [
    "max_async_level: 0",
    "lora: { rank: 3 }",
    ":23: runs.my_letters.lora.rank: expected at most trainer.lora.rank (2), found 3",
  ],
  [
    "max_tokens: 2",
    "max_tokens: 64",
    ":22: runs.my_letters.sampling.max_tokens: expected less than 64, the most tokens of a prompt with its answer",
  ],
  ["block: 16", "block: 15", ":12: trainer.block: expected a divisor of trainer.width (64), found 15"],
  [
    "block: 16",
    "block: 16\n  store: { type: redis, url: 'redis://user:secret@host' }",
    ":13: trainer.store.url: expected no password; put the whole address into REDIS_URL",
  ],
  [
    "block: 16",
    "block: 16\n  store: { type: redis, url: 'http://host' }",
    ":13: trainer.store.url: expected an address such as redis://127.0.0.1:6379",
  ],
  [
    "  lora: { rank: 2, alpha: 2 }\n",
    "",
    ":13: trainer.max_runs: expected 1, found 2; without trainer.lora, one run trains all weights of the model",
  ],
  [
    "  max_runs: 2\n  lora: { rank: 2, alpha: 2 }\n",
    "",
    ":14: runs: expected one run, found my_letters, Words2; with trainer.lora, many runs share the model",
  ],
  [
    "broadcast: { keep: 0 }",
    "broadcast: { keep: 0 }\norchestrators: outside",
    ":15: broadcast.keep: expected at least 1 with orchestrators: outside, because their server reads broadcasts; found 0",
  ],
  [
    "size: 4, group_size: 4",
    "size: 4, group_size: 1",
    ":21: runs.my_letters.batch.group_size: expected at least 2 for grpo, which compares the answers of a group",
  ],
  [
    "width: 64",
    "width: 128",
    ":11: trainer.width: expected at most the model's 64 positions (model.max_positions), found 128",
  ],
  ["rank: 2, alpha", "rank: 9, alpha", ":14: trainer.lora.rank: expected at most the model's hidden size (8)"],
  [
    "rows: 2",
    "rows: 100000000",
    ":10: trainer.rows: expected a value between 1 and 4096 (the graph computes all at once)",
  ],
  [
    "rows: 2\n  width: 64",
    "rows: 4096\n  width: 1048576",
    ":11: trainer.width: expected at most the model's 64 positions",
  ],
  [
    "rows: 2",
    "rows: 2\n  ranks: 100000",
    ":11: trainer.ranks: expected a value between 1 and 256 (each is a process), found 100000",
  ],
  [
    right.slice(right.indexOf("  type: scratch"), right.indexOf("broadcast:")),
    "  type: folder\n  path: pretrained\n  quantization: int8\ntrainer: { rows: 2, width: 64, block: 16 }\n",
    ":5: model.quantization: expected null without trainer.lora or with trainer.type: tinker",
  ],
  ["heads: 2", "heads: 3", ":6: model.heads: expected a divisor of half of model.hidden_size (8), found 3"],
]

describe("the config of a multi-run trainer", () => {
  it("of somebody else sends gradients to another computer only if that is permitted", () =>
    withFolder(async (folder) => {
      mkdirSync(join(folder, "own"))
      const store = "store: { type: redis, url: 'redis://redis.invalid:6379' }"
      writeFileSync(join(folder, "foreign.yaml"), right.replace("block: 16", `block: 16\n  ${store}`))
      const { code, stderr } = await effect(["run", "../foreign.yaml"], join(folder, "own"))
      assert.strictEqual(code, 2, stderr)
      assert.match(
        stderr,
        /foreign\.yaml:13: trainer\.store\.url: it would send gradients to redis:\/\/redis\.invalid:6379, .*--trust\n$/,
      )
    }))

  it("is checked with its runs before anything is written: errors name file, line and key", () =>
    withFolder(async (folder) => {
      for (const [index, [text, wrong, message]] of mistakes.entries()) {
        assert.include(right, text)
        const file = write(folder, "many.yaml", right.replace(text, wrong))
        for (const flags of index === 0 ? [["--dry-run"], []] : [[]]) {
          const results = join(folder, "results")
          const { code, stderr } = await effect(["run", file, "--results-dir", results, ...flags])
          assert.notStrictEqual(code, 0, message)
          assert.include(stderr, `${file}${message}`)
          assert.isFalse(existsSync(results), message)
        }
      }
    }))

  it("names the settings that don't fit the model in a folder, before anything is written", () =>
    withFolder(async (folder) => {
      const model = join(root, "test/fixtures/hugging-face/llama")
      const ofFolder = right.replace(/^model:\n(?: .*\n)+/m, `model: { type: folder, path: ${model} }\n`)
      for (const [text, wrong, message] of [
        [
          "width: 64",
          "width: 512",
          "trainer.width: expected at most the model's 256 positions (max_position_embeddings in the config.json of model.path), found 512",
        ],
        ["rank: 2", "rank: 65", "trainer.lora.rank: expected at most the model's hidden size (64), beyond which"],
      ] as const) {
        assert.include(ofFolder, text)
        const file = write(folder, "many.yaml", ofFolder.replace(text, wrong))
        const { code, stderr } = await effect(["run", file, "--results-dir", join(folder, "results")])
        assert.strictEqual(code, 2, stderr)
        assert.include(stderr, message)
        assert.lengthOf(stderr.trim().split("\n"), 1, stderr)
        assert.isFalse(existsSync(join(folder, "results")))
      }
    }))

  it("reports the mistakes of all runs at once", () =>
    withFolder(async (folder) => {
      const file = write(folder, "many.yaml", right.replaceAll("max_steps: 1", "max_steps: 0"))
      const { stderr } = await effect(["run", file, "--dry-run"])
      for (const [line, run] of [
        [20, "my_letters"],
        [26, "Words2"],
      ])
        assert.include(stderr, `${file}:${line}: runs.${run}.max_steps: expected a value greater than 0, found 0`)
    }))

  it("names an override that is wrong, and says how the length of a run is set", () =>
    withFolder(async (folder) => {
      const file = write(folder, "many.yaml", right)
      const steps = await effect(["run", file, "--dry-run", "--total-steps", "9"])
      assert.include(steps.stderr, "for runs of a trainer: --set runs.NAME.max_steps=N")
      const { code, stderr } = await effect(["run", file, "--dry-run", "--set", "runs.my_letters.max_steps=none"])
      assert.notStrictEqual(code, 0)
      assert.include(stderr, "--set: runs.my_letters.max_steps: expected")
      for (const [set, message] of [
        ["runs.my_leters.max_steps=2", 'runs.my_leters: unknown run "my_leters"; did you mean "my_letters"?'],
        ["runs.other.seed=2", 'runs.other: unknown run "other"; expected one of my_letters, Words2'],
        ["runs.Words2.validation_set.seed=1", 'unknown key "runs.Words2.validation_set"; did you mean'],
        ["runs.Words2.objective.beta=1", "runs.Words2.objective: expected an objective whose type is"],
      ]) {
        const { stderr } = await effect(["run", file, "--dry-run", "--set", set])
        assert.include(stderr, `effect: --set: ${message}`)
      }
      const added = ["runs.other.train_dataset.type=reverse_text", "runs.other.max_steps=1"]
      const more = await effect(["run", file, "--dry-run", ...added.flatMap((set) => ["--set", set])])
      assert.strictEqual(more.code, 0, more.stderr)
    }))

  it("is recognised by its kind, also by a misspelt one", () =>
    withFolder(async (folder) => {
      const file = write(folder, "many.yaml", right.replace("multirun", "multi-run"))
      const kinds = "expected training, agents, evaluation, multirun, gateway or prompts"
      for (const command of ["run", "eval"]) {
        const { stderr } = await effect([command, file])
        assert.strictEqual(stderr, `effect: ${file}:1: kind: ${kinds}, found "multi-run"; did you mean "multirun"?\n`)
      }
      const { stderr } = await effect(["eval", write(folder, "many.yaml", right)])
      assert.include(stderr, "this is a training, not an evaluation")
    }))

  it("cuts answers off at the end of a window, if a run does not say how long they are, also when it is saved", () =>
    withFolder(async (folder) => {
      for (const sampling of ["", "sampling: { max_tokens: 128 }"]) {
        // A width that is no multiple of the usual block gets a smaller one.
        const text = right
          .replace("sampling: { max_tokens: 2 }", sampling)
          .replace("width: 64\n  block: 16", "width: 60")
        assert.notStrictEqual(text, right)
        const { code, stderr } = await effect(["run", write(folder, "many.yaml", text), "--dry-run"])
        assert.strictEqual(code, 0, stderr)
      }
    }))

  it("keeps the names of its runs as they are written, in folders and in the saved config", { tags: "slow" }, () =>
    withFolder(async (folder) => {
      const file = write(folder, "many.yaml", right)
      const results = join(folder, "results")
      const values = ["runs.my_letters.max_steps=2", "runs.my_letters.supervised.steps=1", "runs.Words2.seed=5"]
      const set = values.flatMap((value) => ["--set", value])
      const { code, stderr, stdout } = await effect(["run", file, "--results-dir", results, ...set])
      assert.strictEqual(code, 0, stderr)
      assert.match(stdout, /^3 steps \(1 of imitation\), 12 samples in .*\nno validation\n/)
      const [run] = runsIn(results)
      assert.isTrue(existsSync(join(run, "run_my_letters/checkpoints/step_2")))
      assert.isTrue(existsSync(join(run, "run_Words2/checkpoints/step_1")))
      const saved = parse(readFileSync(join(run, "config.yaml"), "utf8"))
      assert.deepStrictEqual(Object.keys(saved.runs), ["my_letters", "Words2"])
      assert.deepStrictEqual([saved.runs.my_letters.max_steps, saved.runs.Words2.seed], [2, 5])
      const listed = await effect(["runs", results, "--json"])
      const seeds = listed.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line))
      assert.deepStrictEqual(
        seeds.map(({ path, seed }) => [basename(path), seed]),
        [
          ["run_Words2", 5],
          ["run_my_letters", 0],
        ],
      )
      const resumed = await effect(["run", file, "--results-dir", results, "--resume", run, ...set])
      assert.include(resumed.stdout, "train it further with a larger --set runs.my_letters.max_steps=N", resumed.stderr)
    }),
  )
})
