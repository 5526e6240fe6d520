import { Effect, Exit, Schema } from "effect"
import { assert, describe, it } from "vitest"
import {
  learningRateOf,
  objectiveAt,
  OrchestratorConfig,
  parse,
} from "../../../src/trainer/config/OrchestratorConfig.ts"

const messageOf = (text: string, file = "run_a/configs/orch.toml"): string =>
  Effect.runSync(Effect.match(parse(text, file), { onFailure: ({ message }) => message, onSuccess: () => "no error" }))

describe("orch.toml and orch.yaml", () => {
  it("have defaults for all keys", () => {
    const config = Effect.runSync(parse("", "orch.toml"))
    assert.deepStrictEqual(config, Effect.runSync(parse("", "orch.yaml")))
    assert.deepStrictEqual(config.optimiser, {
      type: "adamw",
      lr: 1e-5,
      betas: [0.9, 0.999],
      epsilon: 1e-8,
      momentum: null,
      weightDecay: 0.01,
      maxNorm: 1,
    })
    assert.strictEqual(config.resumeStep, -1)
    assert.strictEqual(config.batch.size % config.batch.groupSize, 0)
  })

  it("say the same", () => {
    const toml = `max_steps = 3\n[train_dataset]\ntype = "qa"\nmax_letters = 8\n[lora]\nrank = 4\n[optimiser]\ntype = "muon"\nbetas = [0.5, 0.9]`
    const yaml = `max_steps: 3\ntrain_dataset: {type: qa, max_letters: 8}\nlora: {rank: 4}\noptimiser: {type: muon, betas: [0.5, 0.9]}`
    const config = Effect.runSync(parse(toml, "orch.toml"))
    assert.deepStrictEqual(config, Effect.runSync(parse(yaml, "orch.yaml")))
    assert.deepStrictEqual(config.trainDataset, { type: "qa", maxLetters: 8 })
    assert.strictEqual(config.lora.rank, 4)
  })

  it("pass through JSON unchanged, as the master sends them to the other ranks", () => {
    const config = Effect.runSync(parse(`[objective]\ntype = "gspo"\nclip_low = 0.1`, "orch.toml"))
    const json: unknown = JSON.parse(JSON.stringify(Schema.encodeSync(OrchestratorConfig)(config)))
    assert.deepStrictEqual(Schema.decodeUnknownSync(OrchestratorConfig)(json), config)
  })

  it.for([
    ["max_steps = ", "run_a/configs/orch.toml:1: expected TOML: invalid value"],
    ["[lora]\nrnak = 3", 'run_a/configs/orch.toml:2: unknown key "lora.rnak"; did you mean "lora.rank"?'],
    ["a = 1", /orch\.toml:1: unknown key "a"; known keys are seed, agent/],
    [
      "[lora]\n\nrank = 0",
      "run_a/configs/orch.toml:3: lora.rank: expected a value between 1 and 4096 (the weights are a matrix), found 0",
    ],
    ["optimiser.lr = -1", "run_a/configs/orch.toml:1: optimiser.lr: expected a value greater than 0, found -1"],
    ["[optimiser]\ntype = 'adam'", /orch\.toml:2: optimiser\.type: expected "adamw" \| "sgd" \| "muon", found "adam"/],
    [
      "batch.group_size = 1\nbatch.replaced_groups = 2",
      /orch\.toml:2: batch\.replaced_groups: expected 0, as all groups/,
    ],
    ["critic = {}\nbatch.replaced_groups = 2", /replaced_groups: expected 0, because the critic gives the advantages/],
    [
      "teacher = { type = 'self' }\nbatch.even_groups = 'drop'",
      /even_groups: expected keep, because only the teacher gives the advantages/,
    ],
    [
      "objective.type = 'dpo'\npairs.dataset_path = 'a.jsonl'\nbatch.filters = ['parsed']",
      /batch\.filters: expected none, because dpo/,
    ],
    [
      "objective.type = 'sft'\nbatch.positive_only = true",
      /positive_only: expected false, because sft has no advantages/,
    ],
    [
      "batch.replaced_groups = 100000\nbatch.group_size = 64",
      /:1: batch\.replaced_groups: expected at most 15624 groups of 64/,
    ],
    ["critic = {}\nobjective.type = 'sft'", /orch\.toml:1: critic: expected no critic, because sft has no advantages/],
    ["critic = {}\nrollouts.keep = 0", /orch\.toml:2: rollouts\.keep: expected at least 1, because the critic is kept/],
    ["critic.lambda = 2", /orch\.toml:1: critic\.lambda: expected a value between 0 and 1, found 2/],
    ["batch.filters = ['good']", /orch\.toml:1: batch\.filters.*: expected "complete" \| /],
    ["max_steps = 3\nsupervised.steps = 4", /orch\.toml:2: supervised\.steps: .*at most max_steps, which is 3/],
    [
      "supervised.schedule = { type = 'linear', min_lr = 1 }",
      /orch\.toml:1: supervised\.schedule\.min_lr: .*at most the learning rate, which is 0\.00001/,
    ],
    [
      "[batch]\nsize = 9\ngroup_size = 2",
      /orch\.toml:3: batch\.group_size: .*a divisor of the batch's size, which is 9/,
    ],
    [
      "[optimiser]\nmomentum = 0.9",
      /orch\.toml:2: optimiser\.momentum: .*null for adamw, whose momentum is the first of its betas/,
    ],
    [
      "max_steps = 10\n[schedule]\ntype = 'linear'\nwarmup_steps = 8\ndecay_steps = 3",
      /orch\.toml:5: schedule\.decay_steps: .*warm-up and decay within the 10 steps of the run/,
    ],
    [
      "[schedule]\ntype = 'cosine'\nmin_lr = 1",
      /orch\.toml:3: schedule\.min_lr: .*at most the learning rate, which is 0\.00001/,
    ],
    [
      "[objective]\ntype = 'dapo'\nclip_hgh = 1",
      'run_a/configs/orch.toml:3: unknown key "objective.clip_hgh"; did you mean "objective.clip_high"?',
    ],
    ["objective.type = 'dpo'", /orch\.toml:?1?: pairs: expected the pairs that dpo learns from/],
    [
      "pairs.dataset_path = 'a.jsonl'",
      /orch\.toml:1: pairs: expected no pairs, because only dpo learns from them, not grpo/,
    ],
    [
      "[teacher]\ntype = 'oracle'",
      /orch\.toml:\d: teacher.*expected .*"folder" \| "server" \| "self"|teacher whose type is/,
    ],
    ["[teacher]\ntype = 'self'\nhint = 'x'", /orch\.toml:3: teacher\.hint: expected a text with \{answer\}/],
    [
      "[teacher]\ntype = 'server'\nmodel = 'm'\nbase_url = 'http://a'\napi_key = 'sk-1'",
      /orch\.toml:5: teacher\.api_key: expected \$\{NAME\}, the environment variable that holds the key, found <redacted>$/,
    ],
    [
      "teacher.type = 'self'\nsampling.temperature = 0.5",
      /orch\.toml:2: sampling\.temperature: expected 1 with a teacher.*, found 0\.5$/,
    ],
    [
      "teacher.type = 'self'\nobjective.type = 'sft'",
      /orch\.toml:2: objective\.type: expected an objective with advantages, .*found "sft"$/,
    ],
    ["train_dataset = 3", /orch\.toml:1: train_dataset: expected .*, found 3/],
    ["x = 1\nx = 2", /orch\.toml:2: expected TOML: trying to redefine/],
    [`x = ${"[".repeat(2000)}`, /orch\.toml:1: expected TOML: /],
  ] as const)("names file, line, key and expectation for %s", ([text, expected]) => {
    const message = messageOf(text)
    if (typeof expected === "string") assert.strictEqual(message, expected)
    else assert.match(message, expected)
    assert.notInclude(message, "\n")
  })

  it("names them for YAML, too", () => {
    assert.match(messageOf("lora:\n  rank: many", "orch.yaml"), /^orch\.yaml:2: lora\.rank: expected .* found "many"$/)
    assert.match(messageOf("- 1", "orch.yaml"), /^orch\.yaml: expected keys and values/)
    assert.isTrue(Exit.isSuccess(Effect.runSyncExit(parse("# nothing", "orch.yaml"))))
  })
})

describe("the stages of a run", () => {
  it("imitate first, with a learning rate and a schedule of their own, then follow the objective", () => {
    const text = [
      "max_steps = 30",
      "optimiser.lr = 0.5",
      "schedule = { type = 'linear' }",
      "objective.type = 'dapo'",
      "[supervised]",
      "steps = 10",
      "lr = 2",
      "schedule = { type = 'constant', warmup_steps = 4 }",
    ]
    const config = Effect.runSync(parse(text.join("\n"), "orch.toml"))
    const rate = learningRateOf(config)
    // A warm-up begins at, and a decay ends at, a hundred-millionth of the rate.
    const expected = [2e-8, 1 + 1e-8, 2, 2, 0.5, 0.25 + 0.25e-8]
    for (const [at, step] of [0, 2, 4, 9, 10, 20].entries()) assert.closeTo(rate(step), expected[at], 1e-14)
    assert.deepStrictEqual(
      [0, 9, 10].map((step) => objectiveAt(config, step).type),
      ["sft", "sft", "dapo"],
    )
  })
})
