// The same as distillation.yaml, in code: a small language model learns from the probabilities of a teacher.
//   npx effect run examples/trainer/distillation.ts
import { MultiRun } from "effect-rl"

export const config = {
  kind: "multirun",
  name: "distillation",
  seed: 1,
  model: {
    type: "folder",
    path: "student",
  },
  trainer: {
    rows: 16,
    width: 32,
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
        path: "teacher",
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
