import { Effect } from "effect"
import { assert, describe, it } from "vitest"
import { camelCase, isPlain } from "../../../src/base/config/Config.ts"
import { trainerOfOne } from "../../../src/trainer/config/orchToml.ts"
import { parseNoted } from "../../../src/trainer/config/OrchestratorConfig.ts"
import { primeRlKeys } from "../../../src/trainer/config/primeRlKeys.ts"

const read = (text: string) => Effect.runSync(parseNoted(text, "orch.toml"))
const messageOf = (text: string): string =>
  Effect.runSync(
    Effect.match(parseNoted(text, "orch.toml"), {
      onFailure: ({ message }) => message,
      onSuccess: () => "no error",
    }),
  )

/** A file in prime-rl's newest form, with tasks of ours. */
const newest = `max_steps = 20
seq_len = 1000
batch_size = 96
group_size = 16
max_off_policy_steps = 3

[model]
name = "models/small"
lora = { rank = 4, alpha = 8 }

[monitors.wandb]
project = "reverse-text"

[train.sampling]
temperature = 0.7
max_completion_tokens = 12
extra_body = { top_k = -1, min_p = 0.1, return_token_ids = true }

[[train.source]]
name = "reverse-text"
group_size = 4

[eval]
interval = 5

[ckpt]
interval = 10
keep_last = 2

[optim]
lr = 1e-3

[train_dataset]
type = "reverse_text"

[validation_dataset]
type = "reverse_text"

[batch]
filters = ["complete"]
`

/** A file in the form of the version that first trained several runs. */
const oldest = `batch_size = 128
rollouts_per_example = 16
seq_len = 2048
max_steps = 20
max_async_level = 1
max_off_policy_steps = 8
mask_env_responses = true
trajectory_strategy = "interleaved"
[sampling]
max_tokens = 128
stop = ["\\n"]
[ckpt]
keep = 3
resume_step = -1
`

