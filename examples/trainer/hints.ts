// The same as hints.yaml, in code: a small language model learns to copy hints.
//   npx effect run examples/trainer/hints.ts
import { MultiRun } from "effect-rl"

export const config = {
  kind: "multirun",
  name: "hints",
  seed: 1,
  model: {
    type: "scratch",
    hiddenSize: 48,
    layers: 2,
    heads: 4,
    maxPositions: 48,
    initializerRange: 0.1,
    tokenizer: {
      alphabet: "abcdefghijklmnopqrstuvwxyzQ: ",
      template:
        "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}",
    },
  },
  trainer: {
    rows: 16,
    width: 48,
    block: 16,
  },
  inference: {
    generating: [1, 8, 64],
    reading: [1, 8, 64],
  },
  runs: {
    letters: {
      trainDataset: {
        type: "reverse_text",
        numTasks: 100_000,
        seed: 1,
        maxLetters: 4,
        alphabet: 8,
      },
      validationDataset: {
        type: "reverse_text",
        numTasks: 200,
        seed: 2,
        maxLetters: 4,
        alphabet: 8,
      },
      validation: {
        every: 40,
      },
      maxSteps: 120,
      supervised: {
        steps: 120,
        lr: 0.003,
        schedule: {
          type: "constant",
          warmupSteps: 20,
        },
      },
      teacher: {
        type: "self",
        hint: "{answer}",
        supervisedHints: 1,
      },
      objective: {
        type: "reinforce",
      },
      weights: {
        every: 120,
      },
      batch: {
        size: 64,
      },
      sampling: {
        maxTokens: 8,
      },
      maxAsyncLevel: 0,
    },
  },
}

export default MultiRun.fromConfig(config, { baseDir: import.meta.dirname })
