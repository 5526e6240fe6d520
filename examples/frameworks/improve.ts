// Improves the instructions of an agent of the AI SDK by GEPA, from 50 mails with the right answers, and compares them on 50
// other mails. OPENAI_API_KEY and ANTHROPIC_API_KEY have the keys:
//   npx effect run improve.ts
//   npx effect runs texts latest
import { Prompts } from "effect-rl"
import { mailsAgent } from "./mails-agent.ts"

const mails = { input_field: "mail", target_field: "answer" }

export default Prompts.fromConfig({
  name: "mails",
  agent: { type: mailsAgent, lm_config: { model: "gpt-4.1-mini", temperature: 0 } },
  dataset: { dataset_path: "../agents/mails.jsonl", ...mails },
  test_dataset: { dataset_path: "../agents/mails-test.jsonl", ...mails },
  learner: {
    type: "gepa",
    reflection_lm_config: { model: "claude-sonnet-4-5", temperature: 1, max_output_tokens: 8000 },
    minibatch_size: 5,
    max_metric_calls: 700,
  },
})
