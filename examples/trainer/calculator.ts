// The same as calculator.yaml, in code: an agent learns to call a calculator, and to answer with the result.
// Imitation does most of the work: with seeds 1 to 3, 99, 98 and 96 % of
// the tasks are right after it, and 96, 96 and 98 % after the rewards.
//   npx effect run examples/trainer/calculator.ts
import { MultiRun } from "effect-rl"

/** Leaves out the descriptions of the tools, writes calls without spaces, and cuts long results of tools. */
const template = `{%- for message in messages -%}
<|im_start|>
{%- for call in message.tool_calls or [] -%}
{"name":"{{ call.function.name }}","parameters":{{ call.function.arguments | tojson(separators=[",", ":"]) }}}
{%- endfor -%}
{{- message.content[:12] if message.role == "tool" else message.content -}}
<|im_end|>
{%- endfor -%}
{%- if add_generation_prompt -%}<|im_start|>{%- endif -%}
{#- tools -#}`

export const config = {
  kind: "multirun",
  name: "calculator",
  seed: 1,
  model: {
    type: "scratch",
    hiddenSize: 64,
    layers: 2,
    heads: 4,
    maxPositions: 160,
    initializerRange: 0.1,
    tokenizer: { alphabet: '0123456789+-*Wacehilmnoprstux ?{}:,"', template },
  },
  trainer: { rows: 16, width: 160, block: 16 },
  inference: { generating: [1, 8, 64, 128], reading: [1, 8, 64] },
  runs: {
    agent: {
      agent: { type: "tool_agent", maxCalls: 2 },
      trainDataset: { type: "arithmetic", maxDigits: 2, numTasks: 100_000, seed: 1 },
      validationDataset: { type: "arithmetic", maxDigits: 2, numTasks: 100, seed: 2 },
      validation: { every: 20 },
      maxSteps: 220,
      supervised: { steps: 160, lr: 0.003, schedule: { type: "constant", warmupSteps: 50 } },
      objective: { type: "grpo", kl: null },
      optimiser: { type: "adamw", lr: 0.0004, betas: [0.9, 0.99], weightDecay: 0 },
      schedule: { type: "linear" },
      batch: { size: 128, groupSize: 8 },
      sampling: { temperature: 1, maxTokens: 64 },
      maxAsyncLevel: 0,
    },
  },
}

export default MultiRun.fromConfig(config)
