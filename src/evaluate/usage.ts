import { Schema } from "effect"
import type { Rollout } from "../episode/Rollout.ts"

/** What the model was asked, and how much that was. */
export const LmUsage = Schema.Struct({
  calls: Schema.Int,
  retries: Schema.Int,
  inputTokens: Schema.Int,
  outputTokens: Schema.Int,
})
export type LmUsage = typeof LmUsage.Type

export const noUsage: LmUsage = { calls: 0, retries: 0, inputTokens: 0, outputTokens: 0 }

/** What the calls of the model in rollouts add up to. */
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
