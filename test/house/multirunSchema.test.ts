import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect, Exit } from "effect"
import { assert, describe, it } from "vitest"
import { parse, stringify } from "yaml"
import * as Agents from "../../src/agents/agent/Agents.ts"
import { decode, isPlain, toCamelCase } from "../../src/base/config/Config.ts"
import { MultiRunConfig } from "../../src/trainer/config/MultiRunConfig.ts"
import * as OrchestratorConfig from "../../src/trainer/config/OrchestratorConfig.ts"
import * as Datasets from "../../src/agents/task/Datasets.ts"
import { validator } from "./validators.ts"

/** Every key that a run can have. */
const run = `
seed: 3
agent: { type: history_agent, history_k: 2 }
protocol: self_play
train_dataset: { type: tic_tac_toe, num_tasks: 100, observation: board, invalid_moves: lose, draw: 0.25, opening: 3 }
validation_dataset: { type: qa, dataset_path: qa.jsonl }
validation: { every: 10 }
supervised: { steps: 5, lr: 0.01, schedule: { type: cosine, warmup_steps: 1, decay_steps: 2, min_lr: 0.001 } }
optimiser: { type: muon, lr: 0.02, betas: [0.9, 0.99], epsilon: 1.0e-7, momentum: 0.9, weight_decay: 0, max_norm: 2 }
schedule: { type: linear, warmup_steps: 2, decay_steps: 4, min_lr: 0 }
lora: { rank: 4, alpha: 8 }
batch: { size: 16, group_size: 4, even_groups: drop }
sampling: { temperature: 0.7, top_p: 0.9, top_k: 20, min_p: 0.01, max_tokens: 32, stop: ["\\n"], stop_token_ids: [2] }
objective: { type: dapo, clip_low: 0.1, clip_high: 0.3, kl: { type: k2, coefficient: 0.1 }, importance: { type: truncated } }
max_steps: 50
max_async_level: 1
checkpoint: { every: 5, keep: 2 }
weights: { every: 10, keep: null }
rollouts: { keep: 20 }
resume_step: -1
`

/** Every key that a trainer can have. */
const trainer = {
  kind: "multirun",
  name: "letters",
  description: "all keys",
  seed: 7,
  model: {
    type: "scratch",
    hidden_size: 32,
    layers: 1,
    heads: 2,
    intermediate_size: null,
    max_positions: 64,
    initializer_range: 0.1,
    tokenizer: { alphabet: "abc", template: null },
  },
  trainer: {
    max_runs: 2,
    rows: 4,
    width: 64,
    block: 16,
    mixing: "many-runs",
    lora: { rank: 4, alpha: 8, targets: ["q_proj"] },
  },
  inference: { generating: [1, 4], reading: [1], page_size: 8 },
  broadcast: { keep: 1 },
  runs: { first: parse(run), second: {} },
  output: { results_dir: "outputs", log_level: "INFO" },
}

const put = (tree: unknown, [key, ...rest]: ReadonlyArray<string>, value: unknown): unknown => {
  const { [key]: old, ...others } = isPlain(tree) ? tree : {}
  const now = rest.length === 0 ? value : put(old, rest, value)
  return now === undefined ? others : { ...others, [key]: now }
}
/** The same config with another value in one place; undefined removes the key. */
const changed = (whole: unknown, path: string, value: unknown): unknown => put(whole, path.split("."), value)

const lmConfig = { model: "trained" }

const takesRun = (config: unknown) =>
  Effect.gen(function* () {
    const { agent, trainDataset, validationDataset } = yield* OrchestratorConfig.parse(stringify(config), "orch.yaml")
    yield* Agents.decode({ ...agent, lmConfig }, { source: "orch.yaml" })
    for (const dataset of [trainDataset, validationDataset])
      if (dataset !== null) yield* Datasets.decode(dataset, { source: "orch.yaml" })
  })

const takesTrainer = (config: unknown) =>
  Effect.gen(function* () {
    const { runs } = yield* decode(MultiRunConfig, toCamelCase(config), { source: "multirun.yaml" })
    for (const one of Object.values(runs)) yield* takesRun(one)
  })

