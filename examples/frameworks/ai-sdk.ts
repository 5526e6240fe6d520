// An agent of the Vercel AI SDK with a tool. `npx effect eval ai-sdk.ts` evaluates it; OPENAI_API_KEY has the key.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { ToolLoopAgent, tool } from "ai"
import { Evaluations, FunctionAgent } from "effect-rl"
import { z } from "zod"
import { questions } from "./questions.ts"

const add = tool({
  description: "Adds two numbers.",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => a + b,
})

const mine = FunctionAgent.make("ai-sdk", async ({ text }, { lm, signal }) => {
  const provider = createOpenAICompatible({ name: "run", ...(await lm.connect()) })
  const agent = new ToolLoopAgent({
    model: provider(lm.name),
    instructions: "Answer with the number alone.",
    tools: { add },
  })
  return agent.generate({ prompt: text, abortSignal: signal })
})

export default Evaluations.fromConfig({
  dataset: { items: questions, id_field: "id" },
  agent: { type: mine, lm_config: { model: "gpt-4.1-mini" } },
  scorers: ["exact", "tokens"],
})
