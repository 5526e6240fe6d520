// The same as tictactoe-self-play.yaml, in code: a small language model learns tic-tac-toe by playing against itself.
//   npx effect run examples/trainer/tictactoe-self-play.ts
import { MultiRun } from "effect-rl"

const game = { type: "tic_tac_toe", observation: "board", invalidMoves: "lose" }

export const config = {
  kind: "multirun",
  name: "tictactoe-self-play",
  seed: 1,
  model: {
    type: "scratch",
    hiddenSize: 64,
    layers: 1,
    heads: 4,
    maxPositions: 32,
    initializerRange: 0.1,
    tokenizer: {
      alphabet: "123456789abcdefghiABCDEFGHIQ: ",
      template:
        "{% for message in messages %}<|im_start|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>{% endif %}",
    },
  },
  trainer: { rows: 64, width: 32, block: 16 },
  inference: { generating: [1, 8, 64, 256], reading: [1, 8, 64] },
  runs: {
    player: {
      protocol: "self_play",
      trainDataset: { ...game, opening: 6, demonstration: "random", numTasks: 100_000, seed: 1 },
      validationDataset: { ...game, draw: 1, opponent: "random", numTasks: 200, seed: 2 },
      validation: { every: 20 },
      agent: { type: "memoryless_agent", rejectIncompleteCompletions: false },
      maxSteps: 120,
      supervised: { steps: 60, lr: 0.003, schedule: { type: "constant", warmupSteps: 20 } },
      objective: { type: "grpo", kl: null },
      optimiser: { type: "adamw", lr: 0.0003, betas: [0.9, 0.99], weightDecay: 0 },
      schedule: { type: "linear" },
      batch: { size: 128, groupSize: 16 },
      sampling: { temperature: 1, maxTokens: 2 },
      maxAsyncLevel: 0,
    },
  },
}

export default MultiRun.fromConfig(config)
