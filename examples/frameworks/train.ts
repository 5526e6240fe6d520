// Trains a model of random weights for an agent of the AI SDK, which stays as it is: the model learns to call the agent's
// calculator, from demonstrations in the first 160 steps, then from rewards alone. Seed 1 was seen to answer 0 of 100 unseen
// questions rightly at first, 22 after 100 steps, all of them after the demonstrations, 89 after 20 steps with rewards, and 97
// at the end. `npx effect run train.ts` takes three and a half minutes of CPU time, seven minutes on a busy machine.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"
import { stepCountIs, ToolLoopAgent, tool } from "ai"
import { FunctionAgent, MultiRun } from "effect-rl"
import { z } from "zod"
import { config } from "../trainer/calculator.ts"

const calculator = tool({
  description: "Computes an expression.",
  inputSchema: z.object({ expression: z.string() }),
  execute: async ({ expression }) => {
    const [, a, sign, b] = /^(\d+)([-+*])(\d+)$/.exec(expression) ?? []
    const value = { "+": Number(a) + Number(b), "-": Number(a) - Number(b), "*": Number(a) * Number(b) }[sign ?? ""]
    return value === undefined ? "no value" : String(value)
  },
})

const mine = FunctionAgent.make("ai-sdk", async ({ text }, { lm, signal }) => {
  const provider = createOpenAICompatible({ name: "run", ...(await lm.connect()) })
  const agent = new ToolLoopAgent({ model: provider(lm.name), tools: { calculator }, stopWhen: stepCountIs(2) })
  return agent.generate({ prompt: text, abortSignal: signal })
})

export default MultiRun.fromConfig({ ...config, runs: { agent: { ...config.runs.agent, agent: { type: mine } } } })
