// An agent of LangGraph.js with a tool. `npx effect eval langgraph.ts` evaluates it; OPENAI_API_KEY has the key.
import { tool } from "@langchain/core/tools"
import { createReactAgent } from "@langchain/langgraph/prebuilt"
import { ChatOpenAI } from "@langchain/openai"
import { Evaluations, FunctionAgent } from "effect-rl"
import { z } from "zod"
import { questions } from "./questions.ts"

const add = tool(({ a, b }) => String(a + b), {
  name: "add",
  description: "Adds two numbers.",
  schema: z.object({ a: z.number(), b: z.number() }),
})

const mine = FunctionAgent.make("langgraph", async ({ text }, { lm, signal }) => {
  const { baseURL, apiKey } = await lm.connect()
  const llm = new ChatOpenAI({ model: lm.name, apiKey, configuration: { baseURL } })
  const agent = createReactAgent({ llm, tools: [add], prompt: "Answer with the number alone." })
  const { messages } = await agent.invoke({ messages: [{ role: "user", content: text }] }, { signal })
  return messages.at(-1)?.text ?? ""
})

export default Evaluations.fromConfig({
  dataset: { items: questions, id_field: "id" },
  agent: { type: mine, lm_config: { model: "gpt-4.1-mini" } },
  scorers: ["exact", "tokens"],
})
