// An agent of OpenAI's Agents SDK with a tool. `npx effect eval openai-agents.ts` evaluates it; OPENAI_API_KEY has the key.
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from "@openai/agents"
import { Evaluations, FunctionAgent } from "effect-rl"
import OpenAI from "openai"
import { z } from "zod"
import { questions } from "./questions.ts"

// The SDK sends traces to OpenAI unless they are switched off; the run has transcripts of its own.
setTracingDisabled(true)

const add = tool({
  name: "add",
  description: "Adds two numbers.",
  parameters: z.object({ a: z.number(), b: z.number() }),
  execute: async ({ a, b }) => String(a + b),
})

const mine = FunctionAgent.make("openai-agents", async ({ text }, { lm, signal }) => {
  const agent = new Agent({
    name: "sums",
    instructions: "Answer with the number alone.",
    model: new OpenAIChatCompletionsModel(new OpenAI(await lm.connect()), lm.name),
    tools: [add],
  })
  const { finalOutput } = await run(agent, text, { signal })
  return finalOutput ?? ""
})

export default Evaluations.fromConfig({
  dataset: { items: questions, id_field: "id" },
  agent: { type: mine, lm_config: { model: "gpt-4.1-mini" } },
  scorers: ["exact", "tokens"],
})
