// The same as on-server.yaml, in code: a server of Tinker's protocol trains and generates, and tasks and rewards stay here.
//   npx effect serve letters --tinker                   # in another terminal; docs/tinker.md says how to make the model
//   npx effect run examples/trainer/on-server.ts
import { MultiRun } from "effect-rl"

export const config = {
  kind: "multirun",
  name: "on-server",
  seed: 1,
  model: { type: "folder", path: "../../letters" },
  trainer: {
    type: "tinker",
    baseUrl: "http://127.0.0.1:8000",
    apiKey: null,
    rows: 32,
    width: 48,
    block: 16,
    lora: { rank: 16, alpha: 32 },
  },
  runs: {
    letters: {
      trainDataset: { type: "reverse_text", numTasks: 100_000, maxLetters: 4, seed: 1 },
      validationDataset: { type: "reverse_text", numTasks: 100, maxLetters: 4, seed: 2 },
      validation: { every: 40 },
      maxSteps: 120,
      supervised: { steps: 80, lr: 0.01, schedule: { type: "constant", warmupSteps: 10 } },
      objective: { type: "grpo", kl: null },
      optimiser: { type: "adamw", lr: 0.002, betas: [0.9, 0.99], weightDecay: 0 },
      schedule: { type: "linear" },
      batch: { size: 64, groupSize: 8 },
      sampling: { temperature: 1, maxTokens: 8 },
      maxAsyncLevel: 0,
      checkpoint: { every: 20 },
    },
  },
}

export default MultiRun.fromConfig(config, { baseDir: import.meta.dirname })
