// The same as two-tasks.yaml, in code: two runs in one trainer learn two tasks at once over one base model.
//   npx effect run examples/trainer/two-tasks.ts
import { MultiRun } from "effect-rl"

/** A run that learns a task of letters: by imitation at first, then by an objective. */
const run = (type: string, steps: { readonly supervised: number; readonly all: number }, objective: object) => {
  const task = { type, maxLetters: 5, alphabet: 8 }
  return {
    trainDataset: { ...task, numTasks: 100_000, seed: 1 },
    validationDataset: { ...task, numTasks: 200, seed: 2 },
    validation: { every: steps.supervised / 3 },
    maxSteps: steps.all,
    supervised: { steps: steps.supervised, lr: 0.003, schedule: { type: "constant", warmupSteps: 20 } },
    objective,
    optimiser: { type: "adamw", lr: 0.001, betas: [0.9, 0.99], weightDecay: 0 },
    schedule: { type: "linear" },
    batch: { size: 128, groupSize: 8 },
    sampling: { temperature: 1, maxTokens: 8 },
    maxAsyncLevel: 0,
  }
}

export const config = {
  kind: "multirun",
  name: "two-tasks",
  seed: 1,
  model: {
    type: "scratch",
    hiddenSize: 64,
    layers: 2,
    heads: 4,
    maxPositions: 32,
    initializerRange: 0.15,
    tokenizer: {
      alphabet: "abcdefghijklmnopqrstuvwxyzQ: ",
      template:
        "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}",
    },
  },
  trainer: { maxRuns: 2, rows: 32, width: 32, block: 16, lora: { rank: 64, alpha: 64 } },
  inference: { generating: [1, 8, 64, 128], reading: [1, 8, 64] },
  runs: {
    reverse: run("reverse_text", { supervised: 300, all: 360 }, { type: "grpo", kl: null }),
    sort: run(
      "sort_text",
      { supervised: 120, all: 200 },
      { type: "dr_grpo", normalisation: { type: "constant", tokens: 8 } },
    ),
  },
}

export default MultiRun.fromConfig(config)
