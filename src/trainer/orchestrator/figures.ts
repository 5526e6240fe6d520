/** Computes the figures of a step's episodes, for the run's curves. */
import type { Rollout } from "../../agents/episode/Rollout.ts"
import { meanOf } from "../../base/statistics/resampling.ts"

/**
 * Computes the mean reward, the mean answer length, and by how many steps the weights that answered are older than `step`.
 */
export const figuresOf = (rollouts: ReadonlyArray<Rollout>, step: number): Readonly<Record<string, number>> => {
  const completions = rollouts.map(({ steps }) =>
    steps.flatMap((one) => (one._tag === "AgentStep" ? [one.call.completion] : [])),
  )
  const ages = completions
    .flat()
    .flatMap(({ tokens }) => (tokens?.weights === undefined ? [] : [step - tokens.weights.step]))
  return {
    "sampling/reward": meanOf(rollouts.map(({ totalReward }) => totalReward)),
    "sampling/answer_tokens": meanOf(
      completions.map((calls) => calls.reduce((sum, { usage }) => sum + usage.outputTokens, 0)),
    ),
    ...(ages.length === 0 ? {} : { "sampling/staleness": meanOf(ages) }),
  }
}
