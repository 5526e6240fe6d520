import { type LmUsage, noUsage } from "../lm/usage.ts"
import type { Rollout } from "./Rollout.ts"

/** Adds up the calls to the language model in these rollouts. */
export const usageOf = (rollouts: Iterable<Rollout>): LmUsage => {
  let { calls, retries, inputTokens, outputTokens } = noUsage
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
