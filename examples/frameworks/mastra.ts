// An agent of Mastra with a tool. `npx effect eval mastra.ts` evaluates it; OPENAI_API_KEY has the key.
import { Agent } from "@mastra/core/agent"
import { createTool } from "@mastra/core/tools"
import { Evaluations, FunctionAgent } from "effect-rl"
import { z } from "zod"
import { questions } from "./questions.ts"

const add = createTool({
  id: "add",
  description: "Adds two numbers.",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => ({ sum: a + b }),
})

const mine = FunctionAgent.make("mastra", async ({ text }, { lm, signal }) => {
  const { baseURL: url, apiKey } = await lm.connect()
  const agent = new Agent({
    id: "sums",
    name: "sums",
    instructions: "Answer with the number alone.",
    model: { providerId: "run", modelId: lm.name, url, apiKey },
    tools: { add },
  })
  const { text: answer } = await agent.generate(text, { abortSignal: signal })
  return answer
})

export default Evaluations.fromConfig({
  dataset: { items: questions, id_field: "id" },
  agent: { type: mine, lm_config: { model: "gpt-4.1-mini" } },
  scorers: ["exact", "tokens"],
})
