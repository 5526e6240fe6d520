import type { Rollout } from "../../episode/Rollout.ts"
import type { LmUsage } from "./RuntimeState.ts"

/** What the calls of the model in rollouts add up to. */
export const usageOf = (rollouts: Iterable<Rollout>): LmUsage => {
  let calls = 0
  let retries = 0
  let inputTokens = 0
  let outputTokens = 0
  for (const { steps } of rollouts) {
    for (const step of steps) {
      if (step._tag !== "AgentStep") continue
      const { usage, attempts } = step.call.completion
      calls++
      retries += attempts - 1
      inputTokens += usage.inputTokens
      outputTokens += usage.outputTokens
    }
  }
  return { calls, retries, inputTokens, outputTokens }
}