describe("prime-rl's orch.toml", () => {
  it("is read where its keys mean the same", () => {
    const { config, notes } = read(newest)
    assert.deepStrictEqual(config.batch, {
      size: 96,
      groupSize: 16,
      evenGroups: "drop",
      positiveOnly: false,
      replacedGroups: 0,
      filters: ["complete"],
    })
    assert.deepInclude(config, { maxSteps: 20, maxAsyncLevel: 3 })
    assert.deepInclude(config.sampling, { temperature: 0.7, maxTokens: 12, topK: null, minP: 0.1 })
    assert.deepInclude(config.objective, { type: "dr_grpo", normalisation: { type: "token_mean" } })
    assert.deepStrictEqual(config.lora, { rank: 4, alpha: 8 })
    assert.deepStrictEqual(config.checkpoint, { every: 10, keep: 2 })
    assert.strictEqual(config.validation.every, 5)
    assert.strictEqual(config.optimiser.lr, 1e-3)
    assert.deepStrictEqual(config.trainDataset, { type: "reverse_text" })
    assert.deepStrictEqual(
      notes.map((note) => note.split(": ").slice(0, 2).join(": ")),
      [
        "orch.toml:11: monitors",
        "orch.toml:17: train.sampling.extra_body.return_token_ids",
        "orch.toml:19: train.source",
      ],
    )
  })

  it("is read in its first form, too", () => {
    const { config, notes } = read(oldest)
    assert.deepInclude(config.batch, { size: 128, groupSize: 16 })
    assert.deepInclude(config, { maxAsyncLevel: 1, resumeStep: -1 })
    assert.deepInclude(config.sampling, { maxTokens: 128, stop: ["\n"] })
    assert.strictEqual(config.checkpoint.keep, 3)
    assert.lengthOf(notes, 1)
    assert.match(
      read("group_size = 4\n[eval]\ninterval = 5").notes.join(),
      /:3: eval\.interval: left out: nothing is validated/,
    )
    assert.deepInclude(read("group_size = 4").config.batch, { size: 128, groupSize: 4 })
  })

  it("names every key that has no equal, once, with its line and what to write instead", () => {
    const message = messageOf(`batch_size = 8
group_size = 2
token_batch_size = 4096
[algo]
type = "max_rl"
[[env]]
id = "gsm8k"
[[env]]
id = "wordle"
[buffer]
easy_threshold = 0.8
[sampling]
repetition_penalty = 1.1
`)
    assert.deepStrictEqual(
      message.split("; orch").map((one) => one.replace(/^orch/, "").replace(/ instead.*/, "")),
      [
        ".toml:3: token_batch_size: write batch_size",
        ".toml:5: algo.type: max_rl has no equal; write a section [objective] of ours",
        ".toml:6: env: its tasks are Python packages; write a section [train_dataset]",
        ".toml:11: buffer.easy_threshold: write batch = { replaced_groups = N }",
        ".toml:13: sampling.repetition_penalty: no penalties are drawn with; leave it out",
      ],
    )
  })

  it.for([
    ["batch_size = ", /^orch\.toml:1: expected TOML: /],
    ["batch_size = 8\ngroup_size = 'x'", /^orch\.toml:2: batch\.group_size: expected .*, found "x"/],
    ["batch_size = 2000000\ngroup_size = 2", /^orch\.toml:1: batch\.size: expected a value between 1 and 1000000/],
    ["batch_size = 8\ngroup_size = 3", /^orch\.toml:2: batch\.group_size: expected a divisor/],
    ["batch_sise = 8\ngroup_size = 2", /^orch\.toml:1: batch_sise: unknown key; did you mean "batch_size"\?$/],
    [
      "group_size = 2\nrollouts_per_example = 2",
      /^orch\.toml:2: rollouts_per_example: another key .* batch\.group_size/,
    ],
    ["group_size = 2\n[batch]\nsize = 4\ngroup_size = 2", /^orch\.toml:4: batch\.group_size: another key/],
    ["[orchestrator]\nbatch_size = 8", /^orch\.toml:1: orchestrator: this is prime-rl's rl\.toml/],
    ["group_size = 2\n[[pre_batch_filters]]\ntype = 'zero_advantage'\nenforce = true", /replaced_groups/],
    ["[sampling.__proto__]\nx = 1\n[model]\nname = 'm'", /unknown key/],
  ] as const)("refuses %s", ([text, expected]) => assert.match(messageOf(text), expected))

  it("does not mind filters that are off, and defaults that are written", () => {
    const off =
      "group_size = 2\n[[post_batch_filters]]\ntype = 'gibberish'\nenforce = false\n[[post_batch_filters]]\ntype = 'zero_advantage'"
    assert.strictEqual(messageOf(off), "no error")
    assert.strictEqual(messageOf("group_size = 2\nbench = false\n[algo]\ntype = 'grpo'"), "no error")
    assert.strictEqual(messageOf("group_size = 2\ntrajectory_strategy = 'branching'"), "no error")
    assert.match(messageOf("group_size = 2\ntrajectory_strategy = 'other'"), /each turn of an episode is a sample/)
    assert.strictEqual(read("group_size = 2\n[train]\nfilter_zero_advantages = false").config.batch.evenGroups, "keep")
  })

  it("becomes a trainer with one run, whose keys have their lines", () => {
    const { value, places } = Effect.runSync(trainerOfOne(newest, "orch.toml"))
    assert.deepInclude(value, { kind: "multirun", model: { type: "folder", path: "models/small" } })
    assert.deepStrictEqual(value.trainer, { rows: 1, width: 1000, lora: { rank: 4, alpha: 8 } })
    const replay = "[trainer]\nenable_router_replay = true\n[inference.vllm]\nenable_return_routed_experts = true"
    const replaying = Effect.runSync(trainerOfOne(`${newest}${replay}`, "orch.toml"))
    assert.deepInclude(replaying.value.trainer, { width: 1000, enable_router_replay: true })
    assert.match(replaying.places.get("trainer.enableRouterReplay") ?? "", /^orch.toml:\d+$/)
    assert.include(
      read(`${newest}${replay}`).notes,
      "orch.toml: trainer.enable_router_replay: left out: the config of the trainer decides that",
    )
    // Each other section of a whole rl.toml is named once.
    assert.strictEqual(
      messageOf("[trainer]\nmax_steps = 3\nenable_router_replay = true\n[trainer.optim]\nlr = 1.0"),
      "orch.toml:2: trainer.max_steps: this is prime-rl's rl.toml; write the keys of [orchestrator] into a file orch.toml",
    )
    assert.strictEqual(places.get("runs.orch.batch.size"), "orch.toml:3")
    assert.strictEqual(places.get("model.path"), "orch.toml:8")
    const own = Effect.runSync(
      trainerOfOne("seq_len = 64\ngroup_size = 2\n[model]\nname = 'm'\n[lora]\nrank = 2\n[critic]", "orch.toml"),
    )
    assert.deepInclude(own.value.trainer, { width: 64, lora: { rank: 2 } })
    // An answer may fill the window, and with a critic no groups are dropped.
    assert.deepInclude(own.value.runs, {
      orch: {
        batch: { size: 128, group_size: 2 },
        validation: { every: 100 },
        objective: { type: "dr_grpo", normalisation: { type: "token_mean" } },
        lora: { rank: 2 },
        critic: {},
        sampling: { max_tokens: 63 },
      },
    })
    const refused = (text: string) =>
      Effect.runSync(
        Effect.match(trainerOfOne(text, "orch.toml"), { onFailure: ({ message }) => message, onSuccess: () => "" }),
      )
    assert.match(refused("max_steps = 3"), /^orch\.toml: expected prime-rl's orch\.toml/)
    assert.match(refused("batch_size = 3"), /^orch\.toml: model\.name: expected the folder of a model/)
  })

  it("has keys that mean keys of ours which exist", () => {
    const ours: Record<string, unknown> = {
      ...read("group_size = 2").config,
      model: { path: "" },
      trainer: { width: 1, enableRouterReplay: true },
    }
    for (const rule of Object.values(primeRlKeys)) {
      if (!("means" in rule)) continue
      const [section, key] = rule.means.split(".").map(camelCase)
      const own = ours[section]
      assert.isTrue(key === undefined ? own !== undefined : isPlain(own) && Object.hasOwn(own, key), rule.means)
    }
  })

  it("names some of very many keys that it does not know", () => {
    const keys = Array.from({ length: 2000 }, (_, at) => `unknown_${at} = 1`)
    assert.lengthOf(messageOf(["group_size = 2", ...keys].join("\n")).split("; orch"), 20)
    const more = Array.from({ length: 5000 }, (_, at) => `k${at} = 1`)
    const bomb = ["group_size = 2", "[sampling]", ...more].join("\n")
    assert.strictEqual(messageOf(bomb), "orch.toml: expected at most 5000 keys, found more")
  })
})
