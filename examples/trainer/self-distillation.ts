// The same as self-distillation.yaml, in code: a small language model that reads hints teaches itself to do without them.
//   npx effect run examples/trainer/self-distillation.ts
import { MultiRun } from "effect-rl"

export const config = {
  kind: "multirun",
  name: "self-distillation",
  seed: 1,
  model: {
    type: "folder",
    path: "student",
  },
  trainer: {
    rows: 16,
    width: 48,
    block: 16,
  },
  inference: {
    generating: [1, 8, 128],
    reading: [1, 8, 64],
  },
  runs: {
    student: {
      teacher: {
        type: "folder",
        path: "student",
        hint: "{answer}",
        baseline: "mean",
      },
      trainDataset: {
        type: "reverse_text",
        numTasks: 100_000,
        seed: 3,
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
        every: 20,
      },
      maxSteps: 80,
      objective: {
        type: "reinforce",
      },
      optimiser: {
        type: "adamw",
        lr: 0.002,
        betas: [0.9, 0.99],
        weightDecay: 0,
      },
      schedule: {
        type: "linear",
      },
      batch: {
        size: 128,
        groupSize: 1,
      },
      sampling: {
        temperature: 1,
        maxTokens: 8,
      },
      maxAsyncLevel: 0,
    },
  },
}

export default MultiRun.fromConfig(config, { baseDir: import.meta.dirname })
