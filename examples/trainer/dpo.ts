// The same as dpo.yaml, in code: a small language model learns from pairs of answers.
//   npx effect run examples/trainer/dpo.ts
import { MultiRun } from "effect-rl"

export const config = {
  kind: "multirun",
  name: "dpo",
  seed: 1,
  model: {
    type: "scratch",
    hiddenSize: 48,
    layers: 2,
    heads: 4,
    maxPositions: 32,
    initializerRange: 0.1,
    tokenizer: {
      alphabet: "abcdefghijklmnopqrstuvwxyzQ: ",
      template:
        "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}",
    },
  },
  trainer: {
    rows: 16,
    width: 32,
    block: 16,
  },
  inference: {
    generating: [1, 8, 64],
    reading: [1, 8, 64],
  },
  runs: {
    letters: {
      trainDataset: {
        type: "qa",
        datasetPath: "both.jsonl",
      },
      validationDataset: {
        type: "reverse_text",
        numTasks: 200,
        seed: 2,
        minLetters: 2,
        maxLetters: 4,
        alphabet: 8,
      },
      validation: {
        every: 20,
      },
      maxSteps: 180,
      supervised: {
        steps: 140,
        lr: 0.003,
        schedule: {
          type: "constant",
          warmupSteps: 20,
        },
      },
      pairs: {
        datasetPath: "pairs.jsonl",
      },
      objective: {
        type: "dpo",
        beta: 0.1,
      },
      optimiser: {
        type: "adamw",
        lr: 0.0002,
        betas: [0.9, 0.99],
        weightDecay: 0,
      },
      schedule: {
        type: "linear",
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
