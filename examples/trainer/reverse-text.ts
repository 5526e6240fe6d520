// The same as reverse-text.yaml, in code: a small language model learns to write words backwards.
//   npx effect run examples/trainer/reverse-text.ts
import { MultiRun } from "effect-rl"

export const config = {
  kind: "multirun",
  name: "reverse-text",
  seed: 1,
  model: {
    type: "scratch",
    hiddenSize: 64,
    layers: 2,
    heads: 4,
    maxPositions: 48,
    tokenizer: {
      alphabet: "abcdefghijklmnopqrstuvwxyzQ: ",
      template:
        "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}",
    },
  },
  trainer: { rows: 32, width: 48, block: 16 },
  inference: { generating: [1, 8, 64, 256], reading: [1, 8, 64] },
  runs: {
    letters: {
      trainDataset: { type: "reverse_text", numTasks: 100_000, seed: 1 },
      validationDataset: { type: "reverse_text", numTasks: 200, seed: 2 },
      validation: { every: 40 },
      maxSteps: 520,
      supervised: { steps: 200, lr: 0.003, schedule: { type: "constant", warmupSteps: 50 } },
      objective: { type: "grpo", kl: null },
      optimiser: { type: "adamw", lr: 0.0004, betas: [0.9, 0.99], weightDecay: 0 },
      schedule: { type: "linear" },
      batch: { size: 256, groupSize: 8 },
      sampling: { temperature: 1, maxTokens: 12 },
      maxAsyncLevel: 0,
    },
  },
}

export default MultiRun.fromConfig(config)
