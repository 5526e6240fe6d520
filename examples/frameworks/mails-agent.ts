// An agent of the AI SDK that sorts the mails of a shop. Its instructions have a name, so that a run can improve them:
// improve.ts does, and compare.ts evaluates the result.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { ToolLoopAgent } from "ai"
import { FunctionAgent } from "effect-rl"

const instructions =
  "Sort the mail of a bicycle shop. Answer with a team (orders, repairs, billing, account or other) and a priority from 1 (urgent) to 3, in the form team/priority."

export const mailsAgent = FunctionAgent.make("mails-agent", async ({ text: mail }, { lm, signal, text }) => {
  const provider = createOpenAICompatible({ name: "run", ...(await lm.connect()) })
  const agent = new ToolLoopAgent({ model: provider(lm.name), instructions: text("instructions", instructions) })
  return agent.generate({ prompt: mail, abortSignal: signal })
})
