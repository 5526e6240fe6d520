/** Turns the rollouts of a step into the samples that the trainer learns from. */
import { Effect } from "effect"
import type { Rollout } from "../../episode/Rollout.ts"
import * as Samples from "../../episode/samples/samples.ts"
import { advantageEstimatorOf, type TokenObjective } from "../../losses/Losses.ts"
import { groupAdvantages } from "../../returns/Returns.ts"
import { fromSample, type InvalidSample, type SamplePlace, type TrainingSample } from "../batches/TrainingSample.ts"

export interface Scored {
  readonly samples: ReadonlyArray<TrainingSample>
  /** The advantage of each rollout; undefined if the objective compares none. */
  readonly advantages: ArrayLike<number> | undefined
  /** The position of each rollout's group among the groups. */
  readonly groupOf: ReadonlyArray<number>
  /** The number of groups whose rollouts all have the same reward, from which nothing can be learned. */
  readonly evenGroups: number
  readonly groups: number
}

export interface ScoringOptions extends SamplePlace {
  readonly objective: TokenObjective
  /** The temperature at which the model sampled. */
  readonly temperature: number
  /** What happens to groups whose rewards are all equal: they are trained on with advantages of 0, or left out. */
  readonly evenGroups: "keep" | "drop"
}

/**
 * Says whether the model wrote anything in a rollout. A player whose game ends before its first move writes nothing; such a
 * rollout must not be compared with others, because nothing is to be learned from its reward.
 */
export const isPlayed = ({ steps }: Rollout): boolean => steps.some(({ _tag }) => _tag === "AgentStep")

/** Rollouts are compared with those of the same task, and in games of several players of the same player. */
const groupOf = ({ id, meta: { groupId, player } }: Rollout): string => JSON.stringify([groupId ?? id, player])

/**
 * Makes samples from rollouts: every token that the model wrote in a rollout has the rollout's advantage, its reward
 * compared with those of its group. If all groups were to be dropped, the first one is kept, so that a step is never
 * without samples.
 */
export const samplesOf = Effect.fnUntraced(function* (
  rollouts: ReadonlyArray<Rollout>,
  { objective, temperature, evenGroups, ...place }: ScoringOptions,
): Effect.fn.Return<Scored, Samples.SampleError | InvalidSample> {
  const names = [...new Set(rollouts.map(groupOf))]
  const groups = rollouts.map((rollout) => names.indexOf(groupOf(rollout)))
  const estimator = advantageEstimatorOf(objective.type)
  const rewards = Float64Array.from(rollouts, ({ totalReward }) => totalReward)
  const scored =
    estimator === null ? undefined : groupAdvantages({ rewards, groups, zeroDeviation: evenGroups, ...estimator })
  const isKept = (at: number): boolean =>
    scored === undefined || scored.kept[at] === 1 || (scored.droppedGroups === scored.groups && groups[at] === 0)
  const samples: Array<TrainingSample> = []
  for (const [at, rollout] of rollouts.entries()) {
    if (!isKept(at)) continue
    const advantage = scored?.advantages[at] ?? 1
    // A call of a tool that the template writes in other words than the model did begins another sample.
    const options = { requireLogprobs: estimator !== null, onBreak: "split" } as const
    for (const sample of yield* Samples.of([rollout], options)) {
      const advantages = sample.actionMask.map((mask) => mask * advantage)
      const logprobs = estimator === null ? ("unused" as const) : ("required" as const)
      samples.push(yield* fromSample({ ...sample, advantages }, { ...place, temperature, logprobs }))
    }
  }
  const evenGroupCount = scored?.zeroDeviationGroups ?? 0
  return { samples, advantages: scored?.advantages, groupOf: groups, evenGroups: evenGroupCount, groups: names.length }
})