const isTaken = (decoding: Effect.Effect<void, unknown, NodeServices.NodeServices>): Promise<boolean> =>
  Effect.runPromise(Effect.map(Effect.exit(Effect.provide(decoding, NodeServices.layer)), Exit.isSuccess))

const rightRuns: ReadonlyArray<readonly [what: string, config: unknown]> = [
  ["every key", parse(run)],
  ["every key, spelled as in code", toCamelCase(parse(run))],
  ["no key", {}],
  ["no data sets", changed(changed(parse(run), "train_dataset", null), "validation_dataset", null)],
  ["another objective", changed(parse(run), "objective", { type: "gspo" })],
]

const wrongRuns: ReadonlyArray<readonly [what: string, config: unknown]> = [
  ["an unknown key", changed(parse(run), "sead", 1)],
  ["an unknown key of the batch", changed(parse(run), "batch.groups", 4)],
  ["an unknown key of the schedule of supervised steps", changed(parse(run), "supervised.schedule.warmup", 4)],
  ["an unknown key of the agent", changed(parse(run), "agent.histroy_k", 4)],
  ["an unknown key of a data set", changed(parse(run), "train_dataset.letters", 4)],
  ["an unknown protocol", changed(parse(run), "protocol", "both")],
  ["an opening that is too long", changed(parse(run), "train_dataset.opening", 7)],
  ["an unknown objective", changed(parse(run), "objective.type", "ppo")],
  ["a key of another objective", changed(parse(run), "objective", { type: "rloo", clip_low: 0.1 })],
  ["a text for a number", changed(parse(run), "max_steps", "50")],
  ["a negative learning rate", changed(parse(run), "optimiser.lr", -1)],
  ["no samples", changed(parse(run), "batch.size", 0)],
]

const rightTrainers: ReadonlyArray<readonly [what: string, config: unknown]> = [
  ["every key", trainer],
  ["every key, spelled as in code", toCamelCase(trainer)],
  ["a model in a folder", changed(trainer, "model", { type: "folder", path: "models/small" })],
  ["no adapters", changed(trainer, "trainer.lora", null)],
  ["no runs", changed(trainer, "runs", {})],
]

const wrongTrainers: ReadonlyArray<readonly [what: string, config: unknown]> = [
  ["an unknown key", changed(trainer, "run", {})],
  ["an unknown key of the trainer", changed(trainer, "trainer.seq_len", 64)],
  ["an unknown key of the adapters", changed(trainer, "trainer.lora.dropout", 0)],
  ["an unknown key of the tokenizer", changed(trainer, "model.tokenizer.letters", "abc")],
  ["an unknown key of a run", changed(trainer, "runs.first.sead", 1)],
  ["random weights that are all 0", changed(trainer, "model.initializer_range", 0)],
  ["an unknown projection", changed(trainer, "trainer.lora.targets", ["w_proj"])],
  ["no model", changed(trainer, "model", undefined)],
  ["no section of runs", changed(trainer, "runs", undefined)],
  ["another kind", changed(trainer, "kind", "training")],
  ["a folder without a path", changed(trainer, "model", { type: "folder" })],
]

describe("schemas/multirun.schema.json and schemas/orchestrator.schema.json", () => {
  it("take the configs that the library takes, and refuse those that it refuses", async () => {
    for (const [file, takes, right, wrong] of [
      ["orchestrator.schema.json", takesRun, rightRuns, wrongRuns],
      ["multirun.schema.json", takesTrainer, rightTrainers, wrongTrainers],
    ] as const) {
      const problem = validator(file)
      for (const [what, config] of right) {
        assert.isUndefined(problem(config), `${file}: ${what}`)
        assert.isTrue(await isTaken(takes(config)), `${file}: ${what}`)
      }
      for (const [what, config] of wrong) {
        assert.isDefined(problem(config), `${file}: ${what}`)
        assert.isFalse(await isTaken(takes(config)), `${file}: ${what}`)
      }
    }
  })
})
