// Evaluates the agent of the AI SDK with its own instructions and with those that improve.ts has learned, on the same mails:
//   npx effect eval compare.ts
import { Evaluations } from "effect-rl"
import { mailsAgent } from "./mails-agent.ts"

const lm_config = { model: "gpt-4.1-mini", temperature: 0 }

export default Evaluations.fromConfig({
  dataset: { dataset_path: "../agents/mails-test.jsonl", input_field: "mail", target_field: "answer" },
  agents: {
    before: { type: mailsAgent, lm_config },
    after: { type: mailsAgent, lm_config, texts: "latest" },
  },
  scorers: ["exact"],
})
